// SPDX-License-Identifier: MIT
// sign.c for arm64. Sums have the lanes of vector_neon.c.
#include "kernels/sign.h"

#include "kernels/lanes_neon.h"
#include "kernels/vector.h"

// Writes the signs of 32 values and adds their magnitudes to the lanes.
static inline void signs_put(
    const float32x4_t v[LACI_SUM_REGISTERS],
    float32x4_t lanes[LACI_SUM_REGISTERS], uint8_t *signs)
{
    for (size_t j = 0; j < LACI_SUM_REGISTERS; j += 2) {
        lanes[j] = vaddq_f32(lanes[j], vabsq_f32(v[j]));
        lanes[j + 1] = vaddq_f32(lanes[j + 1], vabsq_f32(v[j + 1]));
        signs[j / 2] =
            laci_bits_of_masks(vcltzq_f32(v[j]), vcltzq_f32(v[j + 1]));
    }
}

static double neon_signs_encode(const float *x, size_t n, uint8_t *signs)
{
    double sum = 0;
    size_t start = 0;
    for (; start + LACI_SUM_BLOCK <= n; start += LACI_SUM_BLOCK) {
        float32x4_t lanes[LACI_SUM_REGISTERS] = {0};
        for (size_t i = start; i < start + LACI_SUM_BLOCK;
             i += LACI_SUM_LANES) {
            float32x4_t v[LACI_SUM_REGISTERS];
            for (size_t j = 0; j < LACI_SUM_REGISTERS; j++) {
                v[j] = vld1q_f32(x + i + 4 * j);
            }
            signs_put(v, lanes, signs + i / 8);
        }
        sum += (double)laci_sum_lanes(lanes);
    }
    return sum +
           laci_sign_portable.encode(x + start, n - start, signs + start / 8);
}

// e - scale * sign(e)
static inline float32x4_t neon_without_scale(float32x4_t scale, float32x4_t e)
{
    const uint32x4_t top = vdupq_n_u32(0x80000000u);
    return vsubq_f32(e, vbslq_f32(top, e, scale));
}

static double neon_signs_encode_add(
    float scale, const float *x, float *e, size_t n, uint8_t *signs)
{
    const float32x4_t factor = vdupq_n_f32(scale);
    double sum = 0;
    size_t start = 0;
    for (; start + LACI_SUM_BLOCK <= n; start += LACI_SUM_BLOCK) {
        float32x4_t lanes[LACI_SUM_REGISTERS] = {0};
        for (size_t i = start; i < start + LACI_SUM_BLOCK;
             i += LACI_SUM_LANES) {
            float32x4_t v[LACI_SUM_REGISTERS];
            for (size_t j = 0; j < LACI_SUM_REGISTERS; j++) {
                float *const place = e + i + 4 * j;
                v[j] = vaddq_f32(
                    neon_without_scale(factor, vld1q_f32(place)),
                    vld1q_f32(x + i + 4 * j));
                vst1q_f32(place, v[j]);
            }
            signs_put(v, lanes, signs + i / 8);
        }
        sum += (double)laci_sum_lanes(lanes);
    }
    return sum + laci_sign_portable.encode_add(
                     scale, x + start, e + start, n - start, signs + start / 8);
}

static void neon_signs_residual(
    float scale, const float *e, float *out, size_t n)
{
    const float32x4_t factor = vdupq_n_f32(scale);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        vst1q_f32(out + i, neon_without_scale(factor, vld1q_f32(e + i)));
    }
    laci_sign_portable.residual(scale, e + i, out + i, n - i);
}

// Values [4j, 4j + 4) of eight.
static inline float32x4_t neon_signs_values(
    float32x4_t scale, uint8_t byte, int j)
{
    return vreinterpretq_f32_u32(
        veorq_u32(vreinterpretq_u32_f32(scale), laci_signs_of(byte, j)));
}

static void neon_signs_decode(
    float scale, const uint8_t *signs, float *x, size_t n)
{
    const float32x4_t factor = vdupq_n_f32(scale);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        vst1q_f32(x + i, neon_signs_values(factor, signs[i / 8], 0));
        vst1q_f32(x + i + 4, neon_signs_values(factor, signs[i / 8], 1));
    }
    laci_sign_portable.decode(scale, signs + i / 8, x + i, n - i);
}

static void neon_signs_decode_add(
    float scale, const uint8_t *signs, float a, float *y, size_t n)
{
    const float32x4_t factor = vdupq_n_f32(scale), times = vdupq_n_f32(a);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (int j = 0; j < 2; j++) {
            float *const place = y + i + 4 * j;
            const float32x4_t product =
                vmulq_f32(times, neon_signs_values(factor, signs[i / 8], j));
            vst1q_f32(place, vaddq_f32(vld1q_f32(place), product));
        }
    }
    laci_sign_portable.decode_add(scale, signs + i / 8, a, y + i, n - i);
}

const laci_sign_kernels laci_sign_neon = {
    .encode = neon_signs_encode,
    .encode_add = neon_signs_encode_add,
    .residual = neon_signs_residual,
    .decode = neon_signs_decode,
    .decode_add = neon_signs_decode_add,
};
