// SPDX-License-Identifier: MIT
// Worker 0 is connected to all others, which have no other neighbour.
#include "base/fail.h"
#include "topology/topology.h"

static lac_status star_build(
    const void *state, uint64_t round, laci_dice *dice, laci_graph *graph)
{
    (void)state;
    (void)round;
    (void)dice;
    for (uint32_t i = 1; i < graph->workers; i++) {
        LAC_TRY(laci_graph_add(graph, 0, i));
    }
    return LAC_OK;
}

const laci_topology_ops laci_star_topology = {
    .plugin.size = sizeof(laci_topology_ops),
    .plugin.name = "star",
    .plugin.summary = "worker 0 talks to all others",
    .plugin.params = laci_weights_params,
    .plugin.state_size = sizeof(laci_weighting),
    .build = star_build,
};
