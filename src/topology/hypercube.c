// SPDX-License-Identifier: MIT
// Workers at the corners of a cube of log2(n) dimensions: two are connected if
// their ranks differ in one bit.
#include "base/fail.h"
#include "topology/topology.h"

static lac_status hypercube_build(
    const void *state, uint64_t round, laci_dice *dice, laci_graph *graph)
{
    (void)state;
    (void)round;
    (void)dice;
    const uint32_t n = graph->workers;
    if ((n & (n - 1)) != 0) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %u workers, expected a power of two",
            graph->name, n);
    }
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t bit = 1; bit < n; bit *= 2) {
            if ((i & bit) != 0) {
                continue;
            }
            LAC_TRY(laci_graph_add(graph, i, i | bit));
        }
    }
    return LAC_OK;
}

const laci_topology_ops laci_hypercube_topology = {
    .plugin.size = sizeof(laci_topology_ops),
    .plugin.name = "hypercube",
    .plugin.summary = "two workers talk if their ranks differ in one bit",
    .plugin.params = laci_weights_params,
    .plugin.state_size = sizeof(laci_weighting),
    .build = hypercube_build,
};
