// SPDX-License-Identifier: MIT
#include "kernels/rotate.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/bytes.h"

enum { MAGNITUDE_MAX = 32767 };

const int16_t *laci_centres(unsigned bits)
{
    static const int16_t centres[LACI_ROTATE_BITS][LACI_CENTRES] = {
        {3268},
        {1855, 6187},
        {1004, 3097, 5505, 8814},
        {526, 1589, 2690, 3860, 5146, 6628, 8475, 11193},
    };
    return centres[bits - 1];
}

static void stage(float *y, size_t n, unsigned bit)
{
    const size_t distance = (size_t)1 << bit;
    for (size_t start = 0; start < n; start += 2 * distance) {
        for (size_t i = start; i < start + distance; i++) {
            const float u = y[i], v = y[i + distance];
            y[i] = u + v;
            y[i + distance] = u - v;
        }
    }
}

static void unequal_stage(float *y, size_t n, unsigned bit)
{
    const size_t distance = (size_t)1 << bit;
    for (size_t start = 0; start < n; start += 2 * distance) {
        for (size_t i = start; i < start + distance; i++) {
            const float u = y[i], v = y[i + distance];
            y[i] = LACI_UNEQUAL * u + v;
            y[i + distance] = u - LACI_UNEQUAL * v;
        }
    }
}

// Stages 0 to 5, from `first` on.
static void low_stages(float *y, size_t n, unsigned first, bool unequal)
{
    for (unsigned i = 0; i < 6; i++) {
        const unsigned bit = (first + i) % 6;
        if (unequal && bit % 3 < LACI_UNEQUAL_STAGES) {
            unequal_stage(y, n, bit);
        } else {
            stage(y, n, bit);
        }
    }
}

static void high_stages(float *y, size_t n)
{
    for (unsigned bit = 6; n >> bit > 1; bit++) {
        stage(y, n, bit);
    }
}

static float signed_at(
    const laci_rotation *r, uint32_t round, uint32_t place, float y)
{
    const uint32_t index =
        r->first + round * (uint32_t)(r->n / 8) + place / 256 * 8 + place % 8;
    const uint32_t draw = laci_draw(&r->stream, index);
    return laci_float_of(laci_bits_of(y) ^ (draw << place / 8 % 32 & 1u << 31));
}

// The place of index i in round 1.
static uint32_t exchanged(uint32_t i)
{
    return (i & ~UINT32_C(63)) | i % 8 * 8 | i / 8 % 8;
}

// The two rounds but for the signs of the first. Those stages that are unequal
// come first in a rotation, and last in its transpose.
static void stages(const laci_rotation *r, bool unequal_first, float *y)
{
    low_stages(y, r->n, 3, unequal_first);
    high_stages(y, r->n);
    for (uint32_t i = 0; i < r->n; i++) {
        y[i] = signed_at(r, 1, exchanged(i), y[i]);
    }
    high_stages(y, r->n);
    low_stages(y, r->n, 0, !unequal_first);
}

static void rotate_block(const laci_rotation *r, const float *x, float *y)
{
    for (uint32_t i = 0; i < r->n; i++) {
        y[i] = signed_at(r, 0, i, x[i]);
    }
    stages(r, true, y);
}

static uint32_t rotate_level(
    const int16_t *centres, unsigned bits, int32_t magnitude)
{
    const int32_t twice = 2 * LACI_CENTRE_UNIT / LACI_ROTATED_UNIT;
    uint32_t level = 0;
    for (unsigned j = 1; j < 1u << (bits - 1); j++) {
        level += twice * magnitude > centres[j - 1] + centres[j];
    }
    return level;
}

static laci_rotate_sums quantise(
    unsigned bits, float scale, const float *y, size_t n, uint8_t *codes)
{
    const int16_t *const centres = laci_centres(bits);
    laci_rotate_sums sums = {0};
    for (size_t i = 0; i < n; i++) {
        const int32_t value = (int32_t)lrintf(y[i] * scale);
        const int32_t size = abs(value);
        const int32_t magnitude = size < MAGNITUDE_MAX ? size : MAGNITUDE_MAX;
        const uint32_t level = rotate_level(centres, bits, magnitude);
        const uint64_t centre = (uint64_t)centres[level];
        codes[i] = (uint8_t)(level | (uint32_t)(value < 0) << (bits - 1));
        sums.products += (uint64_t)magnitude * centre;
        sums.squares += centre * centre;
    }
    return sums;
}

static void rotate_decode(
    const laci_rotation *r, unsigned bits, const uint8_t *codes, float step,
    float *work, float *x)
{
    const int16_t *const centres = laci_centres(bits);
    for (size_t i = 0; i < r->n; i++) {
        const uint32_t level = codes[i] & ((1u << (bits - 1)) - 1);
        const float centre = (float)centres[level] / LACI_CENTRE_UNIT;
        work[i] = codes[i] >> (bits - 1) != 0 ? -centre * step : centre * step;
    }
    stages(r, false, work);
    for (uint32_t i = 0; i < r->n; i++) {
        x[i] = signed_at(r, 0, i, work[i]);
    }
}

static void rotate_decode_add(
    const laci_rotation *r, unsigned bits, const uint8_t *codes, float step,
    float *work, float a, float *y)
{
    rotate_decode(r, bits, codes, step, work, work);
    for (size_t i = 0; i < r->n; i++) {
        y[i] += a * work[i];
    }
}

const laci_rotate_kernels laci_rotate_portable = {
    .rotate = rotate_block,
    .quantise = quantise,
    .decode = rotate_decode,
    .decode_add = rotate_decode_add,
};
