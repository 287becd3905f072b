// SPDX-License-Identifier: MIT
// The handle of an algorithm, which the files of the framework share.
#ifndef LACONIC_ALGORITHM_FRAMEWORK_HANDLE_H
#define LACONIC_ALGORITHM_FRAMEWORK_HANDLE_H

#include "algorithm/framework/memory.h"
#include "algorithm/framework/nonfinite.h"
#include "algorithm/framework/round.h"

enum { LACI_WARNING_SIZE = 256 };

// The progress of a tensor.
typedef struct laci_progress {
    uint64_t next_round;
    bool begun;      // next_round was begun and not ended
    lac_dtype dtype; // in which it was begun
    bool loaded;     // it was begun before the state was saved, in any dtype
    bool listed;     // in the call or the state that is being read
    uint64_t read_round; // in the state that is being read, with its BEGUN bit
} laci_progress;

struct lac_algorithm {
    const laci_algorithm_ops *ops;
    void *state; // settings, in the same block as this struct
    laci_worker worker;
    const lac_layout *given; // the caller's, which worker.layout differs from
    lac_layout *folded;      // in folded tensors; NULL without any
    laci_round round;        // its buffers are allocated once
    laci_field_table fields;
    laci_nonfinite nonfinite;
    laci_item *items;        // room for the slices of a call
    laci_progress *progress; // of each tensor
    bool started;            // or loaded
    char warning[LACI_WARNING_SIZE];
};

// laci_holds returns whether the algorithm holds rounds: see
// laci_algorithm_ops.
static inline bool laci_holds(const lac_algorithm *a)
{
    return a->ops->holds != NULL && a->ops->holds(a->state);
}

// laci_exchanges_in_begin returns whether begin makes the exchange of a round.
static inline bool laci_exchanges_in_begin(const lac_algorithm *a)
{
    return a->ops->begin != NULL && (a->ops->holds == NULL || laci_holds(a));
}

// laci_algorithm_use_kernels is for tests that compare sets of kernels: all
// give the same bits. This machine must be able to run `kernels`.
void laci_algorithm_use_kernels(lac_algorithm *a, const laci_kernels *kernels);

#endif
