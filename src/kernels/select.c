// SPDX-License-Identifier: MIT
#include "kernels/select.h"

#include <string.h>

// Neighbours often have the same digit. With two tables, an increment does not
// wait for the one before it.
static void count(const float *x, size_t n, laci_digit digit, uint32_t *counts)
{
    uint32_t odd[LACI_DIGITS];
    memset(odd, 0, sizeof(*odd) << digit.bits);
    const uint32_t mask = (1u << digit.bits) - 1;
    const unsigned above = digit.shift + digit.bits;
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = laci_magnitude(x[i]);
        if (magnitude >> above == digit.higher) {
            uint32_t *const table = i % 2 == 0 ? counts : odd;
            table[magnitude >> digit.shift & mask]++;
        }
    }
    for (size_t d = 0; d <= mask; d++) {
        counts[d] += odd[d];
    }
}

static size_t collect(
    const float *x, size_t n, laci_limit limit, size_t cap,
    uint32_t *indices_out, float *values_out)
{
    size_t found = 0, ties = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = laci_magnitude(x[i]);
        if (magnitude < limit.magnitude) {
            continue;
        }
        if (magnitude == limit.magnitude && ties++ >= limit.ties) {
            continue;
        }
        if (found == cap) {
            return cap + 1;
        }
        indices_out[found] = (uint32_t)i;
        if (values_out != NULL) {
            values_out[found] = x[i];
        }
        found++;
    }
    return found;
}

// The only branch is for values within the band, which are few.
static laci_census survey(
    const float *x, size_t n, laci_band band, size_t cap, uint8_t *above_out,
    float *values_out, uint32_t *indices_out)
{
    const uint32_t width = band.high - band.low;
    laci_census census = {0, 0};
    for (size_t start = 0; start < n; start += 8) {
        const size_t end = n - start < 8 ? n : start + 8;
        unsigned bits = 0;
        for (size_t i = start; i < end; i++) {
            const uint32_t magnitude = laci_magnitude(x[i]);
            const unsigned above = magnitude >= band.high;
            bits |= above << (i - start);
            census.above += above;
            if (magnitude - band.low >= width) {
                continue;
            }
            if (census.within < cap) {
                values_out[census.within] = x[i];
                indices_out[census.within] = (uint32_t)i;
            }
            census.within++;
        }
        above_out[start / 8] = (uint8_t)bits;
    }
    return census;
}

// Up to 64 bits of n, from bit `start` on.
static inline uint64_t word_of(const uint8_t *bits, size_t start, size_t n)
{
    if (n - start >= 64) {
        return laci_get_u64(bits + start / 8);
    }
    uint64_t word = 0;
    for (size_t at = start; at < n; at += 8) {
        word |= (uint64_t)bits[at / 8] << (at - start);
    }
    return word;
}

static size_t expand(
    const uint8_t *bits, size_t n, size_t cap, uint32_t *indices_out)
{
    size_t found = 0;
    for (size_t start = 0; start < n; start += 64) {
        uint64_t word = word_of(bits, start, n);
        for (; word != 0; word &= word - 1) {
            if (found < cap) {
                indices_out[found] =
                    (uint32_t)start + (uint32_t)__builtin_ctzll(word);
            }
            found++;
        }
    }
    return found;
}

static void permute(const laci_permutation *p, uint32_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        values[i] = laci_permute(p, values[i]);
    }
}

const laci_select_kernels laci_select_portable = {
    .count = count,
    .collect = collect,
    .survey = survey,
    .expand = expand,
    .permute = permute,
};
