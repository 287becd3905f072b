// SPDX-License-Identifier: MIT
// dither.c for AVX2. Values are processed in blocks of 16 that begin at a
// multiple of 16 in their tensor, because they share eight draws. An incomplete
// block at either end is copied to a block on the stack.
#include "kernels/dither.h"

#include <immintrin.h>
#include <string.h>

#include "base/bytes.h"
#include "kernels/draw_avx2.h"
#include "kernels/prefetch_avx2.h"

enum {
    BLOCK = 16,
    EXPONENT_BIAS = 127,
    MANTISSA_BITS = 23,
};

typedef struct encoder {
    laci_stream8 stream;
    __m256 norm; // of natural levels
    __m256 scale;
    __m256i levels;
    __m128i sign_shift; // from its place in a lane to that in a code
} encoder;

static inline encoder encoder_of(const laci_dither *d, float scale)
{
    encoder e; // an initialiser would clear it first, with a slow instruction
    e.stream = laci_stream8_of(&d->stream);
    e.norm = _mm256_set1_ps(d->norm);
    e.scale = _mm256_set1_ps(scale);
    return e;
}

// Prefetches values that are needed soon: while codes are made, or between the
// norm of a bucket and its codes, not every processor prefetches them by
// itself.
static inline void prefetch_line(const float *x)
{
    laci_prefetch_line(x, LACI_PREFETCH_BYTES);
}

static inline __m256 absolute(__m256 x)
{
    return _mm256_and_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff)));
}

// The levels of 16 values in lanes of 16 bits: values 0 to 7 in the lower
// halves of 32 bits, 8 to 15 in the upper ones.
static inline __m256i bytes_levels(
    const encoder *e, const float *x, __m256i counter)
{
    const __m256i draws = laci_draw8(&e->stream, counter);
    const __m256i low = _mm256_cvtps_epi32(
        _mm256_mul_ps(absolute(_mm256_loadu_ps(x)), e->scale));
    const __m256i high = _mm256_cvtps_epi32(
        _mm256_mul_ps(absolute(_mm256_loadu_ps(x + 8)), e->scale));
    const __m256i mask = _mm256_set1_epi32(0xffff);
    const __m256i low_sum =
        _mm256_add_epi32(low, _mm256_and_si256(draws, mask));
    const __m256i high_sum =
        _mm256_add_epi32(high, _mm256_srli_epi32(draws, 16));
    return _mm256_blend_epi16(_mm256_srli_epi32(low_sum, 16), high_sum, 0xaa);
}

// The upper bits of 16 values, the sign on top, in lanes of 16 bits: values
// 0 to 3, 8 to 11, 4 to 7 and 12 to 15.
static inline __m256i signs(const float *x)
{
    return _mm256_packs_epi32(
        _mm256_loadu_si256((const void *)x),
        _mm256_loadu_si256((const void *)(x + 8)));
}

