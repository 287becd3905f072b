// SPDX-License-Identifier: MIT
// A random graph in which every worker has `degree` neighbours.
//
// It starts from a circle in which each worker is connected to the nearest
// ones, and switches pairs of edges at random: a-b and c-d become a-d and c-b,
// unless that would make a loop or a second edge. Degrees do not change, so it
// works for degrees of any size, and the distribution tends to the uniform one
// (Cooper, Dyer and Greenhill, "Sampling regular graphs and a peer-to-peer
// network", 2007).
#include <assert.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "topology/topology.h"

enum { TRIES_AN_EDGE = 10 }; // the usual number

typedef struct regular {
    laci_weighting weighting;
    uint32_t degree;
} regular;

static const lac_param params[] = {
    {.name = "degree",
     .type = LAC_PARAM_U32,
     .offset = offsetof(regular, degree),
     .default_value = "4",
     .min = 1,
     .max = LACI_WORKERS_MAX,
     .help = "neighbours of every worker"},
    LACI_WEIGHTS_PARAM,
    {0},
};

// The neighbours of worker i are peer[i * degree .. (i + 1) * degree).
typedef struct table {
    uint32_t workers;
    uint32_t degree;
    uint32_t *peer;
} table;

static void fill_circle(const table *t)
{
    for (uint32_t i = 0; i < t->workers; i++) {
        uint32_t *const row = t->peer + (size_t)i * t->degree;
        for (uint32_t k = 0; k < t->degree / 2; k++) {
            row[2 * k] = (i + k + 1) % t->workers;
            row[2 * k + 1] = (i + t->workers - k - 1) % t->workers;
        }
        if (t->degree % 2 == 1) {
            row[t->degree - 1] = (i + t->workers / 2) % t->workers;
        }
    }
}

static bool adjacent(const table *t, uint32_t rank, uint32_t other)
{
    const uint32_t *const row = t->peer + (size_t)rank * t->degree;
    for (uint32_t k = 0; k < t->degree; k++) {
        if (row[k] == other) {
            return true;
        }
    }
    return false;
}

static void replace(const table *t, uint32_t rank, uint32_t old, uint32_t other)
{
    uint32_t *row = t->peer + (size_t)rank * t->degree;
    while (*row != old) {
        row++;
    }
    *row = other;
}

static void try_switch(const table *t, laci_dice *dice)
{
    const uint32_t ends = t->workers * t->degree;
    const uint32_t first = laci_dice_draw(dice, ends);
    const uint32_t second = laci_dice_draw(dice, ends);
    const uint32_t a = first / t->degree, b = t->peer[first];
    const uint32_t c = second / t->degree, d = t->peer[second];
    if (a == c || b == d || a == d || b == c || adjacent(t, a, d) ||
        adjacent(t, c, b)) {
        return;
    }
    t->peer[first] = d;
    t->peer[second] = b;
    replace(t, b, a, c);
    replace(t, d, c, a);
}

static lac_status random_regular_check(
    const regular *r, const laci_graph *graph)
{
    const uint32_t n = graph->workers;
    if (r->degree >= n) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: degree is %u with %u workers, expected less",
            graph->name, r->degree, n);
    }
    if (r->degree % 2 == 1 && n % 2 == 1) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: degree is %u with %u workers, expected one of them to be even",
            graph->name, r->degree, n);
    }
    if (r->degree == 1 && n > 2) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: degree is 1 with %u workers, which are then not connected, "
            "expected at least 2",
            graph->name, n);
    }
    return LAC_OK;
}

static lac_status random_regular_build(
    const void *state, uint64_t round, laci_dice *dice, laci_graph *graph)
{
    (void)round;
    const regular *const r = state;
    const uint32_t n = graph->workers;
    if (n == 1) {
        return LAC_OK;
    }
    LAC_TRY(random_regular_check(r, graph));
    assert(r->degree > 0); // the smallest setting is 1
    const size_t edges = (size_t)n * r->degree / 2;
    LAC_TRY(laci_graph_reserve(graph, edges));
    const table t = {n, r->degree, laci_zalloc(2 * edges * sizeof(uint32_t))};
    if (t.peer == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for %zu edges", graph->name, edges);
    }
    fill_circle(&t);
    for (size_t i = 0; i < TRIES_AN_EDGE * edges; i++) {
        try_switch(&t, dice);
    }
    lac_status status = LAC_OK;
    for (size_t i = 0; i < 2 * edges && status == LAC_OK; i++) {
        const uint32_t a = (uint32_t)(i / r->degree);
        if (a < t.peer[i]) {
            status = laci_graph_add(graph, a, t.peer[i]);
        }
    }
    laci_free(t.peer);
    return status;
}

const laci_topology_ops laci_random_regular_topology = {
    .plugin.size = sizeof(laci_topology_ops),
    .plugin.name = "random-regular",
    .plugin.summary = "a random graph with as many neighbours for everyone",
    .plugin.params = params,
    .plugin.state_size = sizeof(regular),
    .random = true,
    .build = random_regular_build,
};
