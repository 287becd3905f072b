// SPDX-License-Identifier: MIT
// Shared by the conformance tests of all algorithms: a layout with unusual
// shapes, and the states that workers save. They use the public API only.
#ifndef LACONIC_TESTS_ALGORITHMS_H
#define LACONIC_TESTS_ALGORITHMS_H

#include "workers.h"

#include <math.h>

enum { WORLD_MAX = 8, TENSORS = 5, VALUES = 7 * 5 + 13 + 1 + 9 };
enum { WEIGHT, EMPTY, BIAS, ONE, ROW };

static const lac_tensor tensors[TENSORS] = {
    {.name = "weight", .shape = {7, 5}}, {.name = "empty", .shape = {0, 3}},
    {.name = "bias", .shape = {13, 1}},  {.name = "one", .shape = {1, 1}},
    {.name = "row", .shape = {1, 9}},
};

// Where the tensors begin among the values.
static const size_t offsets[TENSORS + 1] = {0, 35, 35, 48, 49, VALUES};

// The saved state of every worker.
typedef struct saves {
    uint8_t *states[WORLD_MAX];
    size_t lens[WORLD_MAX];
} saves;

// Saves the state of a worker. Where the algorithm refuses, there is none.
static inline lac_status save_state(
    saves *s, uint32_t rank, const lac_algorithm *a)
{
    const size_t len = lac_algorithm_state_size(a);
    free(s->states[rank]);
    s->lens[rank] = 0;
    s->states[rank] = malloc(len);
    EXPECT(s->states[rank] != NULL);
    LAC_TRY(lac_algorithm_save(a, s->states[rank], len));
    s->lens[rank] = len;
    return LAC_OK;
}

// Loads the state that the worker of this rank saved.
static inline lac_status load_state(
    const saves *s, uint32_t rank, lac_algorithm *a)
{
    return lac_algorithm_load(a, s->states[rank], s->lens[rank]);
}

static inline void free_saves(saves *s)
{
    for (uint32_t rank = 0; rank < WORLD_MAX; rank++) {
        free(s->states[rank]);
    }
    *s = (saves){0};
}

// Gives every worker the states of all. A process has its own state, and of the
// others at most an older one. Rows of equal length are exchanged.
static inline void share_saves(saves *s, uint32_t world)
{
    const saves before = *s;
    size_t most = 0;
    share_rows(s->lens, sizeof(*s->lens), world);
    for (uint32_t rank = 0; rank < world; rank++) {
        most = s->lens[rank] > most ? s->lens[rank] : most;
    }
    uint8_t *const rows = calloc(world + 1, most + 1);
    assert_non_null(rows);
    for (uint32_t rank = 0; rank < world; rank++) {
        if (s->states[rank] != NULL && s->lens[rank] == before.lens[rank]) {
            memcpy(rows + rank * most, s->states[rank], s->lens[rank]);
        }
    }
    share_rows(rows, most, world);
    for (uint32_t rank = 0; rank < world && most > 0; rank++) {
        free(s->states[rank]);
        s->states[rank] = malloc(s->lens[rank] + 1);
        assert_non_null(s->states[rank]);
        memcpy(s->states[rank], rows + rank * most, s->lens[rank]);
    }
    free(rows);
}

static inline void assert_same_saves(
    const saves *a, const saves *b, uint32_t world)
{
    for (uint32_t rank = 0; rank < world; rank++) {
        assert_int_equal(a->lens[rank], b->lens[rank]);
        assert_memory_equal(a->states[rank], b->states[rank], a->lens[rank]);
    }
}

#endif
