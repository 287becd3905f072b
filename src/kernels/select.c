// SPDX-License-Identifier: MIT
#include "kernels/select.h"

// Neighbours often have the same digit. Two tables keep an increment from
// waiting for the one before it.
static void count(const float *x, size_t n, laci_digit digit, uint32_t *counts)
{
    uint32_t odd[LACI_DIGITS] = {0};
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

static void permute(const laci_permutation *p, uint32_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        values[i] = laci_permute(p, values[i]);
    }
}

const laci_select_kernels laci_select_portable = {
    .count = count,
    .collect = collect,
    .permute = permute,
};
