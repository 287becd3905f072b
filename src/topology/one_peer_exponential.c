// SPDX-License-Identifier: MIT
// In round t every worker is connected to one other, whose rank differs in bit
// t mod log2(n), with weight 1/2: after log2(n) rounds, each with one message
// per worker, all have the exact mean. Ying et al., "Exponential graph is
// provably efficient for decentralized deep training" (2021).
#include "base/fail.h"
#include "topology/topology.h"

static uint32_t one_peer_exponential_period(const void *state, uint32_t workers)
{
    (void)state;
    uint32_t bits = 0;
    while (workers >> bits > 1) {
        bits++;
    }
    return bits == 0 ? 1 : bits;
}

static lac_status one_peer_exponential_build(
    const void *state, uint64_t round, laci_dice *dice, laci_graph *graph)
{
    (void)state;
    (void)dice;
    const uint32_t n = graph->workers;
    if ((n & (n - 1)) != 0) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %u workers, expected a power of two",
            graph->name, n);
    }
    const uint32_t bit = (uint32_t)1 << round;
    for (uint32_t i = 0; i < n && bit < n; i++) {
        if ((i & bit) == 0) {
            LAC_TRY(laci_graph_add(graph, i, i | bit));
        }
    }
    return LAC_OK;
}

const laci_topology_ops laci_one_peer_exponential_topology = {
    .plugin.size = sizeof(laci_topology_ops),
    .plugin.name = "one-peer-exponential",
    .plugin.summary =
        "one neighbour a round, by turns: exact after log2 n rounds",
    .plugin.params = laci_weights_params,
    .plugin.state_size = sizeof(laci_weighting),
    .period = one_peer_exponential_period,
    .build = one_peer_exponential_build,
};
