// SPDX-License-Identifier: MIT
// rotate.c for AVX2. The values pass through the registers three times: stages
// 0 to 5 of 64 values at a time; then, for the values of all these groups at
// one place, the higher stages of both rounds and the signs between; then
// stages 0 to 5 of round 1. Stages of the bits 0 to 2 are within a register,
// so the 8 x 8 values of a group are transposed for them. They stay transposed
// until the next time. Products and sums are the same as in rotate.c.
//
// The file is also compiled for AVX-512, which has twice as many registers and
// multiplies and adds in one instruction: a rotation then takes 13 % less time
// on an EPYC of the Zen 4 generation.
#include "kernels/rotate.h"

#include <immintrin.h>

#include "kernels/draw_avx2.h"
#include "kernels/prefetch_avx2.h"

// Inlined with constant arguments, so that arrays become registers.
#define SPECIALISED static inline __attribute__((always_inline))

enum {
    GROUP = 64, // values that 8 registers hold
    GROUPS_MAX = LACI_ROTATE_MAX / GROUP,
    MANY_GROUPS = 16, // of a block of 1024: as many as there are registers
    DRAWS = LACI_ROTATE_MAX / 256, // registers of draws for a round
};

// The draws of one round: bit 31 of lane p % 8 of register p / 256, shifted
// left by p / 8 % 32, is the sign of place p.
typedef struct draws {
    __m256i words[DRAWS];
} draws;

static inline void draw_round(const laci_rotation *r, uint32_t round, draws *d)
{
    const laci_stream8 stream = laci_stream8_of(&r->stream);
    const __m256i step = laci_counter8_step(8);
    __m256i counter = laci_counter8(r->first + round * (uint32_t)(r->n / 8));
    for (size_t i = 0; 256 * i < r->n; i++) {
        d->words[i] = laci_draw8(&stream, counter);
        counter = _mm256_add_epi32(counter, step);
    }
}

static inline __m256 with_signs(__m256 x, __m256i signs)
{
    const __m256i top = _mm256_set1_epi32(INT32_MIN);
    return _mm256_xor_ps(x, _mm256_castsi256_ps(_mm256_and_si256(signs, top)));
}

// u + v. Processors of the Zen family add in two pipes and multiply in two
// others; half of the sums go to the latter. The product with 1 is exact. The
// empty instruction keeps the compiler from making an addition of it.
static inline __m256 rotate_sum(__m256 u, __m256 v)
{
#ifdef __FMA__
    __m256 one = _mm256_set1_ps(1);
    __asm__("" : "+x"(one));
    return _mm256_fmadd_ps(u, one, v);
#else
    return _mm256_add_ps(u, v);
#endif
}

static inline void butterfly(__m256 *u, __m256 *v)
{
    const __m256 sum = rotate_sum(*u, *v);
    *v = _mm256_sub_ps(*u, *v);
    *u = sum;
}

static inline void unequal_butterfly(__m256 *u, __m256 *v)
{
    const __m256 factor = _mm256_set1_ps(LACI_UNEQUAL);
    const __m256 sum = _mm256_add_ps(_mm256_mul_ps(factor, *u), *v);
    *v = _mm256_sub_ps(*u, _mm256_mul_ps(factor, *v));
    *u = sum;
}

// The three stages of the bits of the number of a register, of which the first
// `unequal` are unequal ones.
static inline void register_stages(__m256 r[8], unsigned unequal)
{
    for (unsigned bit = 0; bit < 3; bit++) {
        const size_t distance = (size_t)1 << bit;
        for (size_t i = 0; i < 8; i++) {
            if ((i & distance) == 0 && bit < unequal) {
                unequal_butterfly(&r[i], &r[i | distance]);
            } else if ((i & distance) == 0) {
                butterfly(&r[i], &r[i | distance]);
            }
        }
    }
}

