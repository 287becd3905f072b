// SPDX-License-Identifier: MIT
// Products of row-major matrices.
#ifndef LACONIC_NN_MULTIPLY_H
#define LACONIC_NN_MULTIPLY_H

#include <laconic/laconic.h>

// c (m x n) = a (m x k) b (k x n), or c += a b if `add`. A factor marked
// _transposed is stored as its transpose. Rows are contiguous.
typedef struct nn_product {
    size_t m, n, k;
    const float *a, *b;
    bool a_transposed, b_transposed;
    bool add;
    float *c;
} nn_product;

// nn_multiply fails with LAC_ERR_UNSUPPORTED or LAC_ERR_NOMEM.
lac_status nn_multiply(const nn_product *p);

#endif
