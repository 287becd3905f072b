// SPDX-License-Identifier: MIT
// The ops of half and bfloat16, which differ only in their format.
//
// Payload for n values: n floats of 16 bits, little-endian, 2n bytes.
#ifndef LACONIC_COMPRESS_FLOAT16_H
#define LACONIC_COMPRESS_FLOAT16_H

#include <laconic/compress.h>

#include "kernels/convert.h"
#include "kernels/kernels.h"

// One format. The state of a handle is a pointer to it, set by configure.
typedef struct laci_float16 {
    const char *name;
    double error; // the square of the relative rounding error
    const laci_float16_kernels *(*kernels)(const laci_kernels *kernels);
} laci_float16;

// LACI_FLOAT16_OPS fills the members of an ops table that the formats share.
#define LACI_FLOAT16_OPS                                                       \
    .plugin.size = sizeof(lac_compressor_ops),                                 \
    .plugin.state_size = sizeof(const laci_float16 *),                         \
    .traits = LAC_TRAIT_DETERMINISTIC | LAC_TRAIT_ELEMENTWISE |                \
              LAC_TRAIT_FIXED_SIZE,                                            \
    .guarantee = laci_float16_guarantee, .bound = laci_float16_bound,          \
    .encode = laci_float16_encode, .check = laci_float16_check,                \
    .decode = laci_float16_decode,                                             \
    .decode_add_part = laci_float16_decode_add_part,                           \
    .encode_part = laci_float16_encode_part, .finite = laci_float16_finite,    \
    .growth = laci_growth_one

lac_guarantee laci_float16_guarantee(
    const void *state, lac_shape shape, lac_form form);
size_t laci_float16_bound(const void *state, lac_shape shape);
size_t laci_float16_encode(
    const void *state, const lac_call *call, const float *x, uint8_t *out);
void laci_float16_encode_part(
    const void *state, const lac_call *call, const float *x, lac_part part,
    uint8_t *out);
lac_status laci_float16_check(
    const void *state, const lac_call *call, const uint8_t *in, size_t len);
void laci_float16_decode(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float *x);
void laci_float16_decode_add_part(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    lac_part part, float a, float *y);
bool laci_float16_finite(
    const void *state, const lac_call *call, const uint8_t *in, size_t len);

#endif
