// SPDX-License-Identifier: MIT
// Workers as threads, for tests of what they do together: every body runs in a
// thread of its own that has joined one local group.
#ifndef LACONIC_TESTS_WORKERS_H
#define LACONIC_TESTS_WORKERS_H

#include "lac_test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct test_worker {
    uint32_t rank;
    uint32_t world;
    lac_transport *transport;
    void *context;      // the same for all
    lac_status status;  // what the body returned
    char sentence[512]; // and had to say
    lac_status (*body)(struct test_worker *w);
    lac_hub *hub;
    pthread_t thread;
} test_worker;

static inline void *run_test_worker(void *argument)
{
    test_worker *const w = argument;
    w->status =
        lac_transport_join(&w->transport, "local", w->hub, w->rank, w->world);
    if (w->status == LAC_OK) {
        w->status = w->body(w);
    }
    (void)snprintf(
        w->sentence, sizeof(w->sentence), "%s",
        w->status == LAC_OK ? "" : lac_error_message());
    lac_transport_leave(w->transport);
    return NULL;
}

// Runs `body` in `world` threads and waits for all of them. cmocka's asserts
// do not work in other threads: bodies return a status, the caller looks at
// workers_out[0..world).
static inline void run_workers(
    uint32_t world, lac_status (*body)(test_worker *w), void *context,
    test_worker *workers_out)
{
    lac_hub *hub;
    assert_ok(lac_hub_open(&hub, world));
    for (uint32_t rank = 0; rank < world; rank++) {
        workers_out[rank] = (test_worker){
            .rank = rank,
            .world = world,
            .context = context,
            .body = body,
            .hub = hub,
        };
        assert_int_equal(
            pthread_create(
                &workers_out[rank].thread, NULL, run_test_worker,
                &workers_out[rank]),
            0);
    }
    for (uint32_t rank = 0; rank < world; rank++) {
        assert_int_equal(pthread_join(workers_out[rank].thread, NULL), 0);
    }
    lac_hub_close(hub);
}

static inline void assert_all_ok(const test_worker *workers, uint32_t world)
{
    for (uint32_t rank = 0; rank < world; rank++) {
        if (workers[rank].status != LAC_OK) {
            print_error("worker %u: %s\n", rank, workers[rank].sentence);
            fail();
        }
    }
}

#endif
