// SPDX-License-Identifier: MIT
#include "kernels/natural.h"

#include <stdbool.h>

#include "base/bytes.h"

enum { MANTISSA_BITS = 23 };

// Adds 23 random bits to the mantissa and returns the exponent. The carry
// rounds up with probability mantissa / 2^23, so the mean is exact.
static uint32_t round_exponent(uint32_t magnitude, uint32_t draw)
{
    if (magnitude >> MANTISSA_BITS >= LACI_NATURAL_TOP) {
        return magnitude >> MANTISSA_BITS;
    }
    return (magnitude + (draw >> (32 - MANTISSA_BITS))) >> MANTISSA_BITS;
}

static void fields_encode(
    const laci_stream *stream, uint32_t first, const float *x, size_t n,
    uint8_t *exponents, uint8_t *signs)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = laci_bits_of(x[i]);
        const uint32_t draw = laci_draw(stream, first + (uint32_t)i);
        const uint8_t sign = (uint8_t)(bits >> 31 << i % 8);
        exponents[i] = (uint8_t)round_exponent(bits & 0x7fffffff, draw);
        signs[i / 8] = i % 8 == 0 ? sign : signs[i / 8] | sign;
    }
}

static inline float fields_value_of(
    const uint8_t *exponents, const uint8_t *signs, size_t i)
{
    const uint32_t sign = (uint32_t)signs[i / 8] >> i % 8 & 1;
    return laci_float_of(sign << 31 | (uint32_t)exponents[i] << MANTISSA_BITS);
}

static void fields_decode(
    const uint8_t *exponents, const uint8_t *signs, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = fields_value_of(exponents, signs, i);
    }
}

static void fields_decode_add(
    const uint8_t *exponents, const uint8_t *signs, float a, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += a * fields_value_of(exponents, signs, i);
    }
}

// Whether a value below the least level of a window rounds up to it, which has
// probability magnitude / least level. The probability is a fraction of 24 bits
// over 2^shift, compared with `shift` random bits. The first 32 bits are nearly
// always enough; further ones come from the same stream with its words in
// another order.
static bool rounds_up(
    uint32_t magnitude, uint32_t least, laci_stream stream, uint32_t index)
{
    const uint32_t field = magnitude >> MANTISSA_BITS;
    const uint32_t mantissa = magnitude & 0x7fffff;
    uint32_t fraction = field > 0 ? mantissa | 0x800000 : mantissa;
    uint32_t shift = MANTISSA_BITS + least - (field > 0 ? field : 1);
    for (;;) {
        const uint32_t draw = laci_draw(&stream, index);
        if (shift <= 32) {
            return draw >> (32 - shift) < fraction;
        }
        shift -= 32;
        const uint32_t high = shift < 32 ? fraction >> shift : 0;
        if (draw != high) {
            return draw < high;
        }
        fraction -= shift < 32 ? high << shift : 0;
        const uint32_t word = stream.word[0];
        stream = (laci_stream){
            {stream.word[1], stream.word[2], stream.word[3], word}};
    }
}

static void encode_window(
    const laci_stream *stream, uint32_t first, uint32_t top, const float *x,
    size_t n, uint8_t *codes)
{
    const uint32_t least = laci_natural_least(top);
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = laci_bits_of(x[i]);
        const uint32_t magnitude = bits & 0x7fffffff;
        const uint32_t index = first + (uint32_t)i;
        uint32_t field = 0;
        if (least == 1 || magnitude >> MANTISSA_BITS >= least) {
            field = round_exponent(magnitude, laci_draw(stream, index));
        } else if (rounds_up(magnitude, least, *stream, index)) {
            field = least;
        }
        const uint32_t code =
            field == 0 ? 0 : field + LACI_NATURAL_WINDOW - top;
        codes[i] = (uint8_t)(bits >> 31 << 7 | code);
    }
}

static inline float value_in(uint32_t top, uint32_t byte)
{
    const uint32_t code = byte & 0x7f;
    const uint32_t field = code == 0 ? 0 : code + top - LACI_NATURAL_WINDOW;
    return laci_float_of(byte >> 7 << 31 | field << MANTISSA_BITS);
}

static void decode_window(
    uint32_t top, const uint8_t *codes, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = value_in(top, codes[i]);
    }
}

static void decode_window_add(
    uint32_t top, const uint8_t *codes, float a, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += a * value_in(top, codes[i]);
    }
}

static uint32_t least_code(const uint8_t *codes, size_t n)
{
    uint32_t least = 255;
    for (size_t i = 0; i < n; i++) {
        const uint32_t code = codes[i] & 0x7f;
        least = code != 0 && code < least ? code : least;
    }
    return least;
}

const laci_natural_kernels laci_natural_portable = {
    .encode = fields_encode,
    .decode = fields_decode,
    .decode_add = fields_decode_add,
    .encode_window = encode_window,
    .decode_window = decode_window,
    .decode_window_add = decode_window_add,
    .least_code = least_code,
};
