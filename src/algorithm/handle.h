// SPDX-License-Identifier: MIT
// What the files of the algorithm framework share.
#ifndef LACONIC_ALGORITHM_HANDLE_H
#define LACONIC_ALGORITHM_HANDLE_H

#include "algorithm/algorithm.h"
#include "algorithm/memory.h"

enum { LACI_WARNING_SIZE = 256 };

// How far a tensor is.
typedef struct laci_progress {
    uint64_t next_round;
    bool begun; // next_round was begun and not ended
    bool named; // already, in what is being looked at
} laci_progress;

struct lac_algorithm {
    const laci_algorithm_ops *ops;
    void *state; // settings, in the same block as this struct
    laci_worker worker;
    laci_memory memory;
    lac_nonfinite nonfinite;
    laci_item *items;        // room for the slices of a call
    laci_progress *progress; // of each tensor
    uint8_t *unfit;          // which items are not finite; gradient family
    float *zeros;            // as many as the largest tensor has values
    float *kept;             // state that may have to be taken back
    float *raw;              // tensors that go raw
    bool started;            // or loaded
    char warning[LACI_WARNING_SIZE];
};

// laci_algorithm_open_group opens the group of `a`. Fails like laci_group_open.
lac_status laci_algorithm_open_group(
    lac_algorithm *a, const lac_algorithm_options *o);

// laci_algorithm_sum_max is the most floats of a sum, without notes.
size_t laci_algorithm_sum_max(const lac_algorithm *a);

// laci_algorithm_use_kernels is for tests, which compare sets of kernels: all
// give the same bits. `kernels` must be one that this machine can run.
void laci_algorithm_use_kernels(lac_algorithm *a, const laci_kernels *kernels);

#endif
