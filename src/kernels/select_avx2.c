// SPDX-License-Identifier: MIT
// select.c for AVX2. Values come in groups of 32, one bit each in a mask, and
// groups in blocks.
#include "kernels/select.h"

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/prefetch_avx2.h"

enum { LANES = 8, GROUP = 32, BLOCK = 256, MANY = 8, FEW = 16 };

static inline __m256i magnitudes(const float *x)
{
    return _mm256_and_si256(
        _mm256_loadu_si256((const void *)x), _mm256_set1_epi32(0x7fffffff));
}

static inline uint32_t lanes_of(__m256i lanes)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(lanes));
}

// Which of 32 values have a magnitude above `floor`.
static inline uint32_t above(const float *x, __m256i floor)
{
    uint32_t mask = 0;
    for (size_t j = 0; j < GROUP / LANES; j++) {
        const __m256i larger =
            _mm256_cmpgt_epi32(magnitudes(x + LANES * j), floor);
        mask |= lanes_of(larger) << LANES * j;
    }
    return mask;
}

// Eight values at once are tested for having the higher bits; after the first
// digit few have them. Long runs of one value, such as zeros, are common enough
// to be counted in steps of eight.
static void avx2_count(
    const float *x, size_t n, laci_digit digit, uint32_t *counts)
{
    uint32_t odd[LACI_DIGITS];
    memset(odd, 0, sizeof(*odd) << digit.bits);
    const __m256i mask = _mm256_set1_epi32((1 << digit.bits) - 1);
    const __m256i higher = _mm256_set1_epi32((int)digit.higher);
    const __m128i shift = _mm_cvtsi32_si128((int)digit.shift);
    const __m128i rest = _mm_cvtsi32_si128((int)(digit.shift + digit.bits));
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const __m256i v = magnitudes(x + i);
        uint32_t wanted =
            lanes_of(_mm256_cmpeq_epi32(_mm256_srl_epi32(v, rest), higher));
        if (wanted == 0) {
            continue;
        }
        uint32_t digits[LANES];
        const __m256i d = _mm256_and_si256(_mm256_srl_epi32(v, shift), mask);
        const __m256i first = _mm256_permutevar8x32_epi32(
            d, _mm256_set1_epi32(__builtin_ctz(wanted)));
        _mm256_storeu_si256((void *)digits, d);
        if ((wanted & ~lanes_of(_mm256_cmpeq_epi32(d, first))) == 0) {
            counts[_mm_cvtsi128_si32(_mm256_castsi256_si128(first))] +=
                (uint32_t)_mm_popcnt_u32(wanted);
        } else if (wanted == 0xff) {
            for (int j = 0; j < LANES; j += 2) {
                counts[digits[j]]++;
                odd[digits[j + 1]]++;
            }
        } else {
            for (; wanted != 0; wanted &= wanted - 1) {
                counts[digits[__builtin_ctz(wanted)]]++;
            }
        }
    }
    for (size_t d = 0; d < 1u << digit.bits; d++) {
        counts[d] += odd[d];
    }
    laci_select_portable.count(x + i, n - i, digit, counts);
}

// The output of a collection so far.
typedef struct collection {
    size_t found;
    size_t cap;
    uint32_t *indices;
    float *values; // or NULL
} collection;

// The lanes that are set in a mask of eight bits, the lowest first.
static inline __m256i named_lanes(uint32_t mask)
{
    const uint64_t ones = _pdep_u64(mask, 0x0101010101010101);
    const uint64_t bytes = (ones << 8) - ones;
    return _mm256_cvtepu8_epi32(
        _mm_cvtsi64_si128((long long)_pext_u64(0x0706050403020100, bytes)));
}

// Writes the values of eight that are set in a mask. It may write seven more.
static inline void take_lanes(
    collection *c, const float *x, size_t start, uint32_t mask)
{
    const __m256i lanes = named_lanes(mask);
    _mm256_storeu_si256(
        (void *)(c->indices + c->found),
        _mm256_add_epi32(lanes, _mm256_set1_epi32((int)(uint32_t)start)));
    if (c->values != NULL) {
        _mm256_storeu_ps(
            c->values + c->found,
            _mm256_permutevar8x32_ps(_mm256_loadu_ps(x + start), lanes));
    }
    c->found += (size_t)_mm_popcnt_u32(mask);
}

