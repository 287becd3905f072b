// SPDX-License-Identifier: MIT
#include "kernels/convert.h"

#include "base/bytes.h"

#define FLOAT_INFINITY    0x7f800000u
#define FLOAT_QUIET       0x00400000u
#define BFLOAT16_MAX      0x7f7fu
#define BFLOAT16_INFINITY 0x7f80u
#define HALF_INFINITY     0x7c00u
#define HALF_MAX          0x7bffu
#define HALF_QUIET        0x0200u
#define HALF_LEAST        0x38800000u // 2^-14, the least normal, as a float
#define HALF_BEYOND       0x47800000u // 2^16
#define HALF_REBIAS       0x38000000u // 127 - 15 exponents
#define HALF_SHIFT        13

// Drops `shift` bits, to nearest, ties to even.
static inline uint32_t round_off(uint32_t value, uint32_t shift)
{
    const uint32_t half = (1u << (shift - 1)) - 1;
    return (value + half + (value >> shift & 1)) >> shift;
}

// Below 2^-14 a half counts units of 2^-24; a carry makes the least normal.
static uint32_t half_of_small(uint32_t magnitude)
{
    const uint32_t field = magnitude >> 23;
    if (field < 102) {
        return 0; // below 2^-25
    }
    return round_off((magnitude & 0x7fffff) | 0x800000, 126 - field);
}

// `most` is what a finite value beyond the range becomes.
static inline uint32_t half_of(float x, uint32_t most)
{
    const uint32_t bits = laci_bits_of(x);
    const uint32_t magnitude = bits & 0x7fffffff;
    uint32_t half;
    if (magnitude > FLOAT_INFINITY) {
        const uint32_t payload = (magnitude & 0x7fffff) >> HALF_SHIFT;
        half = HALF_INFINITY | HALF_QUIET | payload;
    } else if (magnitude == FLOAT_INFINITY) {
        half = HALF_INFINITY;
    } else if (magnitude >= HALF_BEYOND) {
        half = most;
    } else if (magnitude >= HALF_LEAST) {
        half = round_off(magnitude - HALF_REBIAS, HALF_SHIFT);
        half = half > HALF_MAX ? most : half;
    } else {
        half = half_of_small(magnitude);
    }
    return bits >> 31 << 15 | half;
}

static float half_value(uint32_t half)
{
    const uint32_t sign = half >> 15 << 31;
    const uint32_t magnitude = half & 0x7fff;
    const uint32_t shifted = magnitude << HALF_SHIFT;
    if (magnitude > HALF_INFINITY) {
        return laci_float_of(sign | FLOAT_INFINITY | FLOAT_QUIET | shifted);
    }
    if (magnitude == HALF_INFINITY) {
        return laci_float_of(sign | FLOAT_INFINITY);
    }
    if (magnitude < 0x0400) {
        const uint32_t bits = laci_bits_of((float)magnitude * 0x1p-24f);
        return laci_float_of(sign | bits);
    }
    return laci_float_of(sign | (shifted + HALF_REBIAS));
}

static void half_encode(const float *x, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        laci_put_u16(out + 2 * i, half_of(x[i], HALF_MAX));
    }
}

static void half_decode(const uint8_t *in, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = half_value(laci_get_u16(in + 2 * i));
    }
}

static void half_decode_add(const uint8_t *in, float a, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += a * half_value(laci_get_u16(in + 2 * i));
    }
}

static void half_load(const uint16_t *in, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = half_value(in[i]);
    }
}

static void half_store(const float *x, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = (uint16_t)half_of(x[i], HALF_INFINITY);
    }
}

static inline uint32_t bfloat16_of(float x, uint32_t most)
{
    const uint32_t bits = laci_bits_of(x);
    const uint32_t magnitude = bits & 0x7fffffff;
    uint32_t upper;
    if (magnitude > FLOAT_INFINITY) {
        upper = (magnitude | FLOAT_QUIET) >> 16;
    } else if (magnitude == FLOAT_INFINITY) {
        upper = BFLOAT16_INFINITY;
    } else {
        upper = round_off(magnitude, 16);
        upper = upper > BFLOAT16_MAX ? most : upper;
    }
    return bits >> 31 << 15 | upper;
}

static void bfloat16_encode(const float *x, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        laci_put_u16(out + 2 * i, bfloat16_of(x[i], BFLOAT16_MAX));
    }
}

static void bfloat16_decode(const uint8_t *in, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = laci_float_of(laci_get_u16(in + 2 * i) << 16);
    }
}

static void bfloat16_decode_add(const uint8_t *in, float a, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += a * laci_float_of(laci_get_u16(in + 2 * i) << 16);
    }
}

static void bfloat16_load(const uint16_t *in, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = laci_float_of((uint32_t)in[i] << 16);
    }
}

static void bfloat16_store(const float *x, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = (uint16_t)bfloat16_of(x[i], BFLOAT16_INFINITY);
    }
}

// Whether no value has all the bits of the exponent field.
static bool convert_all_finite(uint16_t exponent, const uint8_t *in, size_t n)
{
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        finite &= (laci_get_u16(in + 2 * i) & exponent) != exponent;
    }
    return finite;
}

static bool half_finite(const uint8_t *in, size_t n)
{
    return convert_all_finite(LACI_HALF_EXPONENT, in, n);
}

static bool bfloat16_finite(const uint8_t *in, size_t n)
{
    return convert_all_finite(LACI_BFLOAT16_EXPONENT, in, n);
}

const laci_convert_kernels laci_convert_portable = {
    .half =
        {half_encode, half_decode, half_decode_add, half_finite, half_load,
         half_store},
    .bfloat16 =
        {bfloat16_encode, bfloat16_decode, bfloat16_decode_add, bfloat16_finite,
         bfloat16_load, bfloat16_store},
};

void laci_load_doubles(const double *in, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)in[i];
    }
}

void laci_store_doubles(const float *x, double *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = (double)x[i];
    }
}
