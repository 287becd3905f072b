// SPDX-License-Identifier: MIT
// Every pair of workers is connected. With metropolis weights, W is the exact
// mean.
#include "base/fail.h"
#include "topology/topology.h"

static lac_status complete_build(
    const void *state, uint64_t round, laci_dice *dice, laci_graph *graph)
{
    (void)state;
    (void)round;
    (void)dice;
    const size_t n = graph->workers;
    LAC_TRY(laci_graph_reserve(graph, n * (n - 1) / 2));
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = i + 1; j < n; j++) {
            LAC_TRY(laci_graph_add(graph, i, j));
        }
    }
    return LAC_OK;
}

const laci_topology_ops laci_complete_topology = {
    .plugin.size = sizeof(laci_topology_ops),
    .plugin.name = "complete",
    .plugin.summary = "everyone talks to everyone",
    .plugin.params = laci_weights_params,
    .plugin.state_size = sizeof(laci_weighting),
    .build = complete_build,
};
