// SPDX-License-Identifier: MIT
// Workers in a row: each is connected to the one before and the one after it.
#include "base/fail.h"
#include "topology/topology.h"

static lac_status path_build(
    const void *state, uint64_t round, laci_dice *dice, laci_graph *graph)
{
    (void)state;
    (void)round;
    (void)dice;
    for (uint32_t i = 1; i < graph->workers; i++) {
        LAC_TRY(laci_graph_add(graph, i - 1, i));
    }
    return LAC_OK;
}

const laci_topology_ops laci_path_topology = {
    .plugin.size = sizeof(laci_topology_ops),
    .plugin.name = "path",
    .plugin.summary =
        "a row: each worker talks to the one before and the one after",
    .plugin.params = laci_weights_params,
    .plugin.state_size = sizeof(laci_weighting),
    .build = path_build,
};
