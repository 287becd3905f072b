// SPDX-License-Identifier: MIT
// vector.c for AVX2. Four registers of eight lanes are the 32 lanes of a sum.
#include "kernels/vector.h"

#include <immintrin.h>

#include "kernels/lanes_avx2.h"
#include "kernels/prefetch_avx2.h"

static void avx2_add(const float *x, float *y, size_t n)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        laci_prefetch(x + i);
        laci_prefetch(y + i);
        for (size_t j = i; j < i + 32; j += 8) {
            const __m256 sum =
                _mm256_add_ps(_mm256_loadu_ps(y + j), _mm256_loadu_ps(x + j));
            _mm256_storeu_ps(y + j, sum);
        }
    }
    laci_vector_portable.add(x + i, y + i, n - i);
}

// Payloads and x86 are both little-endian, and loads need no alignment.
static void avx2_add_payload(float a, const uint8_t *x, float *y, size_t n)
{
    const __m256 factor = _mm256_set1_ps(a);
    const float *const from = (const void *)x;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        laci_prefetch(from + i);
        laci_prefetch(y + i);
        for (size_t j = i; j < i + 32; j += 8) {
            const __m256 product =
                _mm256_mul_ps(factor, _mm256_loadu_ps(from + j));
            _mm256_storeu_ps(
                y + j, _mm256_add_ps(_mm256_loadu_ps(y + j), product));
        }
    }
    laci_vector_portable.add_payload(a, x + i * sizeof(float), y + i, n - i);
}

static void avx2_add_scaled(float a, const float *x, float *y, size_t n)
{
    avx2_add_payload(a, (const void *)x, y, n);
}

static double avx2_sum_magnitudes(const float *x, size_t n)
{
    const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    double sum = 0;
    size_t start = 0;
    for (; start + LACI_SUM_BLOCK <= n; start += LACI_SUM_BLOCK) {
        __m256 lanes[4] = {0};
        for (size_t i = 0; i < LACI_SUM_BLOCK; i += LACI_SUM_LANES) {
            for (size_t j = 0; j < 4; j++) {
                const __m256 v = _mm256_loadu_ps(x + start + i + 8 * j);
                lanes[j] = _mm256_add_ps(lanes[j], _mm256_and_ps(v, mask));
            }
        }
        sum += (double)laci_sum_lanes(lanes);
    }
    return sum + laci_vector_portable.sum_magnitudes(x + start, n - start);
}

static double avx2_sum_squares(const float *x, size_t n)
{
    double sum = 0;
    size_t start = 0;
    for (; start + LACI_SUM_BLOCK <= n; start += LACI_SUM_BLOCK) {
        __m256 lanes[4] = {0};
        for (size_t i = 0; i < LACI_SUM_BLOCK; i += LACI_SUM_LANES) {
            for (size_t j = 0; j < 4; j++) {
                const __m256 v = _mm256_loadu_ps(x + start + i + 8 * j);
                lanes[j] = _mm256_add_ps(lanes[j], _mm256_mul_ps(v, v));
            }
        }
        sum += (double)laci_sum_lanes(lanes);
    }
    return sum + laci_vector_portable.sum_squares(x + start, n - start);
}

// The largest of the eight lanes and of `rest`.
static uint32_t largest_lane(__m256i max, uint32_t rest)
{
    uint32_t lanes[8];
    _mm256_storeu_si256((void *)lanes, max);
    for (size_t j = 0; j < 8; j++) {
        rest = lanes[j] > rest ? lanes[j] : rest;
    }
    return rest;
}

static uint32_t avx2_max_payload(const uint8_t *x, size_t n)
{
    const float *const from = (const void *)x;
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    __m256i max = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        laci_prefetch(from + i);
        for (size_t j = i; j < i + 32; j += 8) {
            const __m256i v = _mm256_loadu_si256((const void *)(from + j));
            max = _mm256_max_epu32(max, _mm256_and_si256(v, mask));
        }
    }
    return largest_lane(
        max, laci_vector_portable.max_payload(x + i * sizeof(float), n - i));
}

static uint32_t avx2_max_magnitude(const float *x, size_t n)
{
    return avx2_max_payload((const void *)x, n);
}

// A streaming store needs an address that is a multiple of 32, which some float
// of the payload has if the first one is at a multiple of 4.
static uint32_t avx2_stream_payload(const float *x, uint8_t *out, size_t n)
{
    const size_t to_line = -(uintptr_t)out % 32 / sizeof(*x);
    const size_t head = (uintptr_t)out % sizeof(*x) != 0 ? n
                        : to_line < n                    ? to_line
                                                         : n;
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    uint32_t most = laci_vector_portable.stream_payload(x, out, head);
    __m256i max = _mm256_setzero_si256();
    float *const to = (void *)out;
    size_t i = head;
    for (; i + 32 <= n; i += 32) {
        laci_prefetch(x + i);
        for (size_t j = i; j < i + 32; j += 8) {
            const __m256i v = _mm256_loadu_si256((const void *)(x + j));
            max = _mm256_max_epu32(max, _mm256_and_si256(v, mask));
            _mm256_stream_si256((void *)(to + j), v);
        }
    }
    _mm_sfence(); // before other threads read the payload
    const uint32_t rest =
        laci_vector_portable.stream_payload(x + i, out + i * sizeof(*x), n - i);
    most = rest > most ? rest : most;
    return largest_lane(max, most);
}

const laci_vector_kernels laci_vector_avx2 = {
    .add = avx2_add,
    .add_scaled = avx2_add_scaled,
    .add_payload = avx2_add_payload,
    .sum_magnitudes = avx2_sum_magnitudes,
    .sum_squares = avx2_sum_squares,
    .max_magnitude = avx2_max_magnitude,
    .max_payload = avx2_max_payload,
    .stream_payload = avx2_stream_payload,
};
