// SPDX-License-Identifier: MIT
// What an algorithm is made of. The framework reads the spec, opens the
// compressor in the form the algorithm asks for, lays out its state, checks
// every slice, scans for values that are not finite, and saves and loads; the
// algorithm does the arithmetic of a round.
#ifndef LACONIC_ALGORITHM_ALGORITHM_H
#define LACONIC_ALGORITHM_ALGORITHM_H

#include <laconic/algorithm.h>
#include <laconic/compress.h>

#include "collective/group.h"
#include "kernels/kernels.h"

// One array of an algorithm's state: for a tensor and, where it is kept for a
// neighbour, that neighbour. `values` lie in the framework's one block.
typedef struct laci_field {
    const char *name; // such as "xhat"; saved under it
    size_t tensor;
    uint32_t peer; // LAC_RANK_ANY where it is not a neighbour's
    size_t count;
    float *values;
} laci_field;

// What one worker works with. Everything lives until close.
typedef struct laci_worker {
    const lac_layout *layout;
    const lac_topology *topology; // NULL in the gradient family
    laci_group *group;            // NULL while only the cost is wanted
    lac_compressor *compressor;   // NULL where there is none
    const laci_kernels *kernels;
    uint32_t rank;
    uint32_t world;
    uint64_t seed;
    bool training;
    const uint32_t *peers; // all that this worker ever talks to
    uint32_t peer_count;
    laci_reader *readers;  // room for peer_count, or world, of them
    float *scratch;        // the largest tensor, twice
} laci_worker;

// Collects the fields of a state while it is planned.
typedef struct laci_plan laci_plan;

// laci_plan_field asks for `count` floats, zeroed at open. Fields are found
// again by laci_field_of, in the order they were asked for.
void laci_plan_field(
    laci_plan *plan, const char *name, size_t tensor, uint32_t peer,
    size_t count);

#endif
