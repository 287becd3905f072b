// SPDX-License-Identifier: MIT
// select.c for AVX2. Values come in groups of 32, one bit each in a mask, and
// groups in blocks.
#include "kernels/select.h"

#include <immintrin.h>
#include <stdbool.h>

#include "kernels/ahead_avx2.h"

enum { LANES = 8, GROUP = 32, BLOCK = 256, MANY = 8 };

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

// Which digits are wanted is known for eight values at once; after the first
// digit they are few. Long runs of one value, as of zeros, are common enough to
// be counted in steps of eight.
static void count(const float *x, size_t n, laci_digit digit, uint32_t *counts)
{
    uint32_t odd[LACI_DIGITS] = {0};
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

// Writes those of eight values that a mask names. It may write seven more.
static inline void take_lanes(
    collection *c, const float *x, size_t start, uint32_t mask)
{
    const uint64_t bytes = _pdep_u64(mask, 0x0101010101010101) * 0xff;
    const __m256i lanes = _mm256_cvtepu8_epi32(
        _mm_cvtsi64_si128((long long)_pext_u64(0x0706050403020100, bytes)));
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

// Writes those of 32 values that a mask names: many of them eight at a time,
// few of them, or the last there is room for, one by one. Tells whether there
// was room.
static inline bool take(
    collection *c, const float *x, size_t start, uint32_t mask)
{
    const size_t count = (size_t)_mm_popcnt_u32(mask);
    if (count > MANY && c->cap - c->found >= GROUP) {
        for (size_t j = 0; j < GROUP; j += LANES) {
            take_lanes(c, x, start + j, mask >> j & 0xff);
        }
        return true;
    }
    if (count > c->cap - c->found) {
        return false;
    }
    for (; mask != 0; mask &= mask - 1) {
        const size_t i = start + (uint32_t)__builtin_ctz(mask);
        c->indices[c->found] = (uint32_t)i;
        if (c->values != NULL) {
            c->values[c->found] = x[i];
        }
        c->found++;
    }
    return true;
}

// The lowest `count` of the bits set.
static inline uint32_t lowest(uint32_t mask, size_t count)
{
    return count >= GROUP ? mask : _pdep_u32((1u << count) - 1, mask);
}

// The groups of a block in which there is something to take.
typedef struct finds {
    size_t count;
    uint32_t groups[BLOCK / GROUP];
    uint32_t masks[BLOCK / GROUP];
} finds;

// Nothing here branches on the values, so that reading them never waits.
static inline void find(const float *x, __m256i floor, finds *f)
{
    size_t count = 0;
    for (uint32_t g = 0; g < BLOCK / GROUP; g++) {
        const float *const group = x + GROUP * (size_t)g;
        const uint32_t mask = above(group, floor);
        laci_ask_ahead(group);
        f->groups[count] = g;
        f->masks[count] = mask;
        count += mask != 0;
    }
    f->count = count;
}

// While ties are left, values equal to the limit are found as well, and those
// beyond the last tie are dropped from the mask of their group.
static size_t collect(
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
        const bool some_ties = limit.ties > 0 && !all_ties;
        find(x + start, limit.ties > 0 ? wide : strict, &f);
        for (size_t g = 0; g < f.count; g++) {
            const size_t i = start + GROUP * (size_t)f.groups[g];
            uint32_t mask = f.masks[g];
            if (some_ties) {
                const uint32_t larger = above(x + i, strict);
                const uint32_t equal = lowest(mask & ~larger, limit.ties);
                limit.ties -= (size_t)_mm_popcnt_u32(equal);
                mask = larger | equal;
            }
            if (!take(&c, x, i, mask)) {
                return cap + 1;
            }
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

// The compiler turns the rounds into vectors by itself.
static void permute(const laci_permutation *p, uint32_t *values, size_t n)
{
    const laci_permutation local = *p;
    for (size_t i = 0; i < n; i++) {
        values[i] = laci_permute(&local, values[i]);
    }
}

const laci_select_kernels laci_select_avx2 = {
    .count = count,
    .collect = collect,
    .permute = permute,
};
