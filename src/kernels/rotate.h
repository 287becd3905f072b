// SPDX-License-Identifier: MIT
// Random rotations of blocks of values, and codes of rotated values.
//
// A block has n = 2^k values, k >= 6. Stage b replaces every two values u and v
// whose indices differ in bit b alone, u having the bit 0, by u + v and u - v.
// All k stages together multiply by a Hadamard matrix. The unequal stages b =
// 0, 1, 3 and 4 exist too: they replace u and v by 0.75 u + v and u - 0.75 v.
// A rotation is
//
//     signs of round 0; stages 3, 4, 5, 0, 1, 2, those four unequal;
//     stages 6 to k - 1; signs of round 1; stages 6 to k - 1;
//     stages 0, 1, 2, 3, 4, 5
//
// It multiplies lengths by n / 4 * (5/4)^4. Its transpose is
//
//     stages 3, 4, 5, 0, 1, 2; stages 6 to k - 1; signs of round 1;
//     stages 6 to k - 1; stages 0, 1, 2, 3, 4, 5, those four unequal;
//     signs of round 0
//
// The order of the stages is fixed, because it decides how sums are rounded.
//
// After one round, the result would show that a block has few values other than
// 0. After two, every value is nearly normal. But without the unequal stages
// the values of a block with one large value would be multiples of one number,
// among them many zeros, whose signs the small values would decide: with codes
// of 1 bit, the mean of what is decoded would be off by 8 % of the length at
// n = 64 and by 2 % at n = 1024.
//
// The sign at place p of round r is that of bit 31 - p / 8 % 32 of draw
// first + r * n / 8 + p / 256 * 8 + p % 8; 1 is minus. The place of index i is
// i in round 0. In round 1 it is i with its bits 0 to 2 and 3 to 5 exchanged,
// which is where the AVX2 kernels have the value in memory.
//
// Codes have a level, and above it the sign in bit `bits - 1`. Level j stands
// for laci_centres(bits)[j] / 4096: the centres of the best quantiser of normal
// deviates of variance 1 (Lloyd, Max).
#ifndef LACONIC_KERNELS_ROTATE_H
#define LACONIC_KERNELS_ROTATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/draw.h"

enum {
    LACI_ROTATE_MIN = 64,   // values of the smallest block
    LACI_ROTATE_MAX = 4096, // and of the largest
    LACI_ROTATE_BITS = 4,   // the most bits of a code
    LACI_CENTRES = 1 << (LACI_ROTATE_BITS - 1),
    LACI_CENTRE_UNIT = 4096,  // units of a centre in 1
    LACI_ROTATED_UNIT = 1024, // units of a rotated value in 1
    LACI_UNEQUAL_STAGES = 2,  // 0 and 1, and 3 higher
};

#define LACI_UNEQUAL 0.75f // the factor of unequal stages

typedef struct laci_rotation {
    laci_stream stream;
    uint32_t first; // draw
    size_t n;       // values
} laci_rotation;

// Sums over the values of a block. They are of integers, so that no order is
// better than another.
typedef struct laci_rotate_sums {
    uint64_t products; // of magnitudes and centres, both in their units
    uint64_t squares;  // of centres
} laci_rotate_sums;

typedef struct laci_rotate_kernels {
    // Writes the rotated values of x to y. The two do not overlap.
    void (*rotate)(const laci_rotation *r, const float *x, float *y);

    // Writes the codes of n values. y * scale is rounded to an integer, ties to
    // even, whose magnitude becomes 32767 if it is more. Its level is the
    // number of two neighbouring centres whose mean it exceeds. n is a multiple
    // of 64, |y * scale| at most 2^30.
    laci_rotate_sums (*quantise)(
        unsigned bits, float scale, const float *y, size_t n, uint8_t *codes);

    // Writes the transposed rotation of step times the values of the codes.
    // `work` has room for n floats.
    void (*decode)(
        const laci_rotation *r, unsigned bits, const uint8_t *codes, float step,
        float *work, float *x);

    // y += a * values, with the bits of decode and then an addition.
    void (*decode_add)(
        const laci_rotation *r, unsigned bits, const uint8_t *codes, float step,
        float *work, float a, float *y);
} laci_rotate_kernels;

extern const laci_rotate_kernels laci_rotate_portable;
extern const laci_rotate_kernels laci_rotate_avx2;
extern const laci_rotate_kernels laci_rotate_avx2_plain;
extern const laci_rotate_kernels laci_rotate_avx512;
extern const laci_rotate_kernels laci_rotate_avx512_plain;

// laci_centres returns the centres of codes of 1 to 4 bits, ascending. Those
// that a code of so many bits does not have are 0.
const int16_t *laci_centres(unsigned bits);

#endif
