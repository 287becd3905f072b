// SPDX-License-Identifier: MIT
// Random rounding of values to a few levels in proportion to a norm. A code is
// a level, with the sign of the value above it in bit `bits - 1`. A value that
// is rounded to level 0 keeps its sign.
//
// Uniform levels: level j stands for j * (norm / levels). A value becomes a
// fixed-point number v = |x| * (levels / norm), with its fraction rounded to 16
// bits, ties to even. Then 16 random bits are added, and the integer part of
// the sum is the level. Value i of a tensor takes its bits from draw
// i / 16 * 8 + i % 8: the low half when i / 8 is even, the high half when it
// is odd, so that two registers of values share one register of draws.
//
// Natural levels: level j > 0 stands for norm * 2^(j - levels). With
// z = |x| / norm * 2^(levels - 1), the number w = z + max(z, 1) has the level
// as its exponent: 1 + z below the lowest power, where level 1 has probability
// z, and 2z above. The upper 23 bits of draw i, added to the mantissa of w,
// carry into the exponent with the probability that makes it unbiased.
#ifndef LACONIC_KERNELS_DITHER_H
#define LACONIC_KERNELS_DITHER_H

#include <stddef.h>
#include <stdint.h>

#include "base/draw.h"

enum {
    LACI_DITHER_BYTE_LEVELS = 127,    // the most levels of a code in a byte
    LACI_DITHER_WORD_LEVELS = 65535,  // and of one in a word
    LACI_DITHER_NATURAL_LEVELS = 127, // the lowest is then 2^-126
};

// The parameters that all values of a bucket share.
typedef struct laci_dither {
    laci_stream stream; // for encoding
    float norm;
    uint32_t levels;
    unsigned bits; // of a code; its level has one less
} laci_dither;

typedef struct laci_dither_codes {
    // Writes the codes of n values, the first of which is value `first` of its
    // tensor. A value that is larger than the norm, as it may be by rounding,
    // gets the highest level. The norm must be at least LACI_DITHER_NORM_MIN.
    void (*encode)(
        const laci_dither *d, const float *x, size_t n, uint32_t first,
        void *codes);

    // Writes the values of n codes. A norm of NaN makes all of them NaN.
    void (*decode)(const laci_dither *d, const void *codes, size_t n, float *x);

    // y += a * values, with the bits of decode and then an addition.
    void (*decode_add)(
        const laci_dither *d, const void *codes, size_t n, float a, float *y);
} laci_dither_codes;

// Levels times 2^16 over a norm below this might be infinite.
#define LACI_DITHER_NORM_MIN 0x1p-64f

typedef struct laci_dither_kernels {
    laci_dither_codes bytes;   // codes are uint8_t
    laci_dither_codes words;   // codes are uint32_t
    laci_dither_codes natural; // codes are uint8_t
} laci_dither_kernels;

extern const laci_dither_kernels laci_dither_portable;
extern const laci_dither_kernels laci_dither_avx2;
extern const laci_dither_kernels laci_dither_avx2_plain;

#endif
