// SPDX-License-Identifier: MIT
// natural.c for arm64: the format of nine bits, 16 values at a time. Exponents
// at the top are rare and left to the portable code, like the window.
#include "kernels/natural.h"

#include "kernels/lanes_neon.h"

enum { BLOCK = 16, MANTISSA_BITS = 23 };

// laci_draw of base/draw.h for four indices. A counter is index *
// LACI_DRAW_STEP.
static inline uint32x4_t draw_four(
    const laci_stream *stream, uint32x4_t counter)
{
    uint32x4_t z = vaddq_u32(counter, vdupq_n_u32(stream->word[0]));
    z = veorq_u32(z, vshrq_n_u32(z, 16));
    z = vmlaq_u32(
        vdupq_n_u32(stream->word[1]), z, vdupq_n_u32(LACI_DRAW_FIRST));
    z = veorq_u32(z, vshrq_n_u32(z, 15));
    z = vmlaq_u32(
        vdupq_n_u32(stream->word[2]), z, vdupq_n_u32(LACI_DRAW_SECOND));
    z = veorq_u32(z, vshrq_n_u32(z, 15));
    return veorq_u32(z, vdupq_n_u32(stream->word[3]));
}

static inline uint32x4_t counters_from(uint32_t index)
{
    static const uint32_t lanes[4] = {0, 1, 2, 3};
    return vmulq_u32(
        vaddq_u32(vdupq_n_u32(index), vld1q_u32(lanes)),
        vdupq_n_u32(LACI_DRAW_STEP));
}

// The exponent fields of 16 values after rounding; writes their signs.
static inline uint8x16_t round_sixteen(
    const laci_stream *stream, uint32x4_t counter, const float *x,
    uint8_t *signs)
{
    uint32x4_t v[4];
    uint16x4_t field[4];
    for (uint32_t j = 0; j < 4; j++) {
        const uint32x4_t at =
            vaddq_u32(counter, vdupq_n_u32(4 * j * LACI_DRAW_STEP));
        const uint32x4_t noise = vshrq_n_u32(draw_four(stream, at), 9);
        v[j] = vreinterpretq_u32_f32(vld1q_f32(x + (size_t)4 * j));
        const uint32x4_t magnitude = vandq_u32(v[j], vdupq_n_u32(0x7fffffff));
        field[j] =
            vmovn_u32(vshrq_n_u32(vaddq_u32(magnitude, noise), MANTISSA_BITS));
    }
    for (size_t j = 0; j < 4; j += 2) {
        signs[j / 2] = laci_bits_of_masks(
            vcltzq_s32(vreinterpretq_s32_u32(v[j])),
            vcltzq_s32(vreinterpretq_s32_u32(v[j + 1])));
    }
    return vcombine_u8(
        vqmovn_u16(vcombine_u16(field[0], field[1])),
        vqmovn_u16(vcombine_u16(field[2], field[3])));
}

static void neon_fields_encode(
    const laci_stream *stream, uint32_t first, const float *x, size_t n,
    uint8_t *exponents, uint8_t *signs)
{
    const uint32x4_t step = vdupq_n_u32(BLOCK * LACI_DRAW_STEP);
    uint32x4_t counter = counters_from(first);
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        const uint8x16_t fields =
            round_sixteen(stream, counter, x + i, signs + i / 8);
        counter = vaddq_u32(counter, step);
        if (vmaxvq_u8(fields) > LACI_NATURAL_TOP) {
            laci_natural_portable.encode(
                stream, first + (uint32_t)i, x + i, BLOCK, exponents + i,
                signs + i / 8);
        } else {
            vst1q_u8(exponents + i, fields);
        }
    }
    laci_natural_portable.encode(
        stream, first + (uint32_t)i, x + i, n - i, exponents + i,
        signs + i / 8);
}

// Values [4j, 4j + 4) of eight.
static inline float32x4_t neon_fields_values(
    const uint8_t *exponents, uint8_t signs, int j)
{
    const uint16x8_t fields = vmovl_u8(vld1_u8(exponents));
    const uint32x4_t four =
        vmovl_u16(j == 0 ? vget_low_u16(fields) : vget_high_u16(fields));
    return vreinterpretq_f32_u32(
        vorrq_u32(vshlq_n_u32(four, MANTISSA_BITS), laci_signs_of(signs, j)));
}

static void neon_fields_decode(
    const uint8_t *exponents, const uint8_t *signs, float *x, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        vst1q_f32(x + i, neon_fields_values(exponents + i, signs[i / 8], 0));
        vst1q_f32(
            x + i + 4, neon_fields_values(exponents + i, signs[i / 8], 1));
    }
    laci_natural_portable.decode(exponents + i, signs + i / 8, x + i, n - i);
}

static void neon_fields_decode_add(
    const uint8_t *exponents, const uint8_t *signs, float a, float *y, size_t n)
{
    const float32x4_t factor = vdupq_n_f32(a);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (int j = 0; j < 2; j++) {
            float *const place = y + i + 4 * j;
            const float32x4_t product = vmulq_f32(
                factor, neon_fields_values(exponents + i, signs[i / 8], j));
            vst1q_f32(place, vaddq_f32(vld1q_f32(place), product));
        }
    }
    laci_natural_portable.decode_add(
        exponents + i, signs + i / 8, a, y + i, n - i);
}

static void neon_encode_window(
    const laci_stream *stream, uint32_t first, uint32_t top, const float *x,
    size_t n, uint8_t *codes)
{
    laci_natural_portable.encode_window(stream, first, top, x, n, codes);
}

static void neon_decode_window(
    uint32_t top, const uint8_t *codes, float *x, size_t n)
{
    laci_natural_portable.decode_window(top, codes, x, n);
}

static void neon_decode_window_add(
    uint32_t top, const uint8_t *codes, float a, float *y, size_t n)
{
    laci_natural_portable.decode_window_add(top, codes, a, y, n);
}

static uint32_t neon_least_code(const uint8_t *codes, size_t n)
{
    return laci_natural_portable.least_code(codes, n);
}

const laci_natural_kernels laci_natural_neon = {
    .encode = neon_fields_encode,
    .decode = neon_fields_decode,
    .decode_add = neon_fields_decode_add,
    .encode_window = neon_encode_window,
    .decode_window = neon_decode_window,
    .decode_window_add = neon_decode_window_add,
    .least_code = neon_least_code,
};
