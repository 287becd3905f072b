// SPDX-License-Identifier: MIT
// Shared by the tests of failures of model algorithms: a round that fails
// leaves everything as it was, and all workers fail.
#ifndef LACONIC_TESTS_GOSSIP_FAILURES_H
#define LACONIC_TESTS_GOSSIP_FAILURES_H

#include "gossip.h"

enum { ODD = 2, ROUNDS = 12 };

// Tries a failed round again: it does not count as begun. The message of the
// failure stays the last one.
static inline lac_status fail_again(
    gossip_worker *w, uint64_t round, lac_status status)
{
    char message[512];
    (void)snprintf(message, sizeof(message), "%s", lac_error_message());
    EXPECT(worker_mix(w, round) != LAC_OK);
    EXPECT(strstr(lac_error_message(), "begun") == NULL);
    return lac_fail(status, "%s", message);
}

// Mixes; after a failure state and values must be what they were before it.
static inline lac_status mix_or_restore(gossip_worker *w, uint64_t round)
{
    float x[VALUES];
    saves *const saved = &w->run->saved;
    LAC_TRY(worker_save(w));
    uint8_t *const before = saved->states[w->rank];
    const size_t len = saved->lens[w->rank];
    saved->states[w->rank] = NULL;
    memcpy(x, w->x, sizeof(x));
    const lac_status status = worker_mix(w, round);
    if (status != LAC_OK) {
        LAC_TRY(worker_save(w));
        w->run->changed[w->rank] =
            saved->lens[w->rank] != len ||
            memcmp(before, saved->states[w->rank], len) != 0 ||
            memcmp(x, w->x, sizeof(x)) != 0;
    }
    free(before);
    return status == LAC_OK ? LAC_OK : fail_again(w, round, status);
}

static inline lac_status mix_until_it_fails(gossip_worker *w)
{
    LAC_TRY(worker_open(w));
    LAC_TRY(worker_start(w));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        LAC_TRY(mix_or_restore(w, round));
    }
    return LAC_OK;
}

// Runs until all workers fail, the odd one perhaps not. Nobody may need the
// timeout for that.
static inline void assert_all_fail(
    gossip_run *run, bool odd_fails, test_worker workers[WORLD_MAX])
{
    fill_values(run);
    memset(workers, 0, WORLD_MAX * sizeof(*workers));
    run_gossip(run, workers);
    for (uint32_t rank = 0; rank < run->world; rank++) {
        assert_false(run->changed[rank]);
        if (rank != ODD || odd_fails) {
            assert_int_not_equal(workers[rank].status, LAC_OK);
            assert_string_not_equal(workers[rank].message, "");
            assert_null(strstr(workers[rank].message, "was silent for"));
        }
    }
}

static inline void assert_messages(
    const gossip_run *run, const test_worker *workers, const char *part)
{
    for (uint32_t rank = 0; rank < run->world; rank++) {
        if (strstr(workers[rank].message, part) == NULL) {
            print_error("worker %u: %s\n", rank, workers[rank].message);
            fail();
        }
    }
}

#endif
