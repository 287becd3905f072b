// SPDX-License-Identifier: MIT
// Floats of 16 bits: IEEE 754 binary16 ("half") and the upper half of a
// binary32 ("bfloat16"). In payloads they are little-endian, two bytes each; in
// arrays of the caller they have the byte order of the host.
//
// Rounding is to nearest, ties to even. Beyond the range, a finite value
// becomes the largest finite value in a payload, and an infinity in an array,
// as a cast does. Infinities stay. NaN stays NaN: it becomes quiet and keeps
// its sign and the upper bits of its payload.
#ifndef LACONIC_KERNELS_CONVERT_H
#define LACONIC_KERNELS_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The loops of one format.
typedef struct laci_float16_kernels {
    void (*encode)(const float *x, uint8_t *out, size_t n);
    void (*decode)(const uint8_t *in, float *x, size_t n);
    // y += a * values
    void (*decode_add)(const uint8_t *in, float a, float *y, size_t n);
    // Returns whether no value is an infinity or NaN.
    bool (*finite)(const uint8_t *in, size_t n);
    // From and to arrays.
    void (*load)(const uint16_t *in, float *x, size_t n);
    void (*store)(const float *x, uint16_t *out, size_t n);
} laci_float16_kernels;

typedef struct laci_convert_kernels {
    laci_float16_kernels half;
    laci_float16_kernels bfloat16;
} laci_convert_kernels;

// The exponent fields, which an infinity or NaN fills with ones.
enum { LACI_HALF_EXPONENT = 0x7c00, LACI_BFLOAT16_EXPONENT = 0x7f80 };

extern const laci_convert_kernels laci_convert_portable;
extern const laci_convert_kernels laci_convert_avx2;
extern const laci_convert_kernels laci_convert_avx2_plain;

// laci_load_doubles rounds n doubles to floats, to nearest, ties to even; one
// beyond the range becomes an infinity. laci_store_doubles is exact. Compilers
// vectorise both.
void laci_load_doubles(const double *in, float *x, size_t n);
void laci_store_doubles(const float *x, double *out, size_t n);

#endif
