// SPDX-License-Identifier: MIT
// select.c for AVX2. Values come in groups of 32, one bit each in a mask.
#include "kernels/select.h"

#include <immintrin.h>

enum { GROUP = 32, LANES = 8 };

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
    for (int j = 0; j < GROUP / LANES; j++) {
        const __m256i larger =
            _mm256_cmpgt_epi32(magnitudes(x + LANES * j), floor);
        mask |= lanes_of(larger) << LANES * j;
    }
    return mask;
}

// Which digits are wanted at all is known for eight values at once; after the
// first digit it is few.
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
        _mm256_storeu_si256(
            (void *)digits, _mm256_and_si256(_mm256_srl_epi32(v, shift), mask));
        if (wanted == 0xff) {
            for (int j = 0; j < LANES; j += 2) {
                counts[digits[j]]++;
                odd[digits[j + 1]]++;
            }
            continue;
        }
        for (; wanted != 0; wanted &= wanted - 1) {
            counts[digits[(uint32_t)__builtin_ctz(wanted)]]++;
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
    uint32_t *indices;
    float *values;
} collection;

static inline void take(
    collection *c, const float *x, size_t start, uint32_t mask)
{
    size_t found = c->found;
    for (; mask != 0; mask &= mask - 1) {
        const size_t i = start + (uint32_t)__builtin_ctz(mask);
        c->indices[found] = (uint32_t)i;
        if (c->values != NULL) {
            c->values[found] = x[i];
        }
        found++;
    }
    c->found = found;
}

// The lowest `count` of the bits set.
static inline uint32_t lowest(uint32_t mask, size_t count)
{
    return count >= GROUP ? mask : _pdep_u32((1u << count) - 1, mask);
}

// Values above the limit are found by one comparison, and while ties are left
// those equal to it by another.
static size_t collect(
    const float *x, size_t n, laci_limit limit, size_t cap,
    uint32_t *indices_out, float *values_out)
{
    collection c = {0, indices_out, values_out};
    const __m256i strict = _mm256_set1_epi32((int)limit.magnitude);
    const __m256i ties =
        _mm256_set1_epi32((int)limit.magnitude - (limit.ties > 0));
    __m256i floor = ties;
    size_t left = limit.ties;
    size_t i = 0;
    for (; i + GROUP <= n; i += GROUP) {
        uint32_t mask = above(x + i, floor);
        if (mask == 0) {
            continue;
        }
        if (left > 0 && left < n) {
            const uint32_t larger = above(x + i, strict);
            const uint32_t equal = lowest(mask & ~larger, left);
            left -= (size_t)_mm_popcnt_u32(equal);
            floor = left == 0 ? strict : ties;
            mask = larger | equal;
        }
        if ((size_t)_mm_popcnt_u32(mask) > cap - c.found) {
            return cap + 1;
        }
        take(&c, x, i, mask);
    }
    limit.ties = left;
    const size_t found = laci_select_portable.collect(
        x + i, n - i, limit, cap - c.found, indices_out + c.found,
        values_out == NULL ? NULL : values_out + c.found);
    for (size_t j = 0; j < found && j < cap - c.found; j++) {
        indices_out[c.found + j] += (uint32_t)i;
    }
    return c.found + found;
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
