// SPDX-License-Identifier: MIT
// Products of matrices, row after row.
#ifndef LACONIC_NN_MULTIPLY_H
#define LACONIC_NN_MULTIPLY_H

#include <laconic/laconic.h>

// c (m x n) = a (m x k) b (k x n), or c += a b. Of a factor marked _turned the
// memory holds the transpose. No gaps between rows.
typedef struct nn_product {
    size_t m, n, k;
    const float *a, *b;
    bool a_turned, b_turned;
    bool add;
    float *c;
} nn_product;

// nn_multiply fails with LAC_ERR_UNSUPPORTED.
lac_status nn_multiply(const nn_product *p);

#endif
