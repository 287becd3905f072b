// SPDX-License-Identifier: MIT
// sign.c for AVX2. Sums have the lanes of vector_avx2.c.
#include "kernels/sign.h"

#include <immintrin.h>
#include <string.h>

#include "kernels/lanes_avx2.h"
#include "kernels/prefetch_avx2.h"
#include "kernels/vector.h"

// The prefetch distances of encode_add. They differ for its two arrays, so that
// the requests are spread out. The loop is bound by memory, so it prefetches
// twice: far ahead into the second cache, and shortly before the load into the
// first.
enum { PREFETCH_X = 16384, PREFETCH_E = 12288, PREFETCH_SOON = 2048 }; // bytes

static inline __m256 negative(__m256 x)
{
    return _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ);
}

// e - scale * sign(e); e is not -0, or the scale is 0.
static inline __m256 without_scale(__m256 scale, __m256 e)
{
    const __m256 top = _mm256_castsi256_ps(_mm256_set1_epi32(INT32_MIN));
    return _mm256_sub_ps(e, _mm256_or_ps(scale, _mm256_and_ps(e, top)));
}

static inline __m256 magnitude(__m256 x)
{
    const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    return _mm256_and_ps(x, mask);
}

static double avx2_signs_encode(const float *x, size_t n, uint8_t *signs)
{
    double sum = 0;
    size_t start = 0;
    for (; start + LACI_SUM_BLOCK <= n; start += LACI_SUM_BLOCK) {
        __m256 lanes[4] = {0};
        for (size_t i = start; i < start + LACI_SUM_BLOCK;
             i += LACI_SUM_LANES) {
            uint8_t bytes[4];
            laci_prefetch(x + i);
            for (size_t j = 0; j < 4; j++) {
                const __m256 v = _mm256_loadu_ps(x + i + 8 * j);
                lanes[j] = _mm256_add_ps(lanes[j], magnitude(v));
                bytes[j] = (uint8_t)_mm256_movemask_ps(negative(v));
            }
            memcpy(signs + i / 8, bytes, sizeof(bytes));
        }
        sum += (double)laci_sum_lanes(lanes);
    }
    return sum +
           laci_sign_portable.encode(x + start, n - start, signs + start / 8);
}

// Bit 8j + i of the result is lane i of masks[j].
static inline uint32_t avx2_bits_of(const __m256 masks[4])
{
    const __m256i low = _mm256_packs_epi32(
        _mm256_castps_si256(masks[0]), _mm256_castps_si256(masks[1]));
    const __m256i high = _mm256_packs_epi32(
        _mm256_castps_si256(masks[2]), _mm256_castps_si256(masks[3]));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return (uint32_t)_mm256_movemask_epi8(
        _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order));
}

static double avx2_signs_encode_add(
    float scale, const float *x, float *e, size_t n, uint8_t *signs)
{
    const __m256 factor = _mm256_set1_ps(scale);
    double sum = 0;
    size_t start = 0;
    for (; start + LACI_SUM_BLOCK <= n; start += LACI_SUM_BLOCK) {
        __m256 lanes[4] = {0};
        for (size_t i = start; i < start + LACI_SUM_BLOCK;
             i += LACI_SUM_LANES) {
            __m256 below[4];
            laci_prefetch_l2(x + i, PREFETCH_X);
            laci_prefetch_l2(e + i, PREFETCH_E);
            laci_prefetch_l1(x + i, PREFETCH_SOON);
            laci_prefetch_l1(e + i, PREFETCH_SOON);
            for (size_t j = 0; j < 4; j++) {
                const __m256 old = _mm256_loadu_ps(e + i + 8 * j);
                const __m256 v = _mm256_add_ps(
                    without_scale(factor, old), _mm256_loadu_ps(x + i + 8 * j));
                _mm256_storeu_ps(e + i + 8 * j, v);
                lanes[j] = _mm256_add_ps(lanes[j], magnitude(v));
                below[j] = negative(v);
            }
            const uint32_t bits = avx2_bits_of(below);
            memcpy(signs + i / 8, &bits, sizeof(bits));
        }
        sum += (double)laci_sum_lanes(lanes);
    }
    return sum + laci_sign_portable.encode_add(
                     scale, x + start, e + start, n - start, signs + start / 8);
}

static void avx2_signs_residual(
    float scale, const float *e, float *out, size_t n)
{
    const __m256 factor = _mm256_set1_ps(scale);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(
            out + i, without_scale(factor, _mm256_loadu_ps(e + i)));
    }
    laci_sign_portable.residual(scale, e + i, out + i, n - i);
}

// Values 8j to 8j + 7 of 32 whose signs are the bits of `signs`.
static inline __m256 signs_values_of(__m256 scale, __m256i signs, size_t j)
{
    const __m256i lanes = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    const __m256i shift =
        _mm256_sub_epi32(lanes, _mm256_set1_epi32((int)(8 * j)));
    const __m256i sign = _mm256_and_si256(
        _mm256_sllv_epi32(signs, shift), _mm256_set1_epi32(INT32_MIN));
    return _mm256_xor_ps(scale, _mm256_castsi256_ps(sign));
}

static inline __m256i signs_load_signs(const uint8_t *signs)
{
    int bits;
    memcpy(&bits, signs, sizeof(bits));
    return _mm256_set1_epi32(bits);
}

static void avx2_signs_decode(
    float scale, const uint8_t *signs, float *x, size_t n)
{
    const __m256 factor = _mm256_set1_ps(scale);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m256i sign = signs_load_signs(signs + i / 8);
        for (size_t j = 0; j < 4; j++) {
            _mm256_storeu_ps(x + i + 8 * j, signs_values_of(factor, sign, j));
        }
    }
    laci_sign_portable.decode(scale, signs + i / 8, x + i, n - i);
}

static void avx2_signs_decode_add(
    float scale, const uint8_t *signs, float a, float *y, size_t n)
{
    const __m256 factor = _mm256_set1_ps(scale);
    const __m256 times = _mm256_set1_ps(a);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m256i sign = signs_load_signs(signs + i / 8);
        laci_prefetch(y + i);
        for (size_t j = 0; j < 4; j++) {
            float *const place = y + i + 8 * j;
            const __m256 product =
                _mm256_mul_ps(times, signs_values_of(factor, sign, j));
            _mm256_storeu_ps(
                place, _mm256_add_ps(_mm256_loadu_ps(place), product));
        }
    }
    laci_sign_portable.decode_add(scale, signs + i / 8, a, y + i, n - i);
}

const laci_sign_kernels laci_sign_avx2 = {
    .encode = avx2_signs_encode,
    .encode_add = avx2_signs_encode_add,
    .residual = avx2_signs_residual,
    .decode = avx2_signs_decode,
    .decode_add = avx2_signs_decode_add,
};