// The codes of 32 values as bytes. `x` are the values, the levels are those of
// bytes_levels. Packing works on halves of a register: in the lower one are
// then four values from each eight, which the last instruction sorts.
static inline __m256i bytes_codes(
    const encoder *e, const float *x, __m256i first, __m256i second)
{
    const __m256i levels = _mm256_shuffle_epi8(
        _mm256_packus_epi16(first, second),
        _mm256_setr_epi8(
            0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15, 0, 2, 4, 6, 1,
            3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
    const __m256i sign = _mm256_and_si256(
        _mm256_packs_epi16(signs(x), signs(x + BLOCK)),
        _mm256_set1_epi8((char)0x80));
    const __m256i codes = _mm256_or_si256(
        _mm256_min_epu8(levels, e->levels),
        _mm256_srl_epi16(sign, e->sign_shift));
    return _mm256_permutevar8x32_epi32(
        codes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Encodes whole pairs of blocks and returns how many values that were.
static size_t bytes_pairs(
    const encoder *e, const float *x, size_t n, __m256i counter, uint8_t *out)
{
    const __m256i step = laci_counter8_step(BLOCK / 2);
    size_t i = 0;
    for (; i + 2 * BLOCK <= n; i += 2 * BLOCK) {
        const __m256i next = _mm256_add_epi32(counter, step);
        prefetch_line(x + i);
        prefetch_line(x + i + BLOCK);
        const __m256i codes = bytes_codes(
            e, x + i, bytes_levels(e, x + i, counter),
            bytes_levels(e, x + i + BLOCK, next));
        _mm256_storeu_si256((void *)(out + i), codes);
        counter = _mm256_add_epi32(next, step);
    }
    return i;
}

static void avx2_bytes_encode(
    const laci_dither *d, const float *x, size_t n, uint32_t first, void *codes)
{
    encoder e = encoder_of(d, (float)d->levels / d->norm * 0x1p16f);
    e.levels = _mm256_set1_epi8((char)d->levels);
    e.sign_shift = _mm_cvtsi32_si128((int)(8 - d->bits));
    uint8_t *out = codes;
    while (n > 0) {
        const size_t start = first % BLOCK;
        const size_t room = BLOCK - start;
        size_t taken = n < room ? n : room;
        const __m256i counter = laci_counter8(first / BLOCK * (BLOCK / 2));
        if (start == 0 && n >= (size_t)2 * BLOCK) {
            taken = bytes_pairs(&e, x, n, counter, out);
        } else {
            float values[2 * BLOCK] = {0};
            uint8_t block[2 * BLOCK];
            memcpy(values + start, x, taken * sizeof(*x));
            bytes_pairs(&e, values, (size_t)2 * BLOCK, counter, block);
            memcpy(out, block + start, taken);
        }
        x += taken;
        out += taken;
        first += (uint32_t)taken;
        n -= taken;
    }
}

// The codes of eight values whose noise is in the lower halves of `noise`.
static inline __m256i words_half(
    const encoder *e, const float *x, __m256i noise)
{
    const __m256 values = _mm256_loadu_ps(x);
    const __m256 v = _mm256_mul_ps(absolute(values), e->scale);
    const __m256i whole = _mm256_cvttps_epi32(v);
    const __m256 rest = _mm256_sub_ps(v, _mm256_cvtepi32_ps(whole));
    const __m256i fixed =
        _mm256_cvtps_epi32(_mm256_mul_ps(rest, _mm256_set1_ps(0x1p16f)));
    const __m256i carry = _mm256_srli_epi32(_mm256_add_epi32(fixed, noise), 16);
    const __m256i level =
        _mm256_min_epu32(_mm256_add_epi32(whole, carry), e->levels);
    const __m256i top = _mm256_srli_epi32(_mm256_castps_si256(values), 31);
    return _mm256_or_si256(level, _mm256_sll_epi32(top, e->sign_shift));
}

static inline void words_block(
    const encoder *e, const float *x, __m256i counter, uint32_t *out)
{
    const __m256i draws = laci_draw8(&e->stream, counter);
    const __m256i low = _mm256_and_si256(draws, _mm256_set1_epi32(0xffff));
    const __m256i high = _mm256_srli_epi32(draws, 16);
    _mm256_storeu_si256((void *)out, words_half(e, x, low));
    _mm256_storeu_si256((void *)(out + 8), words_half(e, x + 8, high));
}

static void avx2_words_encode(
    const laci_dither *d, const float *x, size_t n, uint32_t first, void *codes)
{
    encoder e = encoder_of(d, (float)d->levels / d->norm);
    e.levels = _mm256_set1_epi32((int)d->levels);
    e.sign_shift = _mm_cvtsi32_si128((int)(d->bits - 1));
    uint32_t *out = codes;
    while (n > 0) {
        const size_t start = first % BLOCK;
        const size_t room = BLOCK - start;
        const size_t taken = n < room ? n : room;
        const __m256i counter = laci_counter8(first / BLOCK * (BLOCK / 2));
        if (taken == BLOCK) {
            words_block(&e, x, counter, out);
        } else {
            float values[BLOCK] = {0};
            uint32_t block[BLOCK];
            memcpy(values + start, x, taken * sizeof(*x));
            words_block(&e, values, counter, block);
            memcpy(out, block + start, taken * sizeof(*out));
        }
        x += taken;
        out += taken;
        first += (uint32_t)taken;
        n -= taken;
    }
}

typedef struct decoder {
    __m256 unit;        // the step or the norm
    __m256i level_mask; // the level of a code
    __m128i sign_shift; // from its place in a code to the top of a lane
    __m256i exponent;   // of natural level 0
} decoder;

static inline decoder decoder_of(const laci_dither *d, float unit)
{
    return (decoder){
        .unit = _mm256_set1_ps(unit),
        .level_mask = _mm256_set1_epi32((1 << (d->bits - 1)) - 1),
        .sign_shift = _mm_cvtsi32_si128((int)(32 - d->bits)),
        .exponent = _mm256_set1_epi32(EXPONENT_BIAS - (int)d->levels),
    };
}

static inline __m256i dither_load_bytes(const uint8_t *in)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)in));
}

