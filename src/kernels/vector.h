// SPDX-License-Identifier: MIT
// Sums and combinations of whole vectors.
//
// The order of a sum is fixed, so that every set of kernels gives the same
// bits. It runs over blocks of LACI_SUM_BLOCK values: value i of a block is
// added to lane i % LACI_SUM_LANES in float; the lanes of a block are then
// added in pairs (lane j and j + 16, then j + 8, 4, 2, 1) and the blocks, in
// order, in double.
#ifndef LACONIC_KERNELS_VECTOR_H
#define LACONIC_KERNELS_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

enum { LACI_SUM_BLOCK = 512, LACI_SUM_LANES = 32 };

typedef struct laci_vector_kernels {
    // y += x
    void (*add)(const float *x, float *y, size_t n);

    // y += a * x, the product rounded before it is added
    void (*add_scaled)(float a, const float *x, float *y, size_t n);

    // y += a * x, for n floats in a payload
    void (*add_payload)(float a, const uint8_t *x, float *y, size_t n);

    // The sum of |x|. Not finite when a lane of a block overflows.
    double (*sum_magnitudes)(const float *x, size_t n);

    // The sum of x^2. Squares beyond the range of a float are lost or make it
    // infinite; laci_norm below handles that.
    double (*sum_squares)(const float *x, size_t n);

    // The largest |x| by its bits, so that a NaN is larger than an infinity.
    uint32_t (*max_magnitude)(const float *x, size_t n);

    // The same for n floats in a payload.
    uint32_t (*max_payload)(const uint8_t *x, size_t n);

    // Writes n floats to a payload, past the caches where that is possible, and
    // returns the largest |x| by its bits: for payloads that are larger than
    // the caches.
    uint32_t (*stream_payload)(const float *x, uint8_t *out, size_t n);
} laci_vector_kernels;

// The bits of an infinity. Magnitudes from here on are not finite.
#define LACI_INFINITY_BITS UINT32_C(0x7f800000)

extern const laci_vector_kernels laci_vector_portable;
extern const laci_vector_kernels laci_vector_avx2;
extern const laci_vector_kernels laci_vector_avx2_plain;
extern const laci_vector_kernels laci_vector_neon;

// laci_norm returns |x|_2 rounded to float, without overflow or underflow on
// the way: NaN when x has a NaN or an infinity, and the largest float when the
// norm is beyond it.
float laci_norm(const laci_vector_kernels *vector, const float *x, size_t n);

// laci_all_finite returns whether no value is an infinity or NaN.
static inline bool laci_all_finite(
    const laci_kernels *kernels, const float *x, size_t n)
{
    return kernels->vector->max_magnitude(x, n) < LACI_INFINITY_BITS;
}

#endif
