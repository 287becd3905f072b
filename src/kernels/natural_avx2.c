// SPDX-License-Identifier: MIT
// natural.c for AVX2, 32 values at a time: four registers of floats become one
// of bytes. Rare cases (exponents at the top, values below a window) are found
// in that one register and left to the portable code.
#include "kernels/natural.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/draw_avx2.h"
#include "kernels/prefetch_avx2.h"

enum { BLOCK = 32 };

// Packing works in halves of a register; this puts the bytes back in order.
static inline __m256i in_order(__m256i packed)
{
    return _mm256_permutevar8x32_epi32(
        packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// One counter for each of the four registers, with the first word of the stream
// already added.
typedef struct rounding {
    laci_stream8 stream;
    __m256i counter[4];
} rounding;

static inline rounding rounding_from(const laci_stream *stream, uint32_t first)
{
    rounding r = {.stream = laci_stream8_of(stream)};
    for (uint32_t j = 0; j < 4; j++) {
        r.counter[j] =
            _mm256_add_epi32(laci_counter8(first + 8 * j), r.stream.word[0]);
    }
    r.stream.word[0] = _mm256_setzero_si256();
    return r;
}

// Rounds 32 values to exponent fields. Both results are in packed order; the
// signs are the top bits of their bytes.
static inline void round_block(
    rounding *r, const float *x, __m256i *fields_out, __m256i *signs_out)
{
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    __m256i v[4];
    __m256i field[4];
    laci_prefetch(x);
    for (size_t j = 0; j < 4; j++) {
        v[j] = _mm256_loadu_si256((const void *)(x + 8 * j));
        const __m256i noise =
            _mm256_srli_epi32(laci_draw8(&r->stream, r->counter[j]), 9);
        r->counter[j] =
            _mm256_add_epi32(r->counter[j], laci_counter8_step(BLOCK));
        field[j] = _mm256_srli_epi32(
            _mm256_add_epi32(_mm256_and_si256(v[j], mask), noise), 23);
    }
    *fields_out = _mm256_packus_epi16(
        _mm256_packus_epi32(field[0], field[1]),
        _mm256_packus_epi32(field[2], field[3]));
    *signs_out = _mm256_packs_epi16(
        _mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
}

// Whether a field is 255: an infinity, NaN, or a finite value that must not
// become one.
static inline bool fields_has_top(__m256i fields)
{
    return _mm256_movemask_epi8(
               _mm256_cmpeq_epi8(fields, _mm256_set1_epi8(-1))) != 0;
}

static void avx2_fields_encode(
    const laci_stream *stream, uint32_t first, const float *x, size_t n,
    uint8_t *exponents, uint8_t *signs)
{
    rounding r = rounding_from(stream, first);
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        __m256i fields;
        __m256i sign;
        round_block(&r, x + i, &fields, &sign);
        if (fields_has_top(fields)) {
            laci_natural_portable.encode(
                stream, first + (uint32_t)i, x + i, BLOCK, exponents + i,
                signs + i / 8);
            continue;
        }
        _mm256_storeu_si256((void *)(exponents + i), in_order(fields));
        const int bits = _mm256_movemask_epi8(in_order(sign));
        memcpy(signs + i / 8, &bits, sizeof(bits));
    }
    laci_natural_portable.encode(
        stream, first + (uint32_t)i, x + i, n - i, exponents + i,
        signs + i / 8);
}

static inline __m256i fields_load_bytes(const uint8_t *in)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)in));
}

// Values 8j to 8j + 7 of a block whose signs are the bits of `signs`.
static inline __m256 fields_values_of(
    const uint8_t *exponents, __m256i signs, size_t j)
{
    const __m256i lanes = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    const __m256i shift =
        _mm256_sub_epi32(lanes, _mm256_set1_epi32((int)(8 * j)));
    const __m256i sign = _mm256_and_si256(
        _mm256_sllv_epi32(signs, shift), _mm256_set1_epi32(INT32_MIN));
    const __m256i field = fields_load_bytes(exponents + 8 * j);
    return _mm256_castsi256_ps(
        _mm256_or_si256(_mm256_slli_epi32(field, 23), sign));
}

static inline __m256i fields_load_signs(const uint8_t *signs)
{
    int bits;
    memcpy(&bits, signs, sizeof(bits));
    return _mm256_set1_epi32(bits);
}

static void avx2_fields_decode(
    const uint8_t *exponents, const uint8_t *signs, float *x, size_t n)
{
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        const __m256i sign = fields_load_signs(signs + i / 8);
        for (size_t j = 0; j < 4; j++) {
            _mm256_storeu_ps(
                x + i + 8 * j, fields_values_of(exponents + i, sign, j));
        }
    }
    laci_natural_portable.decode(exponents + i, signs + i / 8, x + i, n - i);
}

static inline void fields_add_to(float *y, __m256 a, __m256 values)
{
    _mm256_storeu_ps(
        y, _mm256_add_ps(_mm256_loadu_ps(y), _mm256_mul_ps(a, values)));
}

static void avx2_fields_decode_add(
    const uint8_t *exponents, const uint8_t *signs, float a, float *y, size_t n)
{
    const __m256 factor = _mm256_set1_ps(a);
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        const __m256i sign = fields_load_signs(signs + i / 8);
        laci_prefetch(y + i);
        for (size_t j = 0; j < 4; j++) {
            fields_add_to(
                y + i + 8 * j, factor,
                fields_values_of(exponents + i, sign, j));
        }
    }
    laci_natural_portable.decode_add(
        exponents + i, signs + i / 8, a, y + i, n - i);
}

