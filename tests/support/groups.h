// SPDX-License-Identifier: MIT
// Workers with a group each, for tests of src/collective: run_groups opens
// w->group before the body and closes it after.
#ifndef LACONIC_TESTS_GROUPS_H
#define LACONIC_TESTS_GROUPS_H

#include "workers.h"

#include <math.h>

#include "base/bytes.h"
#include "collective/group.h"

enum { WORKERS_MAX = 8 };

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

typedef struct group_run {
    uint32_t world;
    const laci_group_options *options; // of all workers but `odd`
    uint32_t odd;                      // LAC_RANK_ANY for none
    const laci_group_options *odd_options;
    worker_body *body;
    void *context;
} group_run;

static inline lac_status group_body(test_worker *w)
{
    const group_run *const run = w->context;
    laci_group_options own =
        w->rank == run->odd ? *run->odd_options : *run->options;
    own.transport = w->transport;
    LAC_TRY(laci_group_open(&w->group, &own));
    w->context = run->context;
    const lac_status status = run->body(w);
    laci_group_close(w->group);
    return status;
}

// Runs the body as every worker and writes the results to
// workers_out[0..world).
static inline void run_groups(group_run *run, test_worker *workers_out)
{
    assert_true(run->world <= WORKERS_MAX);
    run_workers(run->world, group_body, run, workers_out);
}

// Runs `body` on `world` workers, all of which must succeed.
static inline void run_all(uint32_t world, worker_body *body, void *context)
{
    test_worker workers[WORKERS_MAX];
    group_run run = {
        .world = world,
        .options = &default_options,
        .odd = LAC_RANK_ANY,
        .body = body,
        .context = context,
    };
    run_groups(&run, workers);
    assert_all_ok(workers, world);
}

// The neighbours on a ring: none, one or two.
static inline uint32_t ring_peers(const test_worker *w, lac_edge peers[2])
{
    const uint32_t left = (w->rank + w->world - 1) % w->world;
    const uint32_t right = (w->rank + 1) % w->world;
    peers[0].peer = left;
    peers[1].peer = right;
    return w->world == 1 ? 0 : w->world == 2 ? 1 : 2;
}

// Values of many magnitudes, and NaN with other bits on every worker.
static inline float rough_with_nan(uint32_t rank, size_t i)
{
    const uint32_t mix = (uint32_t)(i * 2654435761u) ^ (rank * 40503u);
    if (i % 97 == 96) {
        return laci_float_of(0x7fc00001u + rank);
    }
    return ldexpf((float)(mix % 10007) - 5000, (int)(mix >> 13) % 20);
}

static const uint32_t worlds[] = {1, 2, 3, 5, 8};
enum { WORLD_COUNT = sizeof(worlds) / sizeof(worlds[0]) };

#endif
