// SPDX-License-Identifier: MIT
// Writing indices.
#include "compress/indices.h"

#include <string.h>

#include "base/bytes.h"
#include "compress/indices_code.h"
#include "kernels/pack.h"
#include "kernels/pack_gaps.h"

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

// All gaps together are n - k at most, and so are their quotients 2^b times.
size_t laci_indices_bound(size_t n, size_t k)
{
    if (k == n) {
        return 0;
    }
    size_t bound = least(laci_list_size(k), laci_bitmap_size(n));
    for (unsigned b = 0; b <= LACI_RICE_MAX; b++) {
        const uint64_t bits = (uint64_t)k * (b + 1) + ((uint64_t)(n - k) >> b);
        bound = least(bound, 2 + laci_bytes_of(bits));
    }
    return bound;
}

// The bits that all gaps take with the parameter b.
static uint64_t gaps_cost(
    const laci_kernels *kernels, const uint32_t *indices, size_t k, unsigned b)
{
    const uint32_t zeros = b == 0 ? indices[k - 1] - (uint32_t)(k - 1)
                                  : kernels->pack->gaps_zeros(b, indices, k);
    return zeros + (uint64_t)k * (b + 1);
}

// What the parameter `next`, one more or less than b, costs at least, given the
// cost of b: a gap has twice as many zeros with one less, and half as many
// with one more, but for the zero or one that is rounded away.
static uint64_t least_cost(size_t k, unsigned b, uint64_t cost, unsigned next)
{
    const uint64_t zeros = cost - (uint64_t)k * (b + 1);
    const uint64_t fewer = zeros > k ? (zeros - k) / 2 : 0;
    return (uint64_t)k * (next + 1) + (next < b ? 2 * zeros : fewer);
}

// The cost falls and then rises with b, so that walking downhill ends at the
// best. Indices spread at random begin there or one beside it: their gaps are
// geometric, of mean g, and the best 2^b is near g * ln 2.
static unsigned best_parameter(
    const laci_kernels *kernels, const uint32_t *indices, size_t k, size_t n,
    uint64_t *cost_out)
{
    const double spread = 0.7 * (double)(n - k) / (double)k;
    unsigned b = 0;
    while (b < LACI_RICE_MAX && (double)(2ull << b) <= spread) {
        b++;
    }
    uint64_t cost = gaps_cost(kernels, indices, k, b);
    for (int step = -1; step <= 1; step += 2) {
        while ((step < 0 && b > 0) || (step > 0 && b < LACI_RICE_MAX)) {
            const unsigned next = step < 0 ? b - 1 : b + 1;
            if (least_cost(k, b, cost, next) >= cost) {
                break;
            }
            const uint64_t other = gaps_cost(kernels, indices, k, next);
            if (other >= cost) {
                break;
            }
            cost = other;
            b = next;
        }
    }
    *cost_out = cost;
    return b;
}

// The bits of up to 64 indices, from *at_inout on, that are below `end`.
static inline uint64_t bits_below(
    const uint32_t *indices, size_t k, uint64_t end, size_t *at_inout)
{
    uint64_t bits = 0;
    size_t i = *at_inout;
    if (k - i > 64) {
        for (; indices[i] < end; i++) {
            bits |= UINT64_C(1) << indices[i] % 64;
        }
    } else {
        for (; i < k && indices[i] < end; i++) {
            bits |= UINT64_C(1) << indices[i] % 64;
        }
    }
    *at_inout = i;
    return bits;
}

static void put_bitmap(
    const uint32_t *indices, size_t k, size_t n, uint8_t *out)
{
    size_t i = 0;
    size_t start = 0;
    for (; n - start >= 64; start += 64) {
        laci_put_u64(out + start / 8, bits_below(indices, k, start + 64, &i));
    }
    const laci_bit_writer last = {
        .out = out + start / 8,
        .bits = bits_below(indices, k, n, &i),
        .count = (unsigned)(n - start),
    };
    laci_bits_end(&last);
}

size_t laci_indices_put(
    const laci_kernels *kernels, const uint32_t *indices, laci_subset subset,
    const uint8_t *bitmap, uint8_t *out)
{
    const size_t k = subset.k, n = subset.n;
    if (k == n) {
        return 0;
    }
    uint64_t cost;
    const unsigned b = best_parameter(kernels, indices, k, n, &cost);
    const size_t gaps = 2 + laci_bytes_of(cost);
    if (laci_list_size(k) <= least(gaps, laci_bitmap_size(n))) {
        out[0] = LACI_INDICES_LIST;
        for (size_t i = 0; i < k; i++) {
            laci_put_u32(out + 1 + 4 * i, indices[i]);
        }
        return laci_list_size(k);
    }
    if (gaps <= laci_bitmap_size(n)) {
        out[0] = LACI_INDICES_GAPS;
        out[1] = (uint8_t)b;
        kernels->pack->pack_gaps(b, indices, k, out + 2);
        return gaps;
    }
    out[0] = LACI_INDICES_BITMAP;
    if (bitmap != NULL) {
        memcpy(out + 1, bitmap, laci_bytes_of(n));
    } else {
        put_bitmap(indices, k, n, out + 1);
    }
    return laci_bitmap_size(n);
}
