// SPDX-License-Identifier: MIT
// Bytes without compression, counted message by message.
#include "train/uncompressed.h"

static uint64_t messages_of_round(const lac_topology *topology, uint32_t round)
{
    uint64_t messages = 0;
    for (uint32_t k = 0; k < lac_topology_workers(topology); k++) {
        const lac_edge *edges;
        messages += lac_topology_edges(topology, k, round, &edges);
    }
    return messages;
}

static double messages_of_gossip(const lac_topology *topology, uint64_t rounds)
{
    const uint32_t period = lac_topology_period(topology);
    double messages = 0;
    for (uint32_t r = 0; r < period; r++) {
        const uint64_t times = rounds / period + (r < rounds % period);
        messages += (double)times * (double)messages_of_round(topology, r);
    }
    return messages;
}

double train_uncompressed_bytes(
    lac_family family, const lac_topology *topology, size_t values,
    uint64_t rounds)
{
    const uint32_t world = lac_topology_workers(topology);
    const double size = sizeof(float) * (double)values;
    if (family == LAC_FAMILY_MODEL) {
        return size * messages_of_gossip(topology, rounds);
    }
    return world == 1 ? 0 : size * world * (double)rounds;
}
