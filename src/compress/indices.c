// SPDX-License-Identifier: MIT
// Writing indices.
#include "compress/indices.h"

#include <string.h>

#include "base/bytes.h"
#include "compress/indices_code.h"

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

// The bits that all gaps take with the parameter b. All quotients together are
// at most n, which has 32 bits.
static uint64_t gaps_cost(const uint32_t *indices, size_t k, unsigned b)
{
    uint32_t quotients = indices[0] >> b;
    if (b == 0) {
        quotients = indices[k - 1] - (uint32_t)(k - 1);
    } else {
        for (size_t i = 1; i < k; i++) {
            quotients += (indices[i] - indices[i - 1] - 1) >> b;
        }
    }
    return quotients + (uint64_t)k * (b + 1);
}

// The cost falls and then rises with b, so that walking downhill ends at the
// best. Indices spread at random begin there or one beside it: their gaps are
// geometric, of mean g, and the best 2^b is near g * ln 2.
static unsigned best_parameter(
    const uint32_t *indices, size_t k, size_t n, uint64_t *cost_out)
{
    const double spread = 0.7 * (double)(n - k) / (double)k;
    unsigned b = 0;
    while (b < LACI_RICE_MAX && (double)(2ull << b) <= spread) {
        b++;
    }
    uint64_t cost = gaps_cost(indices, k, b);
    for (int step = -1; step <= 1; step += 2) {
        while ((step < 0 && b > 0) || (step > 0 && b < LACI_RICE_MAX)) {
            const unsigned next = step < 0 ? b - 1 : b + 1;
            if ((uint64_t)k * (next + 1) >= cost) {
                break; // without any quotients it is no better
            }
            const uint64_t other = gaps_cost(indices, k, next);
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

// Bits on their way out: `count` of them, below 64, wait in `bits`.
typedef struct bit_writer {
    uint8_t *out;
    uint64_t bits;
    unsigned count;
} bit_writer;

// Appends `len` bits, 1 to 63.
static inline void put_bits(bit_writer *w, uint64_t bits, unsigned len)
{
    w->bits |= bits << w->count;
    w->count += len;
    if (w->count >= 64) {
        laci_put_u64(w->out, w->bits);
        w->out += 8;
        w->count -= 64;
        w->bits = bits >> (len - w->count);
    }
}

// Writes the bytes of fewer than 64 bits.
static void put_last(uint64_t bits, unsigned count, uint8_t *out)
{
    for (unsigned sent = 0; sent < count; sent += 8) {
        *out++ = (uint8_t)(bits >> sent);
    }
}

// A Rice code: its bits, and how many they are.
typedef struct rice_code {
    uint64_t bits;
    uint64_t len;
} rice_code;

// The bits are wrong when they are more than 63.
static inline rice_code rice_of(uint32_t gap, unsigned b)
{
    const uint32_t quotient = gap >> b;
    const uint64_t rest = (uint64_t)(gap & ((1u << b) - 1)) << 1 | 1;
    return (rice_code){rest << quotient % 64, quotient + 1 + b};
}

// Appends a code of any length.
static void put_long_code(bit_writer *w, uint32_t gap, unsigned b)
{
    uint32_t quotient = gap >> b;
    for (; quotient > 31; quotient -= 32) {
        put_bits(w, 0, 32);
    }
    const rice_code code = rice_of(quotient << b | (gap & ((1u << b) - 1)), b);
    put_bits(w, code.bits, (unsigned)code.len);
}

// Codes are mostly short, and two go together.
static void put_gaps(
    const uint32_t *indices, size_t k, unsigned b, uint8_t *out)
{
    bit_writer w = {out, 0, 0};
    put_long_code(&w, indices[0], b);
    for (size_t i = 1; i + 1 < k; i += 2) {
        const uint32_t gap0 = indices[i] - indices[i - 1] - 1;
        const uint32_t gap1 = indices[i + 1] - indices[i] - 1;
        const rice_code one = rice_of(gap0, b), two = rice_of(gap1, b);
        if (one.len + two.len <= 63) {
            put_bits(
                &w, one.bits | two.bits << one.len,
                (unsigned)(one.len + two.len));
        } else {
            put_long_code(&w, gap0, b);
            put_long_code(&w, gap1, b);
        }
    }
    if (k % 2 == 0) {
        put_long_code(&w, indices[k - 1] - indices[k - 2] - 1, b);
    }
    put_last(w.bits, w.count, w.out);
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
    put_last(
        bits_below(indices, k, n, &i), (unsigned)(n - start), out + start / 8);
}

size_t laci_indices_put(
    const uint32_t *indices, laci_subset subset, const uint8_t *bitmap,
    uint8_t *out)
{
    const size_t k = subset.k, n = subset.n;
    if (k == n) {
        return 0;
    }
    uint64_t cost;
    const unsigned b = best_parameter(indices, k, n, &cost);
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
        put_gaps(indices, k, b, out + 2);
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
