// SPDX-License-Identifier: MIT
// Sums and ReLUs, value by value, over memories of equal descriptions: however
// they are ordered and padded, they are flat vectors. One pass does what would
// be two primitives; it is the memory that takes the time.
#ifndef LACONIC_NN_ELEMENTWISE_H
#define LACONIC_NN_ELEMENTWISE_H

#include "nn/dnnl_plan.h"

// A pass over n floats, of the memories that the functions below name; others
// are 0. `out` may be `a`, but no other memory. A pass must outlive its plan.
typedef struct nn_pass {
    nn_mem a, b, y, out;
    bool relu;
    const nn_plan *plan; // this and n are filled in
    size_t n;
} nn_pass;

// nn_plan_add does out = a + b next, or its ReLU.
void nn_plan_add(nn_plan *plan, nn_pass *pass);

// nn_plan_mask does out = a + b next, or a alone if there is no b, and 0 where
// y, if there is one, is not positive.
void nn_plan_mask(nn_plan *plan, nn_pass *pass);

#endif
