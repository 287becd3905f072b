// SPDX-License-Identifier: MIT
#include "kernels/gossip.h"

#include <string.h>

static void scale(float a, const float *x, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = a * x[i];
    }
}

static void subtract(const float *x, const float *y, float *z, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        z[i] = x[i] - y[i];
    }
}

static void apply(const float *x, const float *update, float *out, size_t n)
{
    if (update == NULL) {
        memmove(out, x, n * sizeof(*out));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = x[i] + update[i];
    }
}

static void pull(
    float a, const float *d, const float *x, const float *update, float *out,
    size_t n)
{
    if (update == NULL) {
        for (size_t i = 0; i < n; i++) {
            out[i] = x[i] + a * d[i];
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = x[i] + a * d[i] + update[i];
    }
}

static void combine(
    float a, const float *x, float b, const float *y, const float *update,
    float *z, size_t n)
{
    if (update == NULL) {
        for (size_t i = 0; i < n; i++) {
            z[i] = a * x[i] + b * y[i];
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        z[i] = a * x[i] + b * y[i] + update[i];
    }
}

const laci_gossip_kernels laci_gossip_portable = {
    .scale = scale,
    .subtract = subtract,
    .apply = apply,
    .pull = pull,
    .combine = combine,
};
