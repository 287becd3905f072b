// SPDX-License-Identifier: MIT
// Sums and ReLUs, value by value, over memories of equal descriptions: so that
// no matter how they are ordered and padded, they are flat vectors. One pass
// does what would be two primitives, and memory is what it takes time for.
#ifndef LACONIC_NN_ELEMENTWISE_H
#define LACONIC_NN_ELEMENTWISE_H

#include "nn/dnnl_plan.h"

// A pass over n floats; some members may be 0, see below. It must outlive the
// plan.
typedef struct nn_pass {
    const nn_plan *plan;
    nn_mem a, b, y, out;
    size_t n;
    bool relu;
} nn_pass;

// nn_plan_add does out = a + b next, or its ReLU.
void nn_plan_add(nn_plan *plan, nn_pass *pass);

// nn_plan_mask does out = a + b next, or a alone if there is no b, and 0 where
// y, if there is one, is not positive.
void nn_plan_mask(nn_plan *plan, nn_pass *pass);

#endif
