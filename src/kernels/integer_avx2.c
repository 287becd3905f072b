// SPDX-License-Identifier: MIT
// integer.c for AVX2: eight values at a time, as two vectors of doubles, the
// rest by the portable kernels.
#include "kernels/integer.h"

#include <immintrin.h>

#include "kernels/draw_avx2.h"

// Eight values, the first four in `low`.
typedef struct doubles {
    __m256d low, high;
} doubles;

static inline doubles doubles_of(__m256 x)
{
    return (doubles){
        _mm256_cvtps_pd(_mm256_castps256_ps128(x)),
        _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)),
    };
}

static inline __m256 floats_of(doubles x)
{
    return _mm256_set_m128(_mm256_cvtpd_ps(x.high), _mm256_cvtpd_ps(x.low));
}

static inline doubles doubles_of_integers(__m256i q)
{
    return (doubles){
        _mm256_cvtepi32_pd(_mm256_castsi256_si128(q)),
        _mm256_cvtepi32_pd(_mm256_extracti128_si256(q, 1)),
    };
}

// Draws as doubles in [0, 1). The conversion is of signed integers.
static inline doubles fractions_of(__m256i draws)
{
    const __m256i sign = _mm256_set1_epi32(INT32_MIN);
    const __m256d half = _mm256_set1_pd(0x1p31);
    const __m256d unit = _mm256_set1_pd(0x1p-32);
    doubles u = doubles_of_integers(_mm256_xor_si256(draws, sign));
    u.low = _mm256_mul_pd(_mm256_add_pd(u.low, half), unit);
    u.high = _mm256_mul_pd(_mm256_add_pd(u.high, half), unit);
    return u;
}

// What encode computes with.
typedef struct steps {
    __m256d step, low, high;
} steps;

static inline __m128i rounded(const steps *s, __m256d x, __m256d u)
{
    __m256d y = _mm256_floor_pd(_mm256_add_pd(_mm256_mul_pd(x, s->step), u));
    y = _mm256_max_pd(s->low, _mm256_min_pd(s->high, y));
    return _mm256_cvttpd_epi32(y);
}

// Stores eight integers of one or two bytes.
static inline void store8(size_t size, __m128i low, __m128i high, void *q)
{
    const __m128i words = _mm_packs_epi32(low, high);
    if (size == 1) {
        _mm_storel_epi64(q, _mm_packs_epi16(words, words));
    } else {
        _mm_storeu_si128(q, words);
    }
}

static inline doubles load8(size_t size, const void *q)
{
    return doubles_of_integers(
        size == 1 ? _mm256_cvtepi8_epi32(_mm_loadl_epi64(q))
                  : _mm256_cvtepi16_epi32(_mm_loadu_si128(q)));
}

// Inlined with a constant `size`.
static inline size_t encode_blocks(
    const laci_integers *type, size_t size, const laci_stream *stream,
    uint32_t first, const float *x, uint8_t *q, size_t n)
{
    const double levels = type->levels;
    const double step = type->max > 0 ? levels / (double)type->max : 0;
    const steps s = {
        _mm256_set1_pd(step),
        _mm256_set1_pd(-levels),
        _mm256_set1_pd(levels),
    };
    const laci_stream none = {{0}};
    const laci_stream8 draws = laci_stream8_of(stream == NULL ? &none : stream);
    const __m256i move = laci_counter8_step(8);
    __m256i counter = laci_counter8(first);
    doubles u = {_mm256_set1_pd(0.5), _mm256_set1_pd(0.5)};
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const doubles y = doubles_of(_mm256_loadu_ps(x + i));
        if (stream != NULL) {
            u = fractions_of(laci_draw8(&draws, counter));
            counter = _mm256_add_epi32(counter, move);
        }
        store8(
            size, rounded(&s, y.low, u.low), rounded(&s, y.high, u.high),
            q + i * size);
    }
    return i;
}

static void integer_avx2_encode(
    const laci_integers *type, const laci_stream *stream, uint32_t first,
    const float *x, void *q, size_t n)
{
    const size_t done = type->size == 1
                            ? encode_blocks(type, 1, stream, first, x, q, n)
                            : encode_blocks(type, 2, stream, first, x, q, n);
    laci_integer_portable.encode(
        type, stream, first + (uint32_t)done, x + done,
        (uint8_t *)q + done * type->size, n - done);
}

static inline size_t decode_blocks(
    size_t size, double scale, const uint8_t *q, float *x, size_t n)
{
    const __m256d factor = _mm256_set1_pd(scale);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        doubles y = load8(size, q + i * size);
        y.low = _mm256_mul_pd(factor, y.low);
        y.high = _mm256_mul_pd(factor, y.high);
        _mm256_storeu_ps(x + i, floats_of(y));
    }
    return i;
}

static void integer_avx2_decode(
    const laci_integers *type, double scale, const void *q, float *x, size_t n)
{
    const size_t done = type->size == 1 ? decode_blocks(1, scale, q, x, n)
                                        : decode_blocks(2, scale, q, x, n);
    laci_integer_portable.decode(
        type, scale, (const uint8_t *)q + done * type->size, x + done,
        n - done);
}

static inline size_t subtract_blocks(
    size_t size, double scale, const uint8_t *q, float *x, size_t n)
{
    const __m256d factor = _mm256_set1_pd(scale);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const doubles y = load8(size, q + i * size);
        doubles z = doubles_of(_mm256_loadu_ps(x + i));
        z.low = _mm256_sub_pd(z.low, _mm256_mul_pd(factor, y.low));
        z.high = _mm256_sub_pd(z.high, _mm256_mul_pd(factor, y.high));
        _mm256_storeu_ps(x + i, floats_of(z));
    }
    return i;
}

static void integer_avx2_subtract(
    const laci_integers *type, double scale, const void *q, float *x, size_t n)
{
    const size_t done = type->size == 1 ? subtract_blocks(1, scale, q, x, n)
                                        : subtract_blocks(2, scale, q, x, n);
    laci_integer_portable.subtract(
        type, scale, (const uint8_t *)q + done * type->size, x + done,
        n - done);
}

const laci_integer_kernels laci_integer_avx2 = {
    .encode = integer_avx2_encode,
    .decode = integer_avx2_decode,
    .subtract = integer_avx2_subtract,
};
