// SPDX-License-Identifier: MIT
// The "Southern women" network of Davis, Gardner and Gardner, "Deep South"
// (1941): which of 18 women attended which of 14 events. The CHOCO-SGD paper
// uses it as a network that is not regular. Workers 0 to 17 are the women, 18
// to 31 the events; an edge is an attendance.
#include "base/fail.h"
#include "topology/topology.h"

enum { WOMEN = 18, EVENTS = 14, ATTENDED_MAX = 8 };

// The events that each of the women attended, counted from 1; 0 ends a list.
static const uint8_t attended[WOMEN][ATTENDED_MAX + 1] = {
    {1, 2, 3, 4, 5, 6, 8, 9},
    {1, 2, 3, 5, 6, 7, 8},
    {2, 3, 4, 5, 6, 7, 8, 9},
    {1, 3, 4, 5, 6, 7, 8},
    {3, 4, 5, 7},
    {3, 5, 6, 8},
    {5, 6, 7, 8},
    {6, 8, 9},
    {5, 7, 8, 9},
    {7, 8, 9, 12},
    {8, 9, 10, 12},
    {8, 9, 10, 12, 13, 14},
    {7, 8, 9, 10, 12, 13, 14},
    {6, 7, 9, 10, 11, 12, 13, 14},
    {7, 8, 10, 11, 12},
    {8, 9},
    {9, 11},
    {9, 11},
};

static lac_status social_build(
    const void *state, uint64_t round, laci_dice *dice, laci_graph *graph)
{
    (void)state;
    (void)round;
    (void)dice;
    if (graph->workers != WOMEN + EVENTS) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %u workers, expected %d", graph->name,
            graph->workers, WOMEN + EVENTS);
    }
    for (uint32_t woman = 0; woman < WOMEN; woman++) {
        for (const uint8_t *event = attended[woman]; *event != 0; event++) {
            LAC_TRY(laci_graph_add(graph, woman, WOMEN + *event - 1u));
        }
    }
    return LAC_OK;
}

const laci_topology_ops laci_social_topology = {
    .plugin.size = sizeof(laci_topology_ops),
    .plugin.name = "social",
    .plugin.summary = "the 32 women and events of Davis: a network of people",
    .plugin.params = laci_weights_params,
    .plugin.state_size = sizeof(laci_weighting),
    .build = social_build,
};
