// SPDX-License-Identifier: MIT
#include "kernels/vector.h"

#include <float.h>
#include <math.h>

#include "base/bytes.h"

static void add(const float *x, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += x[i];
    }
}

static void add_scaled(float a, const float *x, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += a * x[i];
    }
}

static void add_payload(float a, const uint8_t *x, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += a * laci_get_f32(x + sizeof(float) * i);
    }
}

static float sum_lanes(float lanes[LACI_SUM_LANES])
{
    for (size_t half = LACI_SUM_LANES / 2; half > 0; half /= 2) {
        for (size_t j = 0; j < half; j++) {
            lanes[j] += lanes[j + half];
        }
    }
    return lanes[0];
}

static double sum_magnitudes(const float *x, size_t n)
{
    double sum = 0;
    for (size_t start = 0; start < n; start += LACI_SUM_BLOCK) {
        const size_t stop =
            n - start < LACI_SUM_BLOCK ? n : start + LACI_SUM_BLOCK;
        float lanes[LACI_SUM_LANES] = {0};
        for (size_t i = start; i < stop; i++) {
            lanes[(i - start) % LACI_SUM_LANES] += fabsf(x[i]);
        }
        sum += (double)sum_lanes(lanes);
    }
    return sum;
}

static double sum_squares(const float *x, size_t n)
{
    double sum = 0;
    for (size_t start = 0; start < n; start += LACI_SUM_BLOCK) {
        const size_t stop =
            n - start < LACI_SUM_BLOCK ? n : start + LACI_SUM_BLOCK;
        float lanes[LACI_SUM_LANES] = {0};
        for (size_t i = start; i < stop; i++) {
            lanes[(i - start) % LACI_SUM_LANES] += x[i] * x[i];
        }
        sum += (double)sum_lanes(lanes);
    }
    return sum;
}

static uint32_t max_magnitude(const float *x, size_t n)
{
    uint32_t max = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = laci_bits_of(x[i]) & 0x7fffffff;
        max = magnitude > max ? magnitude : max;
    }
    return max;
}

static uint32_t max_payload(const uint8_t *x, size_t n)
{
    uint32_t max = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude =
            laci_get_u32(x + sizeof(float) * i) & 0x7fffffff;
        max = magnitude > max ? magnitude : max;
    }
    return max;
}

static uint32_t stream_payload(const float *x, uint8_t *out, size_t n)
{
    laci_put_floats(out, x, n);
    return max_magnitude(x, n);
}

const laci_vector_kernels laci_vector_portable = {
    .add = add,
    .add_scaled = add_scaled,
    .add_payload = add_payload,
    .sum_magnitudes = sum_magnitudes,
    .sum_squares = sum_squares,
    .max_magnitude = max_magnitude,
    .max_payload = max_payload,
    .stream_payload = stream_payload,
};

// The squares of ordinary values are within floats. If values are huge or tiny,
// the squares are summed again in double.
float laci_norm(const laci_vector_kernels *vector, const float *x, size_t n)
{
    const double quick = vector->sum_squares(x, n);
    if (quick >= 0x1p-60 && quick <= 0x1p120) {
        return (float)sqrt(quick);
    }
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i] * (double)x[i];
    }
    const double norm = sqrt(sum);
    if (!isfinite(norm)) {
        return NAN;
    }
    return norm > (double)FLT_MAX ? FLT_MAX : (float)norm;
}
