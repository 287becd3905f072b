// SPDX-License-Identifier: MIT
// Workers in a circle, with eigenvalues (1 + 2 cos(2 pi m / n)) / 3. The two
// ways between two workers count as one edge: a ring of 2 has the weights 1/2
// and 1/2, as in the code of CHOCO-Gossip.
#include "base/fail.h"
#include "topology/topology.h"

static lac_status ring_build(
    const void *state, uint64_t round, laci_dice *dice, laci_graph *graph)
{
    (void)state;
    (void)round;
    (void)dice;
    const uint32_t n = graph->workers;
    for (uint32_t i = 0; i < n && n > 1; i++) {
        LAC_TRY(laci_graph_add(graph, i, (i + 1) % n));
    }
    return LAC_OK;
}

const laci_topology_ops laci_ring_topology = {
    .plugin.size = sizeof(laci_topology_ops),
    .plugin.name = "ring",
    .plugin.summary = "a circle: each worker talks to two",
    .plugin.params = laci_weights_params,
    .plugin.state_size = sizeof(laci_weighting),
    .build = ring_build,
};
