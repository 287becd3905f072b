// SPDX-License-Identifier: MIT
// What PowerSGD does with a gradient and its error memory. The memory E of a
// matrix is kept as the last sum M and what was delivered of it, still to be
// subtracted: E = M - left right^T. Whoever reads M does that on the way, and
// so nothing is written only to be read again.
//
// The sum that is compressed, G + E, is made row by row, always in the same
// way: from M the columns of the factors are subtracted in their order, then G
// is added.
#ifndef LACONIC_KERNELS_POWERSGD_H
#define LACONIC_KERNELS_POWERSGD_H

#include <laconic/layout.h>

enum {
    LACI_POWERSGD_LANES = 8,   // of a row's product: value j goes to lane j % 8
    LACI_POWERSGD_BLOCK = 512, // values of it summed in float, then in double
    LACI_POWERSGD_ROWS = 4,    // that meet a column of a product at a time
    LACI_POWERSGD_RANK_MAX = 32,
};

// A matrix, given row by row, and the factors: `rank` columns each, one after
// the other.
typedef struct laci_residual {
    lac_shape shape;
    size_t rank;
    float *m;
    const float *left;  // columns of shape.rows values
    const float *right; // columns of shape.cols values
} laci_residual;

typedef struct laci_powersgd_kernels {
    // out = (G + E) in. Writes nothing else.
    void (*multiply)(
        const laci_residual *e, const float *g, const float *in, float *out);

    // out += (G + E)^T in. Writes nothing else.
    void (*multiply_transposed)(
        const laci_residual *e, const float *g, const float *in, float *out);

    // The same, and M = G + E.
    void (*absorb)(
        const laci_residual *e, const float *g, const float *in, float *out);

    // Y = left right^T, the columns added in their order.
    void (*reconstruct)(
        lac_shape shape, size_t rank, const float *left, const float *right,
        float *y);
} laci_powersgd_kernels;

extern const laci_powersgd_kernels laci_powersgd_portable;
extern const laci_powersgd_kernels laci_powersgd_avx2;

#endif
