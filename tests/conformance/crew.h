// SPDX-License-Identifier: MIT
// What the conformance tests of all algorithms share: a layout with odd
// tensors, compressors that differ in kind, states that workers saved, and how
// scripts, which run where cmocka cannot assert, fail.
#ifndef LACONIC_TESTS_CREW_H
#define LACONIC_TESTS_CREW_H

#include "workers.h"

#include <math.h>

#include "algorithm/framework/handle.h"
#include "base/fail.h"

enum { WORLD_MAX = 8, TENSORS = 5, VALUES = 7 * 5 + 13 + 1 + 9 };
enum { WEIGHT, EMPTY, BIAS, ONE, ROW };

static const lac_tensor tensors[TENSORS] = {
    {.name = "weight", .shape = {7, 5}}, {.name = "empty", .shape = {0, 3}},
    {.name = "bias", .shape = {13, 1}},  {.name = "one", .shape = {1, 1}},
    {.name = "row", .shape = {1, 9}},
};

static const char *const compressors[] = {
    "identity",  "natural",      "sign",
    "top-k:0.3", "random-k:0.5", "dithering:levels=31",
    "low-rank",
};

enum { COMPRESSORS = sizeof(compressors) / sizeof(*compressors) };

// What workers saved.
typedef struct saves {
    uint8_t *states[WORLD_MAX];
    size_t lens[WORLD_MAX];
} saves;

static inline lac_status save_state(
    saves *s, uint32_t rank, const lac_algorithm *a)
{
    free(s->states[rank]);
    s->lens[rank] = lac_algorithm_state_size(a);
    s->states[rank] = malloc(s->lens[rank]);
    EXPECT(s->states[rank] != NULL);
    return lac_algorithm_save(a, s->states[rank], s->lens[rank]);
}

static inline void free_saves(saves *s)
{
    for (uint32_t rank = 0; rank < WORLD_MAX; rank++) {
        free(s->states[rank]);
    }
    *s = (saves){0};
}

// The states as rows of the longest's length, for workers that only have their
// own, and of others perhaps what those saved before.
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

typedef void visit_algorithm(
    const lac_plugin *plugin, const char *compressor, const void *context);

// Calls `visit` with every algorithm of a family, alone or with each of the
// compressors.
static inline void visit_family(
    lac_family family, visit_algorithm *visit, const void *context)
{
    size_t count;
    const lac_plugin *const *const table = lac_algorithms(&count);
    for (size_t i = 0; i < count; i++) {
        // The plug-in is the first member of its ops.
        const laci_algorithm_ops *const ops = (const void *)table[i];
        if (ops->family != family) {
            continue;
        }
        if (!ops->takes_compressor) {
            visit(table[i], NULL, context);
        }
        for (size_t c = 0; ops->takes_compressor && c < COMPRESSORS; c++) {
            visit(table[i], compressors[c], context);
        }
    }
}

#endif
