// SPDX-License-Identifier: MIT
// Distances, computed in blocks that stay in the cache.
#include "cli/average/distance.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 512 };

#define GROWTH_LIMIT 1e6

// Without the sign, the bits of floats have the order of their magnitudes, and
// NaN comes after infinity.
double cli_magnitude(const float *x, size_t n)
{
    const uint32_t infinity = 0x7f800000, all_but_sign = 0x7fffffff;
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        bits &= all_but_sign;
        most = bits > most ? bits : most;
    }
    most = most > infinity ? infinity : most;
    float value;
    memcpy(&value, &most, sizeof(value));
    return (double)value;
}

bool cli_diverged(double initial_magnitude, double magnitude)
{
    const double start = initial_magnitude == 0 ? 1 : initial_magnitude;
    return !isfinite(magnitude) || magnitude > GROWTH_LIMIT * start;
}

void cli_mean(
    const float *const *rows, uint32_t count, size_t n, double *mean_out)
{
    memset(mean_out, 0, n * sizeof(*mean_out));
    for (uint32_t k = 0; k < count; k++) {
        for (size_t i = 0; i < n; i++) {
            mean_out[i] += (double)rows[k][i];
        }
    }
    for (size_t i = 0; i < n; i++) {
        mean_out[i] /= count;
    }
}

void cli_distance(
    const float *const *rows, uint32_t count, size_t n, const double *mean,
    double *error_out, double *drift_out)
{
    double error = 0, drift = 0;
    for (size_t at = 0; at < n; at += BLOCK) {
        const size_t width = n - at < BLOCK ? n - at : BLOCK;
        double sum[BLOCK] = {0};
        for (uint32_t k = 0; k < count; k++) {
            const float *const row = rows[k] + at;
            for (size_t i = 0; i < width; i++) {
                const double d = (double)row[i] - mean[at + i];
                sum[i] += d;
                error += d * d;
            }
        }
        for (size_t i = 0; i < width; i++) {
            drift += sum[i] / count * (sum[i] / count);
        }
    }
    *error_out = error / count;
    *drift_out = drift;
}
