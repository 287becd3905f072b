// SPDX-License-Identifier: MIT
// Sums and ReLUs over memories with equal descriptions. Whatever their order
// and padding, they are flat vectors. One pass replaces two primitives, because
// memory bandwidth is the limit.
#ifndef LACONIC_NN_ELEMENTWISE_H
#define LACONIC_NN_ELEMENTWISE_H

#include "nn/dnnl_plan.h"

// A pass over n floats. Memories that a function below does not use are 0.
// `out` may be `a`, but no other memory. A pass must outlive its plan.
typedef struct nn_pass {
    nn_mem a, b, y, out;
    bool relu;
    const nn_plan *plan; // this and n are set by the functions below
    size_t n;
} nn_pass;

// nn_plan_add adds the step out = a + b, or its ReLU.
void nn_plan_add(nn_plan *plan, nn_pass *pass);

// nn_plan_mask adds the step out = a + b, or out = a if b is 0; unless y is 0,
// out becomes 0 where y is not positive.
void nn_plan_mask(nn_plan *plan, nn_pass *pass);

#endif