static inline void rotate_transpose(__m256 r[8])
{
    __m256 a[8], b[8];
    for (size_t i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        a[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (size_t i = 0; i < 8; i += 4) {
        b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
        b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
        b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
        b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
    }
    for (size_t i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
    }
}

// Stages 3, 4, 5, 0, 1, 2 of a group, which is transposed afterwards; or stages
// 0 to 5 of a transposed one, which no longer is.
static inline void group_stages(__m256 r[8], unsigned unequal)
{
    register_stages(r, unequal);
    rotate_transpose(r);
    register_stages(r, unequal);
}

static inline void group_load(const float *from, __m256 r[8])
{
    for (size_t j = 0; j < 8; j++) {
        r[j] = _mm256_loadu_ps(from + 8 * j);
    }
}

// Prefetches the same group of the next block.
static inline void group_prefetch(const float *x, size_t n)
{
    laci_prefetch_l2(x, n * sizeof(*x));
    laci_prefetch_l2(x + GROUP / 2, n * sizeof(*x));
}

static inline void group_store(const __m256 r[8], float *to)
{
    for (size_t j = 0; j < 8; j++) {
        _mm256_storeu_ps(to + 8 * j, r[j]);
    }
}

// Applies the signs of round 0 to group g.
static inline void group_signs(const draws *d, size_t g, __m256 r[8])
{
    const __m128i before = _mm_cvtsi32_si128((int)(g % 4 * 8));
    const __m256i words = _mm256_sll_epi32(d->words[g / 4], before);
    for (int j = 0; j < 8; j++) {
        r[j] = with_signs(r[j], _mm256_slli_epi32(words, j));
    }
}

static inline void stages_across(__m256 *v, size_t groups)
{
    for (size_t distance = 1; distance < groups; distance *= 2) {
        for (size_t i = 0; i < groups; i++) {
            if ((i & distance) == 0) {
                butterfly(&v[i], &v[i + distance]);
            }
        }
    }
}

static inline void two_stages(__m256 *v, size_t distance)
{
    butterfly(&v[0], &v[distance]);
    butterfly(&v[2 * distance], &v[3 * distance]);
    butterfly(&v[0], &v[2 * distance]);
    butterfly(&v[distance], &v[3 * distance]);
}

static inline void four_stages(__m256 v[16])
{
    two_stages(v, 1);
    two_stages(v + 4, 1);
    two_stages(v + 8, 1);
    two_stages(v + 12, 1);
    two_stages(v, 4);
    two_stages(v + 1, 4);
    two_stages(v + 2, 4);
    two_stages(v + 3, 4);
}

static inline void four_signs(__m256 v[4], __m256i words)
{
    v[0] = with_signs(v[0], words);
    v[1] = with_signs(v[1], _mm256_slli_epi32(words, 8));
    v[2] = with_signs(v[2], _mm256_slli_epi32(words, 16));
    v[3] = with_signs(v[3], _mm256_slli_epi32(words, 24));
}

static void across_16(float *y, draws *d)
{
    for (size_t j = 0; j < GROUP; j += 8) {
        __m256 v[16];
        for (size_t g = 0; g < 16; g++) {
            v[g] = _mm256_loadu_ps(y + GROUP * g + j);
        }
        four_stages(v);
        for (size_t i = 0; i < 4; i++) {
            four_signs(v + 4 * i, d->words[i]);
            d->words[i] = _mm256_slli_epi32(d->words[i], 1);
        }
        four_stages(v);
        for (size_t g = 0; g < 16; g++) {
            _mm256_storeu_ps(y + GROUP * g + j, v[g]);
        }
    }
}

// The stages from 6 on of both rounds, and the signs between them.
static void rotate_across(float *y, size_t groups, draws *d)
{
    for (size_t j = 0; j < GROUP; j += 8) {
        __m256 v[GROUPS_MAX];
        for (size_t g = 0; g < groups; g++) {
            v[g] = _mm256_loadu_ps(y + GROUP * g + j);
        }
        stages_across(v, groups);
        for (size_t g = 0; g < groups; g++) {
            const __m128i before = _mm_cvtsi32_si128((int)(g % 4 * 8 + j / 8));
            v[g] = with_signs(v[g], _mm256_sll_epi32(d->words[g / 4], before));
        }
        stages_across(v, groups);
        for (size_t g = 0; g < groups; g++) {
            _mm256_storeu_ps(y + GROUP * g + j, v[g]);
        }
    }
}

static void all_across(const laci_rotation *r, float *y)
{
    draws d;
    draw_round(r, 1, &d);
    if (r->n == MANY_GROUPS * (size_t)GROUP) {
        across_16(y, &d);
    } else {
        rotate_across(y, r->n / GROUP, &d);
    }
}

static void avx2_rotate(const laci_rotation *r, const float *x, float *y)
{
    draws d;
    draw_round(r, 0, &d);
    for (size_t g = 0; g < r->n / GROUP; g++) {
        __m256 v[8];
        group_load(x + GROUP * g, v);
        group_prefetch(x + GROUP * g, r->n);
        group_signs(&d, g, v);
        group_stages(v, LACI_UNEQUAL_STAGES);
        group_store(v, y + GROUP * g);
    }
    all_across(r, y);
    for (size_t g = 0; g < r->n / GROUP; g++) {
        __m256 v[8];
        group_load(y + GROUP * g, v);
        group_stages(v, 0);
        group_store(v, y + GROUP * g);
    }
}

// The constants of codes of some bits.
typedef struct quantiser {
    unsigned bits;
    __m256i centres;                  // eight of 16 bits, twice
    __m256i limits[LACI_CENTRES - 1]; // a magnitude above it is a level higher
} quantiser;

SPECIALISED quantiser quantiser_of(unsigned bits)
{
    const int twice = 2 * LACI_CENTRE_UNIT / LACI_ROTATED_UNIT;
    const int16_t *const centres = laci_centres(bits);
    quantiser q = {.bits = bits};
    q.centres =
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)centres));
    for (unsigned j = 1; j < 1u << (bits - 1); j++) {
        const int limit = (centres[j - 1] + centres[j]) / twice;
        q.limits[j - 1] = _mm256_set1_epi16((short)limit);
    }
    return q;
}

