// SPDX-License-Identifier: MIT
// Thin factors of a matrix, and payloads that hold them. All sums have a fixed
// order, so that the bits are the same with any kernels.
#ifndef LACONIC_COMPRESS_FACTORS_H
#define LACONIC_COMPRESS_FACTORS_H

#include <laconic/compress.h>

#include "kernels/kernels.h"

enum { LACI_RANK_MAX = 32 };

// Two factors of a matrix M of rows x cols, a column after the other: column j
// of P is p[j * rows ...], that of Q is q[j * cols ...]. M is near P Q^T.
typedef struct laci_factors {
    lac_shape shape;
    size_t n;    // values of P Q^T that are used, the others are last
    size_t rank; // at most LACI_RANK_MAX
    float *p;
    float *q;
} laci_factors;

// laci_factors_of returns the factors of a tensor that is viewed as a matrix of
// shape `viewed`, without their memory. Their rank is at most `rank`, and 0 for
// a tensor of fewer values than its factors: it is sent unchanged.
laci_factors laci_factors_of(lac_shape shape, lac_shape viewed, size_t rank);

// laci_factors_floats returns the floats of a payload: P and Q, or the tensor.
size_t laci_factors_floats(const laci_factors *f);

// laci_factors_place gives the factors their memory, P followed by Q. A rank of
// 0 needs none.
void laci_factors_place(laci_factors *f, float *scratch);

// laci_factors_draw fills Q with normal deviates, and laci_factors_multiply
// computes P = M Q.
void laci_factors_draw(const laci_factors *f, const lac_key *key);
void laci_factors_multiply(
    const laci_factors *f, const float *m, const laci_kernels *kernels);

// laci_factors_find computes the factors of `m` by subspace iteration from a
// random Q drawn with `key`.
void laci_factors_find(
    const laci_factors *f, const float *m, size_t iterations,
    const lac_key *key, const laci_kernels *kernels);

// laci_factors_put writes `n` floats of factors to a payload. All NaNs get the
// same bits: those of a sum of NaNs depend on the order of its operands, which
// compilers choose, and payloads would differ between kernels.
void laci_factors_put(float *x, size_t n, uint8_t *out);

// laci_factors_read reads P and Q of a payload, if it has factors.
void laci_factors_read(const laci_factors *f, const uint8_t *in);

// laci_factors_decode writes the first n values of P Q^T to `x`, or those of
// the payload `in` if the rank is 0.
void laci_factors_decode(const laci_factors *f, const uint8_t *in, float *x);

// laci_factors_decode_add adds `a` times them to `y`, with the bits of decoding
// first and adding then.
void laci_factors_decode_add(
    const laci_factors *f, const uint8_t *in, float a, float *y,
    const laci_kernels *kernels);

// laci_factors_finite returns whether all of them are finite.
bool laci_factors_finite(
    const laci_factors *f, const uint8_t *in, const laci_kernels *kernels);

#endif