// Whether one of 32 values is not zero and below 2^23 * least, by its bits.
static bool has_small(const float *x, uint32_t least)
{
    const __m256i limit = _mm256_set1_epi32((int)((least << 23) - 2));
    __m256i found = _mm256_setzero_si256();
    for (size_t j = 0; j < 4; j++) {
        const __m256i v = _mm256_loadu_si256((const void *)(x + 8 * j));
        const __m256i before = _mm256_sub_epi32(
            _mm256_and_si256(v, _mm256_set1_epi32(0x7fffffff)),
            _mm256_set1_epi32(1));
        found = _mm256_or_si256(
            found, _mm256_cmpeq_epi32(_mm256_min_epu32(before, limit), before));
    }
    return _mm256_testz_si256(found, found) == 0;
}

// Codes of exponent fields: field + WINDOW - top, and 0 for 0.
static inline __m256i codes_of(__m256i fields, uint32_t top)
{
    const int up = (int)(LACI_NATURAL_WINDOW - top);
    const __m256i zero = _mm256_cmpeq_epi8(fields, _mm256_setzero_si256());
    if (top > LACI_NATURAL_WINDOW) {
        return _mm256_subs_epu8(fields, _mm256_set1_epi8((char)-up));
    }
    return _mm256_andnot_si256(
        zero, _mm256_add_epi8(fields, _mm256_set1_epi8((char)up)));
}

// A value just below the window may seem to round up to its least level, so
// both codes 0 and 1 are looked at again. Zeros are common, other values below
// a window are not.
static void avx2_encode_window(
    const laci_stream *stream, uint32_t first, uint32_t top, const float *x,
    size_t n, uint8_t *codes)
{
    const uint32_t least = laci_natural_least(top);
    const __m256i sure = _mm256_set1_epi8(least > 1 ? 2 : 0);
    rounding r = rounding_from(stream, first);
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        __m256i fields;
        __m256i sign;
        round_block(&r, x + i, &fields, &sign);
        const __m256i code = codes_of(fields, top);
        const int all_sure = _mm256_movemask_epi8(
            _mm256_cmpeq_epi8(_mm256_max_epu8(code, sure), code));
        if (fields_has_top(fields) ||
            (all_sure != -1 && has_small(x + i, least))) {
            laci_natural_portable.encode_window(
                stream, first + (uint32_t)i, top, x + i, BLOCK, codes + i);
            continue;
        }
        sign = _mm256_and_si256(sign, _mm256_set1_epi8(INT8_MIN));
        _mm256_storeu_si256(
            (void *)(codes + i), in_order(_mm256_or_si256(code, sign)));
    }
    laci_natural_portable.encode_window(
        stream, first + (uint32_t)i, top, x + i, n - i, codes + i);
}

// The code goes to the place of the exponent, where an addition makes it the
// field, unless it is zero.
static inline __m256 values_in(__m256i base, const uint8_t *codes)
{
    const __m256i byte = fields_load_bytes(codes);
    const __m256i sign = _mm256_slli_epi32(byte, 24);
    const __m256i code = _mm256_and_si256(byte, _mm256_set1_epi32(0x7f));
    const __m256i zero = _mm256_cmpeq_epi32(code, _mm256_setzero_si256());
    const __m256i field = _mm256_slli_epi32(_mm256_add_epi32(code, base), 23);
    return _mm256_castsi256_ps(_mm256_or_si256(
        _mm256_andnot_si256(zero, field),
        _mm256_and_si256(sign, _mm256_set1_epi32(INT32_MIN))));
}

static void avx2_decode_window(
    uint32_t top, const uint8_t *codes, float *x, size_t n)
{
    const __m256i base = _mm256_set1_epi32((int)top - LACI_NATURAL_WINDOW);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(x + i, values_in(base, codes + i));
    }
    laci_natural_portable.decode_window(top, codes + i, x + i, n - i);
}

static void avx2_decode_window_add(
    uint32_t top, const uint8_t *codes, float a, float *y, size_t n)
{
    const __m256i base = _mm256_set1_epi32((int)top - LACI_NATURAL_WINDOW);
    const __m256 factor = _mm256_set1_ps(a);
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        laci_prefetch(y + i);
        for (size_t j = i; j < i + BLOCK; j += 8) {
            fields_add_to(y + j, factor, values_in(base, codes + j));
        }
    }
    laci_natural_portable.decode_window_add(top, codes + i, a, y + i, n - i);
}

// A code less one: zero, which does not count, becomes the largest byte.
static uint32_t avx2_least_code(const uint8_t *codes, size_t n)
{
    const __m256i one = _mm256_set1_epi8(1);
    __m256i least = _mm256_set1_epi8(-1);
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        const __m256i code = _mm256_and_si256(
            _mm256_loadu_si256((const void *)(codes + i)),
            _mm256_set1_epi8(0x7f));
        least = _mm256_min_epu8(least, _mm256_sub_epi8(code, one));
    }
    uint8_t lanes[BLOCK];
    _mm256_storeu_si256((void *)lanes, least);
    uint32_t best = laci_natural_portable.least_code(codes + i, n - i);
    for (size_t j = 0; j < BLOCK; j++) {
        const uint32_t code = lanes[j] + 1u;
        best = code < best ? code : best;
    }
    return best;
}

const laci_natural_kernels laci_natural_avx2 = {
    .encode = avx2_fields_encode,
    .decode = avx2_fields_decode,
    .decode_add = avx2_fields_decode_add,
    .encode_window = avx2_encode_window,
    .decode_window = avx2_decode_window,
    .decode_window_add = avx2_decode_window_add,
    .least_code = avx2_least_code,
};
