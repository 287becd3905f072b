// SPDX-License-Identifier: MIT
// A grid of rows and columns whose sides are joined: every worker is connected
// to the four around it. Ranks go row by row.
//
// In a side of 2 both directions lead to the same worker: these parallel edges
// add up, so that every worker has four edges, of weight 1/5 with metropolis. A
// side of 1 has none: a torus of one row is a ring.
#include "base/fail.h"
#include "topology/topology.h"

typedef struct torus {
    laci_weighting weighting;
    uint32_t rows;
} torus;

static const lac_param params[] = {
    {.name = "rows",
     .type = LAC_PARAM_U32,
     .offset = offsetof(torus, rows),
     .default_value = "0",
     .min = 0,
     .max = LACI_WORKERS_MAX,
     .help = "a divisor of the workers; 0 for the largest up to their root"},
    LACI_WEIGHTS_PARAM,
    {0},
};

static uint32_t squarest(uint32_t n)
{
    uint32_t rows = 1;
    for (uint32_t i = 2; i <= n / i; i++) {
        rows = n % i == 0 ? i : rows;
    }
    return rows;
}

static lac_status torus_build(
    const void *state, uint64_t round, laci_dice *dice, laci_graph *graph)
{
    (void)round;
    (void)dice;
    const torus *const t = state;
    const uint32_t n = graph->workers;
    const uint32_t rows = t->rows == 0 ? squarest(n) : t->rows;
    if (n % rows != 0) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %u rows, expected a divisor of %u workers",
            graph->name, rows, n);
    }
    const uint32_t cols = n / rows;
    graph->parallel = true;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = i / cols, col = i % cols;
        if (cols > 1) {
            const uint32_t right = row * cols + (col + 1) % cols;
            LAC_TRY(laci_graph_add(graph, i, right));
        }
        if (rows > 1) {
            const uint32_t below = (row + 1) % rows * cols + col;
            LAC_TRY(laci_graph_add(graph, i, below));
        }
    }
    return LAC_OK;
}

const laci_topology_ops laci_torus_topology = {
    .plugin.size = sizeof(laci_topology_ops),
    .plugin.name = "torus",
    .plugin.summary =
        "a grid whose edges are joined: each worker talks to four",
    .plugin.params = params,
    .plugin.state_size = sizeof(torus),
    .build = torus_build,
};
