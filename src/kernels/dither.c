// SPDX-License-Identifier: MIT
#include "kernels/dither.h"

#include <math.h>

#include "base/bytes.h"

enum { EXPONENT_BIAS = 127, MANTISSA_BITS = 23, FRACTION_BITS = 16 };

static uint32_t noise_of(const laci_stream *stream, uint32_t i)
{
    const uint32_t draw = laci_draw(stream, i / 16 * 8 + i % 8);
    return i / 8 % 2 == 0 ? draw & 0xffff : draw >> 16;
}

static uint32_t code_of(const laci_dither *d, uint32_t level, float x)
{
    const uint32_t sign = laci_bits_of(x) >> 31;
    return sign << (d->bits - 1) | (level < d->levels ? level : d->levels);
}

static uint32_t uniform_code(
    const laci_dither *d, float scale, float x, uint32_t i)
{
    const float v = fabsf(x) * scale;
    const uint32_t whole = (uint32_t)v;
    const float fraction = (v - (float)whole) * 0x1p16f;
    const uint32_t sum = (uint32_t)lrintf(fraction) + noise_of(&d->stream, i);
    return code_of(d, whole + (sum >> FRACTION_BITS), x);
}

static float scale_of(const laci_dither *d)
{
    return (float)d->levels / d->norm;
}

static void bytes_encode(
    const laci_dither *d, const float *x, size_t n, uint32_t first, void *codes)
{
    uint8_t *const out = codes;
    const float scale = scale_of(d);
    for (size_t i = 0; i < n; i++) {
        out[i] = (uint8_t)uniform_code(d, scale, x[i], first + (uint32_t)i);
    }
}

static void words_encode(
    const laci_dither *d, const float *x, size_t n, uint32_t first, void *codes)
{
    uint32_t *const out = codes;
    const float scale = scale_of(d);
    for (size_t i = 0; i < n; i++) {
        out[i] = uniform_code(d, scale, x[i], first + (uint32_t)i);
    }
}

static float with_sign(const laci_dither *d, uint32_t code, float magnitude)
{
    const uint32_t sign = code >> (d->bits - 1) << 31;
    return laci_float_of(laci_bits_of(magnitude) ^ sign);
}

static uint32_t level_of(const laci_dither *d, uint32_t code)
{
    return code & ((UINT32_C(1) << (d->bits - 1)) - 1);
}

static float uniform_value(const laci_dither *d, float step, uint32_t code)
{
    return with_sign(d, code, (float)level_of(d, code) * step);
}

static float dither_step_of(const laci_dither *d)
{
    return d->norm / (float)d->levels;
}

static void bytes_decode(
    const laci_dither *d, const void *codes, size_t n, float *x)
{
    const uint8_t *const in = codes;
    const float step = dither_step_of(d);
    for (size_t i = 0; i < n; i++) {
        x[i] = uniform_value(d, step, in[i]);
    }
}

static void bytes_decode_add(
    const laci_dither *d, const void *codes, size_t n, float a, float *y)
{
    const uint8_t *const in = codes;
    const float step = dither_step_of(d);
    for (size_t i = 0; i < n; i++) {
        y[i] += a * uniform_value(d, step, in[i]);
    }
}

static void words_decode(
    const laci_dither *d, const void *codes, size_t n, float *x)
{
    const uint32_t *const in = codes;
    const float step = dither_step_of(d);
    for (size_t i = 0; i < n; i++) {
        x[i] = uniform_value(d, step, in[i]);
    }
}

static void words_decode_add(
    const laci_dither *d, const void *codes, size_t n, float a, float *y)
{
    const uint32_t *const in = codes;
    const float step = dither_step_of(d);
    for (size_t i = 0; i < n; i++) {
        y[i] += a * uniform_value(d, step, in[i]);
    }
}

static void powers_encode(
    const laci_dither *d, const float *x, size_t n, uint32_t first, void *codes)
{
    uint8_t *const out = codes;
    const float top = ldexpf(1, (int)d->levels - 1);
    for (size_t i = 0; i < n; i++) {
        const float z = fabsf(x[i]) / d->norm * top;
        const float w = z + (z < 1 ? 1 : z);
        const uint32_t draw = laci_draw(&d->stream, first + (uint32_t)i);
        const uint32_t carried = laci_bits_of(w) + (draw >> 9);
        const uint32_t level = (carried >> MANTISSA_BITS) - EXPONENT_BIAS;
        out[i] = (uint8_t)code_of(d, level, x[i]);
    }
}

static float natural_value(const laci_dither *d, uint32_t code)
{
    const uint32_t level = level_of(d, code);
    const uint32_t exponent = EXPONENT_BIAS - d->levels + level;
    const uint32_t power = level == 0 ? 0 : exponent << MANTISSA_BITS;
    return with_sign(d, code, laci_float_of(power) * d->norm);
}

static void powers_decode(
    const laci_dither *d, const void *codes, size_t n, float *x)
{
    const uint8_t *const in = codes;
    for (size_t i = 0; i < n; i++) {
        x[i] = natural_value(d, in[i]);
    }
}

static void powers_decode_add(
    const laci_dither *d, const void *codes, size_t n, float a, float *y)
{
    const uint8_t *const in = codes;
    for (size_t i = 0; i < n; i++) {
        y[i] += a * natural_value(d, in[i]);
    }
}

const laci_dither_kernels laci_dither_portable = {
    .bytes = {bytes_encode, bytes_decode, bytes_decode_add},
    .words = {words_encode, words_decode, words_decode_add},
    .natural = {powers_encode, powers_decode, powers_decode_add},
};
