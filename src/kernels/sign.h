// SPDX-License-Identifier: MIT
// Signs, eight a byte: a bit is set for a value below zero. -0 and NaN count as
// positive. Bits past the last value are 0.
//
// A sum of magnitudes has the bits of sum_magnitudes in kernels/vector.h.
#ifndef LACONIC_KERNELS_SIGN_H
#define LACONIC_KERNELS_SIGN_H

#include <stddef.h>
#include <stdint.h>

typedef struct laci_sign_kernels {
    // Writes the signs of x, returns the sum of |x|.
    double (*encode)(const float *x, size_t n, uint8_t *signs);

    // e = (e - scale * sign(e)) + x, then encode of e: both steps of an error
    // memory in one pass. Afterwards e has no -0, since a sum is -0 only if
    // both of its terms are. Before, e may have one only if the scale is 0.
    double (*encode_add)(
        float scale, const float *x, float *e, size_t n, uint8_t *signs);

    // out = e - scale * sign(e), of such an e; out may be e.
    void (*residual)(float scale, const float *e, float *out, size_t n);

    // x = scale * sign
    void (*decode)(float scale, const uint8_t *signs, float *x, size_t n);

    // y += a * (scale * sign)
    void (*decode_add)(
        float scale, const uint8_t *signs, float a, float *y, size_t n);
} laci_sign_kernels;

extern const laci_sign_kernels laci_sign_portable;
extern const laci_sign_kernels laci_sign_avx2;
extern const laci_sign_kernels laci_sign_avx2_plain;
extern const laci_sign_kernels laci_sign_neon;

#endif
