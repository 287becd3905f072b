// SPDX-License-Identifier: MIT
// A circle with shortcuts (Watts and Strogatz, "Collective dynamics of
// small-world networks", Nature 393, 1998). Every worker is first
// connected to the nearest `neighbours`, half of them on each side. Then each
// edge, the shortest first, is rewired with the given probability: its far end
// becomes a worker drawn from all that are not neighbours yet.
#include "base/alloc.h"
#include "base/fail.h"
#include "topology/topology.h"

typedef struct small_world {
    laci_weighting weighting;
    uint32_t neighbours;
    double probability;
} small_world;

static const lac_param params[] = {
    {.name = "neighbours",
     .type = LAC_PARAM_U32,
     .offset = offsetof(small_world, neighbours),
     .default_value = "4",
     .min = 2,
     .max = LACI_WORKERS_MAX,
     .help = "nearest workers known at first, an even number"},
    {.name = "probability",
     .type = LAC_PARAM_F64,
     .offset = offsetof(small_world, probability),
     .default_value = "0.1",
     .min = 0,
     .max = 1,
     .help = "that an edge becomes a shortcut"},
    LACI_WEIGHTS_PARAM,
    {0},
};

// Every edge belongs to one of its ends: those of worker i lead to
// far[i * half .. (i + 1) * half). `degree` counts the edges at each worker.
typedef struct circle {
    uint32_t workers;
    uint32_t half;
    uint32_t *far;
    uint32_t *degree;
} circle;

static bool owns(const circle *c, uint32_t owner, uint32_t other)
{
    const uint32_t *const far = c->far + (size_t)owner * c->half;
    for (uint32_t k = 0; k < c->half; k++) {
        if (far[k] == other) {
            return true;
        }
    }
    return false;
}

// Rewires edge k of `rank` to a new neighbour, unless all are neighbours.
static void rewire(const circle *c, uint32_t rank, uint32_t k, laci_dice *dice)
{
    if (c->degree[rank] == c->workers - 1) {
        return;
    }
    uint32_t other;
    do {
        other = laci_dice_draw(dice, c->workers);
    } while (other == rank || owns(c, rank, other) || owns(c, other, rank));
    uint32_t *const far = c->far + (size_t)rank * c->half + k;
    c->degree[*far]--;
    c->degree[other]++;
    *far = other;
}

static void add_shortcuts(const circle *c, double probability, laci_dice *dice)
{
    const uint64_t threshold = (uint64_t)(0x1p32 * probability);
    for (uint32_t k = 0; k < c->half; k++) {
        for (uint32_t i = 0; i < c->workers; i++) {
            if (lac_key_draw(&dice->key, dice->next++) < threshold) {
                rewire(c, i, k, dice);
            }
        }
    }
}

static lac_status small_world_check(
    const small_world *s, const laci_graph *graph)
{
    if (s->neighbours % 2 == 1) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: neighbours is %u, expected an even number",
            graph->name, s->neighbours);
    }
    if (s->neighbours >= graph->workers) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: neighbours is %u with %u workers, expected less", graph->name,
            s->neighbours, graph->workers);
    }
    return LAC_OK;
}

static lac_status small_world_build(
    const void *state, uint64_t round, laci_dice *dice, laci_graph *graph)
{
    (void)round;
    const small_world *const s = state;
    const uint32_t n = graph->workers;
    if (n == 1) {
        return LAC_OK;
    }
    LAC_TRY(small_world_check(s, graph));
    const size_t edges = (size_t)n * s->neighbours / 2;
    LAC_TRY(laci_graph_reserve(graph, edges));
    uint32_t *const block = laci_zalloc((edges + n) * sizeof(*block));
    if (block == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for %zu edges", graph->name, edges);
    }
    const circle c = {n, s->neighbours / 2, block, block + edges};
    for (size_t i = 0; i < edges; i++) {
        const size_t near = i / c.half + i % c.half + 1;
        c.far[i] = (uint32_t)(near % n);
    }
    for (uint32_t i = 0; i < n; i++) {
        c.degree[i] = s->neighbours;
    }
    add_shortcuts(&c, s->probability, dice);
    lac_status status = LAC_OK;
    for (size_t i = 0; i < edges && status == LAC_OK; i++) {
        status = laci_graph_add(graph, (uint32_t)(i / c.half), c.far[i]);
    }
    laci_free(block);
    return status;
}

const laci_topology_ops laci_small_world_topology = {
    .plugin.size = sizeof(laci_topology_ops),
    .plugin.name = "small-world",
    .plugin.summary = "a circle of near neighbours with random shortcuts",
    .plugin.params = params,
    .plugin.state_size = sizeof(small_world),
    .random = true,
    .build = small_world_build,
};
