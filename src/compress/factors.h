// SPDX-License-Identifier: MIT
// Thin factors of a matrix. All sums have a fixed order, so that the bits are
// the same with any kernels.
#ifndef LACONIC_COMPRESS_FACTORS_H
#define LACONIC_COMPRESS_FACTORS_H

#include <laconic/compress.h>

#include "kernels/kernels.h"

enum { LACI_RANK_MAX = 32 };

// Two factors of a matrix M of rows x cols, a column after the other: column j
// of P is p[j * rows ...], that of Q is q[j * cols ...]. M is near P Q^T.
typedef struct laci_factors {
    lac_shape shape;
    size_t rank; // at most LACI_RANK_MAX
    float *p;
    float *q;
} laci_factors;

// laci_factors_find computes the factors of `m` by subspace iteration from a
// random Q drawn with `key`.
void laci_factors_find(
    const laci_factors *f, const float *m, size_t iterations,
    const lac_key *key, const laci_kernels *kernels);

// laci_factors_write writes P Q^T to `x`.
void laci_factors_write(const laci_factors *f, float *x);

// laci_factors_add adds a * P Q^T to `y`, with the bits of writing it first
// and adding then.
void laci_factors_add(
    const laci_factors *f, float a, float *y, const laci_kernels *kernels);

// laci_factors_finite returns whether all values of P Q^T are finite.
bool laci_factors_finite(const laci_factors *f, const laci_kernels *kernels);

#endif