// The sums of 64 values: eight of 32 bits without sign, which is enough for
// 4 * 2 * 32767 * the largest centre.
typedef struct group_sums {
    __m256i products;
    __m256i squares;
} group_sums;

// Returns the codes of 16 values, of 16 bits each: four of each register, then
// the next four of each.
SPECIALISED __m256i
quantise_16(const quantiser *q, __m256 scale, const float *y, group_sums *sums)
{
    const __m256 first = _mm256_mul_ps(_mm256_loadu_ps(y), scale);
    const __m256 second = _mm256_mul_ps(_mm256_loadu_ps(y + 8), scale);
    const __m256i values = _mm256_packs_epi32(
        _mm256_cvtps_epi32(first), _mm256_cvtps_epi32(second));
    const __m256i magnitude = _mm256_min_epu16(
        _mm256_abs_epi16(values), _mm256_set1_epi16(INT16_MAX));
    __m256i level = _mm256_setzero_si256();
    for (unsigned j = 1; j < 1u << (q->bits - 1); j++) {
        level = _mm256_sub_epi16(
            level, _mm256_cmpgt_epi16(magnitude, q->limits[j - 1]));
    }
    // The bytes of centre j are 2j and 2j + 1.
    const __m256i bytes = _mm256_add_epi16(
        _mm256_mullo_epi16(level, _mm256_set1_epi16(0x0202)),
        _mm256_set1_epi16(0x0100));
    const __m256i centres = _mm256_shuffle_epi8(q->centres, bytes);
    sums->products =
        _mm256_add_epi32(sums->products, _mm256_madd_epi16(magnitude, centres));
    sums->squares =
        _mm256_add_epi32(sums->squares, _mm256_madd_epi16(centres, centres));
    const __m256i signs =
        _mm256_slli_epi16(_mm256_srli_epi16(values, 15), (int)q->bits - 1);
    return _mm256_or_si256(level, signs);
}

// Adds eight numbers of 32 bits to four of 64.
static inline __m256i add_wide(__m256i sum, __m256i words)
{
    const __m256i low = _mm256_set1_epi64x(0xffffffff);
    sum = _mm256_add_epi64(sum, _mm256_and_si256(words, low));
    return _mm256_add_epi64(sum, _mm256_srli_epi64(words, 32));
}

