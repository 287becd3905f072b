// SPDX-License-Identifier: MIT
// The cost of an algorithm for a layout.
#ifndef LACONIC_TESTS_COST_H
#define LACONIC_TESTS_COST_H

#include "lac_test.h"

#include <laconic/algorithm.h>

// Returns the cost on a ring of `workers`, or without a topology if that is 0,
// and closes the layout. `compressor` may be NULL.
static inline lac_cost cost_for(
    const char *spec, const char *compressor, uint32_t workers,
    lac_layout *layout)
{
    lac_algorithm_options o = lac_algorithm_options_default();
    lac_topology *topology = NULL;
    lac_cost cost;
    if (workers != 0) {
        assert_ok(lac_topology_open(&topology, "ring", workers, 1));
    }
    o.spec = spec;
    o.compressor = compressor;
    o.layout = layout;
    o.topology = topology;
    assert_ok(lac_algorithm_cost(&o, &cost));
    lac_topology_close(topology);
    lac_layout_close(layout);
    return cost;
}

#endif
