// SPDX-License-Identifier: MIT
// convert.c for AVX2 and F16C.
#include "kernels/convert.h"

#include <immintrin.h>
#include <stdbool.h>

#include "kernels/prefetch_avx2.h"

enum { BLOCK = 32 };

static inline __m256 infinite(__m256 x)
{
    const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    const __m256 infinity = _mm256_castsi256_ps(_mm256_set1_epi32(0x7f800000));
    return _mm256_cmp_ps(_mm256_and_ps(x, mask), infinity, _CMP_EQ_OQ);
}

// The instruction turns values beyond the range into infinities, so they are
// clamped first. A minimum with NaN is its second argument.
static inline __m128i avx2_half_of(__m256 x)
{
    const __m256 most = _mm256_set1_ps(65504.0f);
    const __m256 least = _mm256_set1_ps(-65504.0f);
    const __m256 inside = _mm256_max_ps(least, _mm256_min_ps(most, x));
    return _mm256_cvtps_ph(
        _mm256_blendv_ps(inside, x, infinite(x)), _MM_FROUND_TO_NEAREST_INT);
}

static void avx2_half_encode(const float *x, uint8_t *out, size_t n)
{
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        laci_prefetch(x + i);
        for (size_t j = i; j < i + BLOCK; j += 8) {
            _mm_storeu_si128(
                (void *)(out + 2 * j), avx2_half_of(_mm256_loadu_ps(x + j)));
        }
    }
    laci_convert_portable.half.encode(x + i, out + 2 * i, n - i);
}

static inline __m256 load_half(const uint8_t *in)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)in));
}

static inline __m256 load_bfloat16(const uint8_t *in)
{
    const __m256i upper =
        _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)in));
    return _mm256_castsi256_ps(_mm256_slli_epi32(upper, 16));
}

static inline void convert_add_to(float *y, __m256 a, __m256 values)
{
    _mm256_storeu_ps(
        y, _mm256_add_ps(_mm256_loadu_ps(y), _mm256_mul_ps(a, values)));
}

static void avx2_half_decode(const uint8_t *in, float *x, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(x + i, load_half(in + 2 * i));
    }
    laci_convert_portable.half.decode(in + 2 * i, x + i, n - i);
}

static void avx2_half_decode_add(const uint8_t *in, float a, float *y, size_t n)
{
    const __m256 factor = _mm256_set1_ps(a);
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        laci_prefetch(y + i);
        for (size_t j = i; j < i + BLOCK; j += 8) {
            convert_add_to(y + j, factor, load_half(in + 2 * j));
        }
    }
    laci_convert_portable.half.decode_add(in + 2 * i, a, y + i, n - i);
}

static void avx2_half_load(const uint16_t *in, float *x, size_t n)
{
    avx2_half_decode((const uint8_t *)in, x, n);
}

static void avx2_half_store(const float *x, uint16_t *out, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m128i halves =
            _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((void *)(out + i), halves);
    }
    laci_convert_portable.half.store(x + i, out + i, n - i);
}

// Whether the magnitude of one of 16 floats has bits above `most`.
static inline bool convert_has_above(__m256i low, __m256i high, int most)
{
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    const __m256i larger = _mm256_max_epi32(
        _mm256_and_si256(low, mask), _mm256_and_si256(high, mask));
    return _mm256_movemask_epi8(
               _mm256_cmpgt_epi32(larger, _mm256_set1_epi32(most))) != 0;
}

// The upper halves of eight floats, rounded, in the lower halves of the lanes.
static inline __m256i avx2_bfloat16_of(__m256i v)
{
    const __m256i odd =
        _mm256_and_si256(_mm256_srli_epi32(v, 16), _mm256_set1_epi32(1));
    const __m256i half = _mm256_set1_epi32(0x7fff);
    return _mm256_srli_epi32(
        _mm256_add_epi32(_mm256_add_epi32(v, half), odd), 16);
}

