// SPDX-License-Identifier: MIT
// The ops that the dithering compressors share. A tensor is split into buckets,
// and the values of a bucket are rounded to levels in proportion to its norm.
// The state holds what differs between the compressors.
//
// Payload for n values in buckets: the norm of each bucket, as a float, then
// the codes of all values, packed as in kernels/pack.h, in bits
// = ceil(log2(levels + 1)) + 1 each: the level, and above it the sign. A value
// of level 0 keeps its sign.
//
// A bucket with an infinity or a NaN has the norm NaN and codes 0, and decodes
// to NaN throughout. A bucket of zeros has the norm 0 and codes 0. The
// contractive form has its factor 1 / (1 + omega) in the norm.
#ifndef LACONIC_COMPRESS_DITHER_H
#define LACONIC_COMPRESS_DITHER_H

#include <laconic/compress.h>

#include "kernels/dither.h"
#include "kernels/kernels.h"

typedef enum laci_dither_norm { LACI_NORM_2, LACI_NORM_INF } laci_dither_norm;

typedef struct laci_dither_state {
    // Settings.
    uint32_t levels;
    uint32_t norm;   // a laci_dither_norm
    uint32_t bucket; // 0: the whole tensor

    // Set by the compressor's configure.
    const char *name;
    unsigned bits; // of a code
    bool words;    // codes are uint32_t, not uint8_t
    bool uniform;  // level j is j * (norm / levels)
    double lowest; // level 1, in norms
    const laci_dither_codes *(*codes)(const laci_kernels *kernels);
    // The law of a bucket of d values, unbiased.
    double (*omega)(const struct laci_dither_state *s, size_t d);
} laci_dither_state;

// laci_dither_bits returns the bits of a code: a level, and a sign.
unsigned laci_dither_bits(uint32_t levels);

lac_guarantee laci_dither_guarantee(
    const void *state, lac_shape shape, lac_form form);
size_t laci_dither_group(const void *state);
size_t laci_dither_bound(const void *state, lac_shape shape);
size_t laci_dither_scratch(const void *state, lac_shape shape);
size_t laci_dither_encode(
    const void *state, const lac_call *call, const float *x, uint8_t *out);
lac_status laci_dither_check(
    const void *state, const lac_call *call, const uint8_t *in, size_t len);
void laci_dither_decode(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float *x);
bool laci_dither_encodes_parts(const void *state);
void laci_dither_encode_part(
    const void *state, const lac_call *call, const float *x, lac_part part,
    uint8_t *out);
void laci_dither_decode_add_part(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    lac_part part, float a, float *y);
bool laci_dither_finite(
    const void *state, const lac_call *call, const uint8_t *in, size_t len);
double laci_dither_growth(const void *state, lac_shape shape, lac_form form);

#endif
