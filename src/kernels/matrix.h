// SPDX-License-Identifier: MIT
// Products of a large matrix with a few vectors, and a few outer products added
// to it. The matrix X is stored row by row and read from memory once, for any
// number of vectors. The order of every sum is fixed: it does not depend on the
// number of vectors in a call, nor on how a caller splits X into calls, as long
// as it splits after a multiple of LACI_MATRIX_ROWS rows.
#ifndef LACONIC_KERNELS_MATRIX_H
#define LACONIC_KERNELS_MATRIX_H

#include <laconic/layout.h>

enum {
    LACI_MATRIX_LANES = 16,  // of a dot product: value i goes to lane i % 16
    LACI_MATRIX_BLOCK = 512, // values of it summed in float, blocks in double
    LACI_MATRIX_ROWS = 32,   // of X^T v summed apart, four at a time
    LACI_MATRIX_COLS = 256,  // with ROWS a part of X that stays in cache
};

// A vector and the destination of its product.
typedef struct laci_column {
    const float *in;
    float *out;
} laci_column;

// factor * left right^T
typedef struct laci_outer {
    float factor;
    const float *left;
    const float *right;
} laci_outer;

typedef struct laci_matrix_kernels {
    // out = X in
    void (*multiply)(
        const float *x, lac_shape shape, const laci_column *columns,
        size_t count);

    // out += X^T in
    void (*multiply_transposed)(
        const float *x, lac_shape shape, const laci_column *columns,
        size_t count);

    // Y = X + the outer products in their order, + update where there is one.
    // Y may be X.
    void (*add_outer)(
        const float *x, lac_shape shape, const laci_outer *terms, size_t count,
        const float *update, float *y);
} laci_matrix_kernels;

extern const laci_matrix_kernels laci_matrix_portable;
extern const laci_matrix_kernels laci_matrix_avx2;
extern const laci_matrix_kernels laci_matrix_avx2_plain;
extern const laci_matrix_kernels laci_matrix_avx512;
extern const laci_matrix_kernels laci_matrix_avx512_plain;

#endif
