// SPDX-License-Identifier: MIT
#include "kernels/sign.h"

#include <math.h>

#include "base/bytes.h"
#include "kernels/vector.h"

static void put_signs(const float *x, size_t n, uint8_t *signs)
{
    for (size_t i = 0; i < n; i += 8) {
        const size_t count = n - i < 8 ? n - i : 8;
        unsigned byte = 0;
        for (size_t j = 0; j < count; j++) {
            byte |= (x[i + j] < 0 ? 1u : 0u) << j;
        }
        signs[i / 8] = (uint8_t)byte;
    }
}

static double signs_encode(const float *x, size_t n, uint8_t *signs)
{
    put_signs(x, n, signs);
    return laci_vector_portable.sum_magnitudes(x, n);
}

static inline float signed_scale(float scale, uint32_t negative)
{
    return laci_float_of(laci_bits_of(scale) ^ negative << 31);
}

static void signs_residual(float scale, const float *e, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = e[i] - copysignf(scale, e[i]);
    }
}

static double signs_encode_add(
    float scale, const float *x, float *e, size_t n, uint8_t *signs)
{
    signs_residual(scale, e, e, n);
    laci_vector_portable.add(x, e, n);
    return signs_encode(e, n, signs);
}

static inline float signs_value_of(float scale, const uint8_t *signs, size_t i)
{
    return signed_scale(scale, (uint32_t)signs[i / 8] >> i % 8 & 1);
}

static void signs_decode(float scale, const uint8_t *signs, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = signs_value_of(scale, signs, i);
    }
}

static void signs_decode_add(
    float scale, const uint8_t *signs, float a, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += a * signs_value_of(scale, signs, i);
    }
}

const laci_sign_kernels laci_sign_portable = {
    .encode = signs_encode,
    .encode_add = signs_encode_add,
    .residual = signs_residual,
    .decode = signs_decode,
    .decode_add = signs_decode_add,
};
