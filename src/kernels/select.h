// SPDX-License-Identifier: MIT
// Choosing values: by magnitude, and at random.
//
// A magnitude is the bits of |x| as an integer. Magnitudes are ordered like the
// values, with NaN above the infinity. Bits fill a byte
// from the lowest up; those left over in the last are zero.
#ifndef LACONIC_KERNELS_SELECT_H
#define LACONIC_KERNELS_SELECT_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/draw.h"

// Which values to take: those above a magnitude, and the first `ties` of
// those equal to it.
typedef struct laci_limit {
    uint32_t magnitude;
    size_t ties;
} laci_limit;

// One digit of magnitudes: `bits` bits (at most LACI_DIGIT_BITS) from `shift`
// upwards. Only magnitudes with these higher bits count.
enum { LACI_DIGIT_BITS = 11, LACI_DIGITS = 1 << LACI_DIGIT_BITS };

typedef struct laci_digit {
    unsigned shift;
    unsigned bits;
    uint32_t higher;
} laci_digit;

// The magnitudes of [low, high). `high` may be 2^31, above all magnitudes.
typedef struct laci_band {
    uint32_t low;
    uint32_t high;
} laci_band;

// How many values have magnitudes within a band, and above it.
typedef struct laci_census {
    size_t within;
    size_t above;
} laci_census;

// A permutation of [0, 2^b), b = high + low bits: a Feistel network of eight
// rounds on two halves, each at most 16 bits wide. Round t changes the low
// half when t is even, the high half when it is odd:
// half ^= draw(t << 16 | other half).
enum { LACI_PERMUTE_ROUNDS = 8 };

typedef struct laci_permutation {
    laci_stream stream;
    unsigned low_bits;
    unsigned high_bits;
} laci_permutation;

typedef struct laci_select_kernels {
    // Adds to counts[d] the number of values with the digit d.
    void (*count)(const float *x, size_t n, laci_digit digit, uint32_t *counts);

    // Writes the positions of the values within the limit, ascending, and the
    // values themselves unless values_out is NULL. Returns how many there are,
    // or cap + 1 when there are more than `cap`. It may write anything to the
    // rest of the first `cap` places, to all of them in the latter case.
    size_t (*collect)(
        const float *x, size_t n, laci_limit limit, size_t cap,
        uint32_t *indices_out, float *values_out);

    // Counts the values within a band and above it. Writes which are above, a
    // bit for each value, and those within, in their order, with their indices
    // unless they are more than `cap`. It may write anything to the rest of the
    // first `cap` places, to all of them in the latter case.
    laci_census (*survey)(
        const float *x, size_t n, laci_band band, size_t cap,
        uint8_t *above_out, float *values_out, uint32_t *indices_out);

    // Returns how many of n bits are ones, and writes where the first `cap` of
    // them are. It may write anything to the rest of these places.
    size_t (*expand)(
        const uint8_t *bits, size_t n, size_t cap, uint32_t *indices_out);

    // Replaces each value, which is below 2^b, by its image.
    void (*permute)(const laci_permutation *p, uint32_t *values, size_t n);
} laci_select_kernels;

extern const laci_select_kernels laci_select_portable;
extern const laci_select_kernels laci_select_avx2;
extern const laci_select_kernels laci_select_avx2_plain;

static inline uint32_t laci_magnitude(float x)
{
    return laci_bits_of(x) & 0x7fffffff;
}

static inline uint32_t laci_permute(const laci_permutation *p, uint32_t value)
{
    const uint32_t low_mask = (1u << p->low_bits) - 1;
    const uint32_t high_mask = (1u << p->high_bits) - 1;
    uint32_t low = value & low_mask;
    uint32_t high = value >> p->low_bits;
    for (uint32_t t = 0; t < LACI_PERMUTE_ROUNDS; t += 2) {
        low ^= laci_draw(&p->stream, t << 16 | high) & low_mask;
        high ^= laci_draw(&p->stream, (t + 1) << 16 | low) & high_mask;
    }
    return high << p->low_bits | low;
}

#endif
