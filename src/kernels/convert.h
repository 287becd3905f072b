// SPDX-License-Identifier: MIT
// Floats of 16 bits: IEEE 754 binary16 ("half") and the upper half of a
// binary32 ("bfloat16"), little-endian, two bytes each.
//
// Rounding is to nearest, ties to even. A finite value stays finite: beyond
// the range it becomes the largest value there is. Infinities stay, and NaN
// stays NaN: made quiet, with its sign and the upper bits of its payload.
#ifndef LACONIC_KERNELS_CONVERT_H
#define LACONIC_KERNELS_CONVERT_H

#include <stddef.h>
#include <stdint.h>

typedef struct laci_convert_kernels {
    void (*to_half)(const float *x, uint8_t *out, size_t n);
    void (*from_half)(const uint8_t *in, float *x, size_t n);
    // y += a * values
    void (*add_half)(const uint8_t *in, float a, float *y, size_t n);

    void (*to_bfloat16)(const float *x, uint8_t *out, size_t n);
    void (*from_bfloat16)(const uint8_t *in, float *x, size_t n);
    // y += a * values
    void (*add_bfloat16)(const uint8_t *in, float a, float *y, size_t n);
} laci_convert_kernels;

extern const laci_convert_kernels laci_convert_portable;
extern const laci_convert_kernels laci_convert_avx2;

#endif
