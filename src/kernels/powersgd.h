// SPDX-License-Identifier: MIT
// PowerSGD's passes over a gradient G and its error memory E. The memory is
// stored as the last sum M that was compressed, and the factors that were
// delivered, which are still to be subtracted: E = M - left right^T. Reading M
// subtracts them, so a step reads and writes the memory once. The new sum
// S = G + E goes to another place: M stays unchanged until a step has
// succeeded.
//
// A value of S is computed from one of M: the columns of the factors are
// subtracted in their order, then G is added.
#ifndef LACONIC_KERNELS_POWERSGD_H
#define LACONIC_KERNELS_POWERSGD_H

#include <laconic/layout.h>

enum {
    LACI_POWERSGD_LANES = 8,   // of a row's product: value j goes to lane j % 8
    LACI_POWERSGD_BLOCK = 512, // values of it summed in float, then in double
    LACI_POWERSGD_RANK_MAX = 32,
};

// Matrices are given row by row, factors as `rank` columns, one after the
// other.
typedef struct laci_powersgd_sum {
    lac_shape shape;
    size_t rank;
    const float *g;
    const float *m;
    const float *left;  // columns of shape.rows values
    const float *right; // columns of shape.cols values
    float *s;           // is written
} laci_powersgd_sum;

typedef struct laci_powersgd_kernels {
    // S = G + E
    void (*sum)(const laci_powersgd_sum *x);

    // The same, and out = S in, of `rank` columns.
    void (*multiply)(const laci_powersgd_sum *x, const float *in, float *out);

    // Y = left right^T, the columns added in their order.
    void (*reconstruct)(
        lac_shape shape, size_t rank, const float *left, const float *right,
        float *y);
} laci_powersgd_kernels;

extern const laci_powersgd_kernels laci_powersgd_portable;
extern const laci_powersgd_kernels laci_powersgd_avx2;
extern const laci_powersgd_kernels laci_powersgd_avx2_plain;
extern const laci_powersgd_kernels laci_powersgd_avx512;
extern const laci_powersgd_kernels laci_powersgd_avx512_plain;
extern const laci_powersgd_kernels laci_powersgd_neon;

#endif
