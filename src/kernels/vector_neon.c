// SPDX-License-Identifier: MIT
// vector.c for arm64. Eight registers of four lanes are the 32 lanes of a sum.
// The compiler vectorises the other loops of vector.c as well as these.
#include "kernels/vector.h"

#include "base/bytes.h"
#include "kernels/lanes_neon.h"

static void neon_add(const float *x, float *y, size_t n)
{
    laci_vector_portable.add(x, y, n);
}

static void neon_add_scaled(float a, const float *x, float *y, size_t n)
{
    laci_vector_portable.add_scaled(a, x, y, n);
}

// Payloads and this processor are both little-endian.
static void neon_add_payload(float a, const uint8_t *x, float *y, size_t n)
{
    const float32x4_t factor = vdupq_n_f32(a);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const float32x4_t values =
            vreinterpretq_f32_u8(vld1q_u8(x + i * sizeof(float)));
        vst1q_f32(
            y + i, vaddq_f32(vld1q_f32(y + i), vmulq_f32(factor, values)));
    }
    laci_vector_portable.add_payload(a, x + i * sizeof(float), y + i, n - i);
}

static double neon_sum_magnitudes(const float *x, size_t n)
{
    double sum = 0;
    size_t start = 0;
    for (; start + LACI_SUM_BLOCK <= n; start += LACI_SUM_BLOCK) {
        float32x4_t lanes[LACI_SUM_REGISTERS] = {0};
        for (size_t i = 0; i < LACI_SUM_BLOCK; i += LACI_SUM_LANES) {
            for (size_t j = 0; j < LACI_SUM_REGISTERS; j++) {
                const float32x4_t v = vld1q_f32(x + start + i + 4 * j);
                lanes[j] = vaddq_f32(lanes[j], vabsq_f32(v));
            }
        }
        sum += (double)laci_sum_lanes(lanes);
    }
    return sum + laci_vector_portable.sum_magnitudes(x + start, n - start);
}

static double neon_sum_squares(const float *x, size_t n)
{
    double sum = 0;
    size_t start = 0;
    for (; start + LACI_SUM_BLOCK <= n; start += LACI_SUM_BLOCK) {
        float32x4_t lanes[LACI_SUM_REGISTERS] = {0};
        for (size_t i = 0; i < LACI_SUM_BLOCK; i += LACI_SUM_LANES) {
            for (size_t j = 0; j < LACI_SUM_REGISTERS; j++) {
                const float32x4_t v = vld1q_f32(x + start + i + 4 * j);
                lanes[j] = vaddq_f32(lanes[j], vmulq_f32(v, v));
            }
        }
        sum += (double)laci_sum_lanes(lanes);
    }
    return sum + laci_vector_portable.sum_squares(x + start, n - start);
}

static uint32_t neon_max_payload(const uint8_t *x, size_t n)
{
    const uint32x4_t mask = vdupq_n_u32(0x7fffffff);
    uint32x4_t max = vdupq_n_u32(0);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const uint32x4_t bits =
            vreinterpretq_u32_u8(vld1q_u8(x + i * sizeof(float)));
        max = vmaxq_u32(max, vandq_u32(bits, mask));
    }
    const uint32_t most = vmaxvq_u32(max);
    const uint32_t rest =
        laci_vector_portable.max_payload(x + i * sizeof(float), n - i);
    return most > rest ? most : rest;
}

static uint32_t neon_max_magnitude(const float *x, size_t n)
{
    return neon_max_payload((const void *)x, n);
}

static uint32_t neon_stream_payload(const float *x, uint8_t *out, size_t n)
{
    laci_put_floats(out, x, n);
    return neon_max_magnitude(x, n);
}

const laci_vector_kernels laci_vector_neon = {
    .add = neon_add,
    .add_scaled = neon_add_scaled,
    .add_payload = neon_add_payload,
    .sum_magnitudes = neon_sum_magnitudes,
    .sum_squares = neon_sum_squares,
    .max_magnitude = neon_max_magnitude,
    .max_payload = neon_max_payload,
    .stream_payload = neon_stream_payload,
};
