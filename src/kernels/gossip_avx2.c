// SPDX-License-Identifier: MIT
// gossip.c for AVX2: eight values at a time, the rest by the portable kernels.
#include "kernels/gossip.h"

#include <immintrin.h>

static void avx2_scale(float a, const float *x, float *y, size_t n)
{
    const __m256 factor = _mm256_set1_ps(a);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(y + i, _mm256_mul_ps(factor, _mm256_loadu_ps(x + i)));
    }
    laci_gossip_portable.scale(a, x + i, y + i, n - i);
}

static void avx2_subtract(const float *x, const float *y, float *z, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 difference =
            _mm256_sub_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i));
        _mm256_storeu_ps(z + i, difference);
    }
    laci_gossip_portable.subtract(x + i, y + i, z + i, n - i);
}

static void avx2_apply(
    const float *x, const float *update, float *out, size_t n)
{
    if (update == NULL) {
        laci_gossip_portable.apply(x, NULL, out, n);
        return;
    }
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 sum =
            _mm256_add_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(update + i));
        _mm256_storeu_ps(out + i, sum);
    }
    laci_gossip_portable.apply(x + i, update + i, out + i, n - i);
}

static void avx2_pull(
    float a, const float *d, const float *x, const float *update, float *out,
    size_t n)
{
    const __m256 factor = _mm256_set1_ps(a);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 sum = _mm256_add_ps(
            _mm256_loadu_ps(x + i),
            _mm256_mul_ps(factor, _mm256_loadu_ps(d + i)));
        if (update != NULL) {
            sum = _mm256_add_ps(sum, _mm256_loadu_ps(update + i));
        }
        _mm256_storeu_ps(out + i, sum);
    }
    laci_gossip_portable.pull(
        a, d + i, x + i, update == NULL ? NULL : update + i, out + i, n - i);
}

static void avx2_combine(
    float a, const float *x, float b, const float *y, const float *update,
    float *z, size_t n)
{
    const __m256 left = _mm256_set1_ps(a), right = _mm256_set1_ps(b);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 sum = _mm256_add_ps(
            _mm256_mul_ps(left, _mm256_loadu_ps(x + i)),
            _mm256_mul_ps(right, _mm256_loadu_ps(y + i)));
        if (update != NULL) {
            sum = _mm256_add_ps(sum, _mm256_loadu_ps(update + i));
        }
        _mm256_storeu_ps(z + i, sum);
    }
    laci_gossip_portable.combine(
        a, x + i, b, y + i, update == NULL ? NULL : update + i, z + i, n - i);
}

const laci_gossip_kernels laci_gossip_avx2 = {
    .scale = avx2_scale,
    .subtract = avx2_subtract,
    .apply = avx2_apply,
    .pull = avx2_pull,
    .combine = avx2_combine,
};
