// SPDX-License-Identifier: MIT
// What the tests of failures of model algorithms share: rounds that must leave
// everything as it was when they fail, and groups in which all must fail.
#ifndef LACONIC_TESTS_GOSSIP_FAILURES_H
#define LACONIC_TESTS_GOSSIP_FAILURES_H

#include "gossip.h"

#include <time.h>

enum { ODD = 2, ROUNDS = 12 };

static const double patience = 20; // seconds; nobody may need as long

static inline double now(void)
{
    struct timespec t;
    (void)timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Tries a failed round again: it is not taken for begun. The sentence of the
// failure stays the last one.
static inline lac_status fail_again(
    player *p, uint64_t round, lac_status status)
{
    char sentence[512];
    (void)snprintf(sentence, sizeof(sentence), "%s", lac_error_message());
    EXPECT(player_mix(p, round) != LAC_OK);
    EXPECT(strstr(lac_error_message(), "begun") == NULL);
    return lac_fail(status, "%s", sentence);
}

// Mixes; after a failure state and values must be what they were before it.
static inline lac_status mix_or_keep(player *p, uint64_t round)
{
    float x[VALUES];
    saves *const saved = &p->piece->saved;
    LAC_TRY(player_save(p));
    uint8_t *const before = saved->states[p->rank];
    const size_t len = saved->lens[p->rank];
    saved->states[p->rank] = NULL;
    memcpy(x, p->x, sizeof(x));
    const lac_status status = player_mix(p, round);
    if (status != LAC_OK) {
        LAC_TRY(player_save(p));
        p->piece->spoilt[p->rank] =
            saved->lens[p->rank] != len ||
            memcmp(before, saved->states[p->rank], len) != 0 ||
            memcmp(x, p->x, sizeof(x)) != 0;
    }
    free(before);
    return status == LAC_OK ? LAC_OK : fail_again(p, round, status);
}

static inline lac_status mix_until_it_fails(player *p)
{
    LAC_TRY(player_open(p));
    LAC_TRY(player_start(p));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        LAC_TRY(mix_or_keep(p, round));
    }
    return LAC_OK;
}

// Runs a play in which all workers but perhaps the odd one must fail in time.
static inline void assert_all_fail(
    play *piece, bool odd_fails, test_worker workers[WORLD_MAX])
{
    const double begun = now();
    piece->timeout = patience;
    play_fill(piece);
    memset(workers, 0, WORLD_MAX * sizeof(*workers));
    play_run(piece, workers);
    assert_true(now() - begun < patience / 2);
    for (uint32_t rank = 0; rank < piece->world; rank++) {
        assert_false(piece->spoilt[rank]);
        if (rank != ODD || odd_fails) {
            assert_int_not_equal(workers[rank].status, LAC_OK);
            assert_string_not_equal(workers[rank].message, "");
        }
    }
}

static inline void assert_all_say(
    const play *piece, const test_worker *workers, const char *what)
{
    for (uint32_t rank = 0; rank < piece->world; rank++) {
        if (strstr(workers[rank].message, what) == NULL) {
            print_error("worker %u: %s\n", rank, workers[rank].message);
            fail();
        }
    }
}

#endif
