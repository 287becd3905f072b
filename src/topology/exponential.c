// SPDX-License-Identifier: MIT
// Worker i is connected to i + 2^k and i - 2^k, modulo n, for every 2^k below
// n: about 2 log2(n) neighbours, few hops and a large gap (Ying et al.,
// "Exponential graph is provably efficient for decentralized deep training",
// 2021, made symmetric). Where several of these are the same worker, the edge
// counts once.
#include "base/fail.h"
#include "topology/topology.h"

static lac_status exponential_build(
    const void *state, uint64_t round, laci_dice *dice, laci_graph *graph)
{
    (void)state;
    (void)round;
    (void)dice;
    const uint32_t n = graph->workers;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t step = 1; step < n; step *= 2) {
            LAC_TRY(laci_graph_add(graph, i, (i + step) % n));
        }
    }
    return LAC_OK;
}

const laci_topology_ops laci_exponential_topology = {
    .plugin.size = sizeof(laci_topology_ops),
    .plugin.name = "exponential",
    .plugin.summary = "worker i talks to i + 2^k and i - 2^k",
    .plugin.params = laci_weights_params,
    .plugin.state_size = sizeof(laci_weighting),
    .build = exponential_build,
};