// Rounds 16 floats, unless the magnitude of one has bits above `most`.
static inline bool avx2_bfloat16_round(const float *x, int most, void *out)
{
    const __m256i low = _mm256_loadu_si256((const void *)x);
    const __m256i high = _mm256_loadu_si256((const void *)(x + 8));
    if (convert_has_above(low, high, most)) {
        return false;
    }
    const __m256i packed =
        _mm256_packus_epi32(avx2_bfloat16_of(low), avx2_bfloat16_of(high));
    _mm256_storeu_si256(
        out, _mm256_permute4x64_epi64(packed, _MM_SHUFFLE(3, 1, 2, 0)));
    return true;
}

// Values that would round to an infinity, infinities and NaN are left to the
// portable kernel.
static inline void avx2_bfloat16_put(const float *x, uint8_t *out)
{
    if (!avx2_bfloat16_round(x, 0x7f7f7fff, out)) {
        laci_convert_portable.bfloat16.encode(x, out, 16);
    }
}

static void avx2_bfloat16_encode(const float *x, uint8_t *out, size_t n)
{
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        laci_prefetch(x + i);
        avx2_bfloat16_put(x + i, out + 2 * i);
        avx2_bfloat16_put(x + i + 16, out + 2 * i + 32);
    }
    laci_convert_portable.bfloat16.encode(x + i, out + 2 * i, n - i);
}

static void avx2_bfloat16_decode(const uint8_t *in, float *x, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(x + i, load_bfloat16(in + 2 * i));
    }
    laci_convert_portable.bfloat16.decode(in + 2 * i, x + i, n - i);
}

static void avx2_bfloat16_load(const uint16_t *in, float *x, size_t n)
{
    avx2_bfloat16_decode((const uint8_t *)in, x, n);
}

// Only NaN are left to the portable kernel: a carry into the exponent makes an
// infinity.
static void avx2_bfloat16_store(const float *x, uint16_t *out, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        if (!avx2_bfloat16_round(x + i, 0x7f800000, out + i)) {
            laci_convert_portable.bfloat16.store(x + i, out + i, 16);
        }
    }
    laci_convert_portable.bfloat16.store(x + i, out + i, n - i);
}

static void avx2_bfloat16_decode_add(
    const uint8_t *in, float a, float *y, size_t n)
{
    const __m256 factor = _mm256_set1_ps(a);
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        laci_prefetch(y + i);
        for (size_t j = i; j < i + BLOCK; j += 8) {
            convert_add_to(y + j, factor, load_bfloat16(in + 2 * j));
        }
    }
    laci_convert_portable.bfloat16.decode_add(in + 2 * i, a, y + i, n - i);
}

// Whether no value of the first *done_out has all the bits of the exponent
// field. The rest is left to the portable kernels.
static inline bool avx2_all_finite(
    uint16_t exponent, const uint8_t *in, size_t n, size_t *done_out)
{
    const __m256i mask = _mm256_set1_epi16((short)exponent);
    __m256i found = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256i words = _mm256_loadu_si256((const void *)(in + 2 * i));
        const __m256i field = _mm256_and_si256(words, mask);
        found = _mm256_or_si256(found, _mm256_cmpeq_epi16(field, mask));
    }
    *done_out = i;
    return _mm256_testz_si256(found, found) != 0;
}

static bool avx2_half_finite(const uint8_t *in, size_t n)
{
    size_t done;
    return avx2_all_finite(LACI_HALF_EXPONENT, in, n, &done) &&
           laci_convert_portable.half.finite(in + 2 * done, n - done);
}

static bool avx2_bfloat16_finite(const uint8_t *in, size_t n)
{
    size_t done;
    return avx2_all_finite(LACI_BFLOAT16_EXPONENT, in, n, &done) &&
           laci_convert_portable.bfloat16.finite(in + 2 * done, n - done);
}

const laci_convert_kernels laci_convert_avx2 = {
    .half =
        {avx2_half_encode, avx2_half_decode, avx2_half_decode_add,
         avx2_half_finite, avx2_half_load, avx2_half_store},
    .bfloat16 =
        {avx2_bfloat16_encode, avx2_bfloat16_decode, avx2_bfloat16_decode_add,
         avx2_bfloat16_finite, avx2_bfloat16_load, avx2_bfloat16_store},
};
