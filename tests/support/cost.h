// SPDX-License-Identifier: MIT
// The cost of an algorithm for a layout, and settings that are refused.
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

// The cost for one tensor of 6 x 10, without a topology.
static inline lac_status tensor_cost(
    const char *spec, const char *compressor, uint32_t workers, lac_cost *out)
{
    const lac_tensor tensor = {.name = "x", .shape = {6, 10}};
    lac_algorithm_options o = lac_algorithm_options_default();
    lac_layout *layout;
    assert_ok(lac_layout_open(&layout, &tensor, 1));
    o.spec = spec;
    o.compressor = compressor;
    o.layout = layout;
    o.workers = workers;
    const lac_status status = lac_algorithm_cost(&o, out);
    lac_layout_close(layout);
    return status;
}

static inline void assert_refused(
    const char *spec, const char *compressor, uint32_t workers,
    const char *message)
{
    lac_cost cost;
    assert_fails(
        tensor_cost(spec, compressor, workers, &cost), LAC_ERR_INVALID,
        message);
}

#endif
