// SPDX-License-Identifier: MIT
// Runs a function as every worker of a group of threads. Failures inside a
// thread are put down and reported by the main one, where cmocka lives.
#ifndef LACONIC_TESTS_COLLECTIVE_WORKERS_H
#define LACONIC_TESTS_COLLECTIVE_WORKERS_H

#include "lac_test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "collective/group.h"

enum { WORKERS_MAX = 8, SENTENCE_SIZE = 512 };

typedef struct worker worker;
typedef lac_status worker_body(worker *w);

struct worker {
    lac_transport *transport;
    laci_group *group;
    uint32_t rank;
    uint32_t world;
    worker_body *body;
    void *shared;
    lac_status status; // what the body returned
    char sentence[SENTENCE_SIZE];
    const char *broken; // the first expectation that did not hold
    int line;
};

// Puts down an expectation that does not hold.
static inline void put_down(
    worker *w, bool holds, const char *expression, int line)
{
    if (!holds && w->broken == NULL) {
        w->broken = expression;
        w->line = line;
    }
}

#define EXPECT(worker, expression)                                             \
    put_down((worker), (expression), #expression, __LINE__)

// Returns from a body with the failure of a call.
#define TRY(expression)                                                        \
    do {                                                                       \
        const lac_status try_status = (expression);                            \
        if (try_status != LAC_OK) {                                            \
            return try_status;                                                 \
        }                                                                      \
    } while (0)

typedef struct workers {
    lac_hub *hub;
    uint32_t world;
    worker each[WORKERS_MAX];
} workers;

static const laci_group_options default_options = {
    .session = 77,
    .identity = 1234,
    .timeout = 60,
    .peers_max = 2,
    .message_max = 4000,
    .tensors_max = 4,
    .sum_max = 1 << 20,
    .native_sums = true,
};

static void *run_worker(void *argument)
{
    worker *const w = argument;
    w->status = w->body(w);
    if (w->status != LAC_OK) {
        (void)snprintf(w->sentence, SENTENCE_SIZE, "%s", lac_error_message());
    }
    laci_group_close(w->group);
    lac_transport_leave(w->transport);
    return NULL;
}

// Opens worker `rank` as `options` say.
static void workers_open(
    workers *all, uint32_t rank, const laci_group_options *options)
{
    worker *const w = &all->each[rank];
    laci_group_options own = *options;
    w->rank = rank;
    w->world = all->world;
    assert_ok(
        lac_transport_join(&w->transport, "local", all->hub, rank, all->world));
    own.transport = w->transport;
    assert_ok(laci_group_open(&w->group, &own));
}

static void workers_init(workers *all, uint32_t world)
{
    *all = (workers){.world = world};
    assert_true(world <= WORKERS_MAX);
    assert_ok(lac_hub_open(&all->hub, world));
}

// Runs body in every thread, which then leaves and closes.
static void workers_run(workers *all, worker_body *body, void *shared)
{
    pthread_t threads[WORKERS_MAX];
    for (uint32_t i = 0; i < all->world; i++) {
        all->each[i].body = body;
        all->each[i].shared = shared;
        assert_int_equal(
            pthread_create(&threads[i], NULL, run_worker, &all->each[i]), 0);
    }
    for (uint32_t i = 0; i < all->world; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    lac_hub_close(all->hub);
    for (uint32_t i = 0; i < all->world; i++) {
        const worker *const w = &all->each[i];
        if (w->broken != NULL) {
            print_error(
                "worker %u of %u: %s (line %d)\n", i, all->world, w->broken,
                w->line);
            fail();
        }
    }
}

// Runs body on `world` workers, all of which must succeed.
static inline void run_all(uint32_t world, worker_body *body, void *shared)
{
    workers all;
    workers_init(&all, world);
    for (uint32_t i = 0; i < world; i++) {
        workers_open(&all, i, &default_options);
    }
    workers_run(&all, body, shared);
    for (uint32_t i = 0; i < world; i++) {
        if (all.each[i].status != LAC_OK) {
            print_error("worker %u: %s\n", i, all.each[i].sentence);
            fail();
        }
    }
}

// The neighbours on a ring: none, one or two.
static inline uint32_t ring_peers(const worker *w, lac_edge peers[2])
{
    const uint32_t left = (w->rank + w->world - 1) % w->world;
    const uint32_t right = (w->rank + 1) % w->world;
    peers[0].peer = left;
    peers[1].peer = right;
    return w->world == 1 ? 0 : w->world == 2 ? 1 : 2;
}

static const uint32_t worlds[] = {1, 2, 3, 5, 8};
enum { WORLD_COUNT = sizeof(worlds) / sizeof(worlds[0]) };

#endif