static inline __m256 avx2_with_sign(
    const decoder *e, __m256i codes, __m256 values)
{
    const __m256i sign = _mm256_and_si256(
        _mm256_sll_epi32(codes, e->sign_shift),
        _mm256_set1_epi32((int)0x80000000));
    return _mm256_xor_ps(values, _mm256_castsi256_ps(sign));
}

static inline __m256 uniform_values(const decoder *e, __m256i codes)
{
    const __m256i level = _mm256_and_si256(codes, e->level_mask);
    return avx2_with_sign(
        e, codes, _mm256_mul_ps(_mm256_cvtepi32_ps(level), e->unit));
}

static inline __m256 natural_values(const decoder *e, __m256i codes)
{
    const __m256i level = _mm256_and_si256(codes, e->level_mask);
    const __m256i power =
        _mm256_slli_epi32(_mm256_add_epi32(level, e->exponent), MANTISSA_BITS);
    const __m256i zero = _mm256_cmpeq_epi32(level, _mm256_setzero_si256());
    const __m256 factor = _mm256_castsi256_ps(_mm256_andnot_si256(zero, power));
    return avx2_with_sign(e, codes, _mm256_mul_ps(factor, e->unit));
}

static inline void dither_add_to(float *y, __m256 a, __m256 values)
{
    prefetch_line(y);
    _mm256_storeu_ps(
        y, _mm256_add_ps(_mm256_loadu_ps(y), _mm256_mul_ps(a, values)));
}

static void avx2_bytes_decode(
    const laci_dither *d, const void *codes, size_t n, float *x)
{
    const uint8_t *const in = codes;
    const decoder e = decoder_of(d, d->norm / (float)d->levels);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(x + i, uniform_values(&e, dither_load_bytes(in + i)));
    }
    laci_dither_portable.bytes.decode(d, in + i, n - i, x + i);
}

static void avx2_bytes_decode_add(
    const laci_dither *d, const void *codes, size_t n, float a, float *y)
{
    const uint8_t *const in = codes;
    const decoder e = decoder_of(d, d->norm / (float)d->levels);
    const __m256 factor = _mm256_set1_ps(a);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        dither_add_to(
            y + i, factor, uniform_values(&e, dither_load_bytes(in + i)));
    }
    laci_dither_portable.bytes.decode_add(d, in + i, n - i, a, y + i);
}

static void avx2_words_decode(
    const laci_dither *d, const void *codes, size_t n, float *x)
{
    const uint32_t *const in = codes;
    const decoder e = decoder_of(d, d->norm / (float)d->levels);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256i eight = _mm256_loadu_si256((const void *)(in + i));
        _mm256_storeu_ps(x + i, uniform_values(&e, eight));
    }
    laci_dither_portable.words.decode(d, in + i, n - i, x + i);
}

