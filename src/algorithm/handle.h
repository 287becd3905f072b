// SPDX-License-Identifier: MIT
// What the files of the algorithm framework share.
#ifndef LACONIC_ALGORITHM_HANDLE_H
#define LACONIC_ALGORITHM_HANDLE_H

#include "algorithm/algorithm.h"
#include "algorithm/memory.h"

enum { LACI_WARNING_SIZE = 256 };

struct lac_algorithm {
    const laci_algorithm_ops *ops;
    void *state; // settings, in the same block as this struct
    laci_worker worker;
    laci_memory memory;
    lac_nonfinite nonfinite;
    laci_item *items;     // room for the slices of a call
    uint64_t *next_round; // of each tensor
    char warning[LACI_WARNING_SIZE];
};

#endif