// The lowest `count` of the bits set.
static inline uint32_t lowest(uint32_t mask, size_t count)
{
    return count >= GROUP ? mask : _pdep_u32((1u << count) - 1, mask);
}

// The groups of a block in which a value was found.
typedef struct finds {
    size_t count;
    uint32_t groups[BLOCK / GROUP];
    uint32_t masks[BLOCK / GROUP];
} finds;

static inline size_t select_sum(__m256i counts)
{
    uint32_t lanes[LANES];
    size_t sum = 0;
    _mm256_storeu_si256((void *)lanes, counts);
    for (size_t j = 0; j < LANES; j++) {
        sum += lanes[j];
    }
    return sum;
}

// Nothing here branches on the values, so that reading them never waits.
static inline void select_find(const float *x, __m256i floor, finds *f)
{
    size_t count = 0;
    for (uint32_t g = 0; g < BLOCK / GROUP; g++) {
        const float *const group = x + GROUP * (size_t)g;
        const uint32_t mask = above(group, floor);
        laci_prefetch(group);
        f->groups[count] = g;
        f->masks[count] = mask;
        count += mask != 0;
    }
    f->count = count;
}

static inline size_t ties_of(const float *x, __m256i limit)
{
    __m256i ties = _mm256_setzero_si256();
    for (size_t j = 0; j < BLOCK; j += LANES) {
        ties = _mm256_sub_epi32(
            ties, _mm256_cmpeq_epi32(magnitudes(x + j), limit));
    }
    return select_sum(ties);
}

// Drops values that equal the limit from the masks of a block, all but the
// first `ties`.
static void drop_ties(const float *x, __m256i limit, size_t ties, finds *f)
{
    for (size_t g = 0; g < f->count; g++) {
        const uint32_t larger = above(x + GROUP * (size_t)f->groups[g], limit);
        const uint32_t equal = lowest(f->masks[g] & ~larger, ties);
        ties -= (size_t)_mm_popcnt_u32(equal);
        f->masks[g] = larger | equal;
    }
}

// Writes the values of a block that were found: many of them eight at a time,
// few of them, or the last that fit, one by one. Returns whether there was
// room.
static inline bool select_take(
    collection *c, const float *x, size_t start, const finds *f)
{
    const size_t room = c->cap - c->found;
    size_t total = 0;
    for (size_t g = 0; g < f->count; g++) {
        total += (size_t)_mm_popcnt_u32(f->masks[g]);
    }
    if (total > MANY && room >= BLOCK) {
        for (size_t g = 0; g < f->count; g++) {
            const size_t i = start + GROUP * (size_t)f->groups[g];
            for (size_t j = 0; j < GROUP; j += LANES) {
                take_lanes(c, x, i + j, f->masks[g] >> j & 0xff);
            }
        }
        return true;
    }
    if (total > room) {
        return false;
    }
    for (size_t g = 0; g < f->count; g++) {
        for (uint32_t mask = f->masks[g]; mask != 0; mask &= mask - 1) {
            const size_t i = start + GROUP * (size_t)f->groups[g] +
                             (uint32_t)__builtin_ctz(mask);
            c->indices[c->found] = (uint32_t)i;
            if (c->values != NULL) {
                c->values[c->found] = x[i];
            }
            c->found++;
        }
    }
    return true;
}

// While ties are left, values equal to the limit are found as well.
static size_t avx2_collect(
    const float *x, size_t n, laci_limit limit, size_t cap,
    uint32_t *indices_out, float *values_out)
{
    collection c = {0, cap, indices_out, values_out};
    const __m256i strict = _mm256_set1_epi32((int)limit.magnitude);
    const __m256i wide = _mm256_set1_epi32((int)limit.magnitude - 1);
    const bool all_ties = limit.ties >= n;
    size_t start = 0;
    for (; start + BLOCK <= n; start += BLOCK) {
        finds f;
        select_find(x + start, limit.ties > 0 ? wide : strict, &f);
        if (limit.ties > 0 && !all_ties) {
            const size_t ties = ties_of(x + start, strict);
            if (ties > limit.ties) {
                drop_ties(x + start, strict, limit.ties, &f);
            }
            limit.ties -= ties < limit.ties ? ties : limit.ties;
        }
        if (!select_take(&c, x, start, &f)) {
            return cap + 1;
        }
    }
    const size_t rest = laci_select_portable.collect(
        x + start, n - start, limit, cap - c.found, indices_out + c.found,
        values_out == NULL ? NULL : values_out + c.found);
    for (size_t j = 0; j < rest && j < cap - c.found; j++) {
        indices_out[c.found + j] += (uint32_t)start;
    }
    return c.found + rest;
}