static void avx2_words_decode_add(
    const laci_dither *d, const void *codes, size_t n, float a, float *y)
{
    const uint32_t *const in = codes;
    const decoder e = decoder_of(d, d->norm / (float)d->levels);
    const __m256 factor = _mm256_set1_ps(a);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256i eight = _mm256_loadu_si256((const void *)(in + i));
        dither_add_to(y + i, factor, uniform_values(&e, eight));
    }
    laci_dither_portable.words.decode_add(d, in + i, n - i, a, y + i);
}

// The exponent of eight values after rounding, in the upper bits of a lane.
static inline __m256i natural_carried(
    const encoder *e, const float *x, __m256i counter)
{
    const __m256 y = _mm256_div_ps(absolute(_mm256_loadu_ps(x)), e->norm);
    const __m256 z = _mm256_mul_ps(y, e->scale);
    const __m256 w = _mm256_add_ps(z, _mm256_max_ps(z, _mm256_set1_ps(1)));
    const __m256i noise = _mm256_srli_epi32(laci_draw8(&e->stream, counter), 9);
    return _mm256_add_epi32(_mm256_castps_si256(w), noise);
}

// The levels of 16 values, in the order of bytes_levels.
static inline __m256i natural_levels(
    const encoder *e, const float *x, __m256i counter)
{
    const __m256i next = _mm256_add_epi32(counter, laci_counter8_step(8));
    const __m256i low =
        _mm256_srli_epi32(natural_carried(e, x, counter), MANTISSA_BITS);
    const __m256i high =
        _mm256_srli_epi32(natural_carried(e, x + 8, next), MANTISSA_BITS - 16);
    return _mm256_sub_epi16(
        _mm256_blend_epi16(low, high, 0xaa), _mm256_set1_epi16(EXPONENT_BIAS));
}

static void avx2_powers_encode(
    const laci_dither *d, const float *x, size_t n, uint32_t first, void *codes)
{
    uint8_t *const out = codes;
    const uint32_t top = EXPONENT_BIAS - 1 + d->levels;
    encoder e = encoder_of(d, laci_float_of(top << MANTISSA_BITS));
    e.levels = _mm256_set1_epi8((char)d->levels);
    e.sign_shift = _mm_cvtsi32_si128((int)(8 - d->bits));
    const __m256i step = laci_counter8_step(BLOCK);
    __m256i counter = laci_counter8(first);
    size_t i = 0;
    for (; i + 2 * BLOCK <= n; i += 2 * BLOCK) {
        const __m256i next = _mm256_add_epi32(counter, step);
        prefetch_line(x + i);
        prefetch_line(x + i + BLOCK);
        const __m256i some = bytes_codes(
            &e, x + i, natural_levels(&e, x + i, counter),
            natural_levels(&e, x + i + BLOCK, next));
        _mm256_storeu_si256((void *)(out + i), some);
        counter = _mm256_add_epi32(next, step);
    }
    laci_dither_portable.natural.encode(
        d, x + i, n - i, first + (uint32_t)i, out + i);
}

static void avx2_powers_decode(
    const laci_dither *d, const void *codes, size_t n, float *x)
{
    const uint8_t *const in = codes;
    const decoder e = decoder_of(d, d->norm);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(x + i, natural_values(&e, dither_load_bytes(in + i)));
    }
    laci_dither_portable.natural.decode(d, in + i, n - i, x + i);
}

static void avx2_powers_decode_add(
    const laci_dither *d, const void *codes, size_t n, float a, float *y)
{
    const uint8_t *const in = codes;
    const decoder e = decoder_of(d, d->norm);
    const __m256 factor = _mm256_set1_ps(a);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        dither_add_to(
            y + i, factor, natural_values(&e, dither_load_bytes(in + i)));
    }
    laci_dither_portable.natural.decode_add(d, in + i, n - i, a, y + i);
}

const laci_dither_kernels laci_dither_avx2 = {
    .bytes = {avx2_bytes_encode, avx2_bytes_decode, avx2_bytes_decode_add},
    .words = {avx2_words_encode, avx2_words_decode, avx2_words_decode_add},
    .natural = {avx2_powers_encode, avx2_powers_decode, avx2_powers_decode_add},
};