static inline uint64_t sum_wide(__m256i sum)
{
    uint64_t lanes[4];
    _mm256_storeu_si256((void *)lanes, sum);
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

SPECIALISED laci_rotate_sums quantise_all(
    unsigned bits, float scale, const float *y, size_t n, uint8_t *codes)
{
    const quantiser q = quantiser_of(bits);
    const __m256 factor = _mm256_set1_ps(scale);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i products = _mm256_setzero_si256();
    __m256i squares = _mm256_setzero_si256();
    for (size_t i = 0; i < n; i += GROUP) {
        group_sums sums = {_mm256_setzero_si256(), _mm256_setzero_si256()};
        for (size_t j = i; j < i + GROUP; j += 32) {
            const __m256i first = quantise_16(&q, factor, y + j, &sums);
            const __m256i second = quantise_16(&q, factor, y + j + 16, &sums);
            const __m256i bytes = _mm256_packus_epi16(first, second);
            _mm256_storeu_si256(
                (void *)(codes + j), _mm256_permutevar8x32_epi32(bytes, order));
        }
        products = add_wide(products, sums.products);
        squares = add_wide(squares, sums.squares);
    }
    return (laci_rotate_sums){sum_wide(products), sum_wide(squares)};
}

// `bits` as a constant lets the compiler unroll the comparisons.
static laci_rotate_sums avx2_quantise(
    unsigned bits, float scale, const float *y, size_t n, uint8_t *codes)
{
    switch (bits) {
    case 1:
        return quantise_all(1, scale, y, n, codes);
    case 2:
        return quantise_all(2, scale, y, n, codes);
    case 3:
        return quantise_all(3, scale, y, n, codes);
    default:
        return quantise_all(4, scale, y, n, codes);
    }
}

// Step times each centre. The centres of fewer than 8 levels are repeated, so
// that the lowest 3 bits of a code find them, whether or not its sign is one of
// them.
static inline __m256 steps_of(unsigned bits, float step)
{
    const __m128i centres = _mm_loadu_si128((const void *)laci_centres(bits));
    const __m256 floats = _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(centres));
    const __m256 unit = _mm256_set1_ps(1.0f / LACI_CENTRE_UNIT);
    const __m256i levels = _mm256_and_si256(
        _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
        _mm256_set1_epi32((1 << (bits - 1)) - 1));
    const __m256 steps =
        _mm256_mul_ps(_mm256_mul_ps(floats, unit), _mm256_set1_ps(step));
    return _mm256_permutevar8x32_ps(steps, levels);
}

// The values of 64 codes.
static inline void group_values(
    unsigned bits, __m256 steps, const uint8_t *codes, __m256 r[8])
{
    const __m128i before = _mm_cvtsi32_si128((int)(32 - bits));
    for (size_t j = 0; j < 8; j++) {
        const __m256i code = _mm256_cvtepu8_epi32(
            _mm_loadl_epi64((const void *)(codes + 8 * j)));
        const __m256 value = _mm256_permutevar8x32_ps(steps, code);
        r[j] = with_signs(value, _mm256_sll_epi32(code, before));
    }
}

// Writes the values to x, or adds `*a` times them.
SPECIALISED void decode_block(
    const laci_rotation *r, unsigned bits, const uint8_t *codes, float step,
    float *work, const float *a, float *x)
{
    const __m256 steps = steps_of(bits, step);
    const __m256 factor = _mm256_set1_ps(a == NULL ? 1 : *a);
    draws d;
    for (size_t g = 0; g < r->n / GROUP; g++) {
        __m256 v[8];
        group_values(bits, steps, codes + GROUP * g, v);
        if (a != NULL) {
            group_prefetch(x + GROUP * g, r->n);
        }
        group_stages(v, 0);
        group_store(v, work + GROUP * g);
    }
    all_across(r, work);
    draw_round(r, 0, &d);
    for (size_t g = 0; g < r->n / GROUP; g++) {
        __m256 v[8];
        float *const to = x + GROUP * g;
        group_load(work + GROUP * g, v);
        group_stages(v, LACI_UNEQUAL_STAGES);
        group_signs(&d, g, v);
        for (size_t j = 0; a != NULL && j < 8; j++) {
            v[j] = _mm256_add_ps(
                _mm256_loadu_ps(to + 8 * j), _mm256_mul_ps(factor, v[j]));
        }
        group_store(v, to);
    }
}

static void avx2_rotate_decode(
    const laci_rotation *r, unsigned bits, const uint8_t *codes, float step,
    float *work, float *x)
{
    decode_block(r, bits, codes, step, work, NULL, x);
}

static void avx2_rotate_decode_add(
    const laci_rotation *r, unsigned bits, const uint8_t *codes, float step,
    float *work, float a, float *y)
{
    decode_block(r, bits, codes, step, work, &a, y);
}

const laci_rotate_kernels laci_rotate_avx2 = {
    .rotate = avx2_rotate,
    .quantise = avx2_quantise,
    .decode = avx2_rotate_decode,
    .decode_add = avx2_rotate_decode_add,
};