// Finds the values of a block that are above one floor and not above another,
// and writes which are above both. Returns how many these are.
static inline size_t find_between(
    const float *x, __m256i floor, __m256i other, uint8_t *above_out, finds *f)
{
    size_t count = 0, both = 0;
    for (uint32_t g = 0; g < BLOCK / GROUP; g++) {
        const float *const group = x + GROUP * (size_t)g;
        const uint32_t high = above(group, other);
        const uint32_t between = above(group, floor) & ~high;
        laci_prefetch(group);
        laci_put_u32(above_out + GROUP / 8 * (size_t)g, high);
        both += (size_t)_mm_popcnt_u32(high);
        f->groups[count] = g;
        f->masks[count] = between;
        count += between != 0;
    }
    f->count = count;
    return both;
}

static laci_census avx2_survey(
    const float *x, size_t n, laci_band band, size_t cap, uint8_t *above_out,
    float *values_out, uint32_t *indices_out)
{
    const __m256i below_low = _mm256_set1_epi32((int)band.low - 1);
    const __m256i below_high = _mm256_set1_epi32((int)(band.high - 1));
    collection c = {0, cap, indices_out, values_out};
    laci_census census = {0, 0};
    size_t start = 0;
    for (; start + BLOCK <= n; start += BLOCK) {
        finds f;
        census.above += find_between(
            x + start, below_low, below_high, above_out + start / 8, &f);
        for (size_t g = 0; g < f.count; g++) {
            census.within += (size_t)_mm_popcnt_u32(f.masks[g]);
        }
        (void)select_take(&c, x, start, &f);
    }
    const laci_census rest = laci_select_portable.survey(
        x + start, n - start, band, cap - c.found, above_out + start / 8,
        values_out + c.found, indices_out + c.found);
    for (size_t j = 0; j < rest.within && j < cap - c.found; j++) {
        indices_out[c.found + j] += (uint32_t)start;
    }
    return (laci_census){
        .within = census.within + rest.within,
        .above = census.above + rest.above,
    };
}

// Writes where the ones of a word are, the first eight of them at least: it
// may write eight places even if there are fewer.
static inline void take_few(uint64_t word, uint32_t start, uint32_t *indices)
{
    do {
        for (size_t j = 0; j < LANES; j++) {
            indices[j] = start + (uint32_t)_tzcnt_u64(word);
            word = _blsr_u64(word);
        }
        indices += LANES;
    } while (word != 0);
}

static inline void take_many(uint64_t word, uint32_t start, uint32_t *indices)
{
    for (uint32_t j = 0; j < 64; j += LANES) {
        const uint32_t mask = (uint32_t)(word >> j & 0xff);
        _mm256_storeu_si256(
            (void *)indices,
            _mm256_add_epi32(
                named_lanes(mask), _mm256_set1_epi32((int)(start + j))));
        indices += _mm_popcnt_u32(mask);
    }
}

static size_t avx2_expand(
    const uint8_t *bits, size_t n, size_t cap, uint32_t *indices_out)
{
    size_t start = 0, found = 0;
    for (; n - start >= 64 && cap - found >= 64 + LANES; start += 64) {
        const uint64_t word = laci_get_u64(bits + start / 8);
        const size_t count = (size_t)_mm_popcnt_u64(word);
        if (count <= FEW) {
            take_few(word, (uint32_t)start, indices_out + found);
        } else {
            take_many(word, (uint32_t)start, indices_out + found);
        }
        found += count;
    }
    const size_t rest = laci_select_portable.expand(
        bits + start / 8, n - start, cap - found, indices_out + found);
    for (size_t j = 0; j < rest && j < cap - found; j++) {
        indices_out[found + j] += (uint32_t)start;
    }
    return found + rest;
}

// The compiler vectorises the rounds.
static void avx2_permute(const laci_permutation *p, uint32_t *values, size_t n)
{
    const laci_permutation local = *p;
    for (size_t i = 0; i < n; i++) {
        values[i] = laci_permute(&local, values[i]);
    }
}

const laci_select_kernels laci_select_avx2 = {
    .count = avx2_count,
    .collect = avx2_collect,
    .survey = avx2_survey,
    .expand = avx2_expand,
    .permute = avx2_permute,
};
