// SPDX-License-Identifier: MIT
#include "compress/indices.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "base/fail.h"

enum { LIST = 0, GAPS = 1, BITMAP = 2, RICE_MAX = 31, REFILL_CODES = 4 };

static size_t bytes_of(uint64_t bits)
{
    return (size_t)(bits / 8 + (bits % 8 != 0));
}

static size_t list_size(size_t k)
{
    return 1 + 4 * k;
}

static size_t bitmap_size(size_t n)
{
    return 1 + bytes_of(n);
}

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
    size_t bound = least(list_size(k), bitmap_size(n));
    for (unsigned b = 0; b <= RICE_MAX; b++) {
        const uint64_t bits = (uint64_t)k * (b + 1) + ((uint64_t)(n - k) >> b);
        bound = least(bound, 2 + bytes_of(bits));
    }
    return bound;
}

// The bits that all gaps take with the parameter b.
static uint64_t gaps_cost(const uint32_t *indices, size_t k, unsigned b)
{
    uint64_t quotients = indices[0] >> b;
    for (size_t i = 1; i < k; i++) {
        quotients += (indices[i] - indices[i - 1] - 1) >> b;
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
    while (b < RICE_MAX && (double)(2ull << b) <= spread) {
        b++;
    }
    uint64_t cost = gaps_cost(indices, k, b);
    for (int step = -1; step <= 1; step += 2) {
        while ((step < 0 && b > 0) || (step > 0 && b < RICE_MAX)) {
            const unsigned next = step < 0 ? b - 1 : b + 1;
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

static void put_gaps(
    const uint32_t *indices, size_t k, unsigned b, uint8_t *out)
{
    bit_writer w = {out, 0, 0};
    const uint32_t mask = (1u << b) - 1;
    uint32_t expected = 0;
    for (size_t i = 0; i < k; i++) {
        const uint32_t gap = indices[i] - expected;
        uint32_t quotient = gap >> b;
        for (; quotient > 31; quotient -= 32) {
            put_bits(&w, 0, 32);
        }
        const uint64_t code = (uint64_t)(gap & mask) << 1 | 1;
        put_bits(&w, code << quotient, quotient + 1 + b);
        expected = indices[i] + 1;
    }
    for (unsigned sent = 0; sent < w.count; sent += 8) {
        *w.out++ = (uint8_t)(w.bits >> sent);
    }
}

static void put_bitmap(
    const uint32_t *indices, size_t k, size_t n, uint8_t *out)
{
    memset(out, 0, bytes_of(n));
    for (size_t i = 0; i < k; i++) {
        out[indices[i] / 8] |= (uint8_t)(1u << indices[i] % 8);
    }
}

size_t laci_indices_put(
    const uint32_t *indices, size_t k, size_t n, uint8_t *out)
{
    if (k == n) {
        return 0;
    }
    uint64_t cost;
    const unsigned b = best_parameter(indices, k, n, &cost);
    const size_t gaps = 2 + bytes_of(cost);
    if (list_size(k) <= least(gaps, bitmap_size(n))) {
        out[0] = LIST;
        for (size_t i = 0; i < k; i++) {
            laci_put_u32(out + 1 + 4 * i, indices[i]);
        }
        return list_size(k);
    }
    if (gaps <= bitmap_size(n)) {
        out[0] = GAPS;
        out[1] = (uint8_t)b;
        put_gaps(indices, k, b, out + 2);
        return gaps;
    }
    out[0] = BITMAP;
    put_bitmap(indices, k, n, out + 1);
    return bitmap_size(n);
}

static lac_status fail_range(const char *name, uint64_t index, size_t n)
{
    return lac_fail(
        LAC_ERR_CORRUPT, "%s: an index is %llu, expected below %zu", name,
        (unsigned long long)index, n);
}

static lac_status fail_padding(const char *name)
{
    return lac_fail(
        LAC_ERR_CORRUPT, "%s: padding of the indices is not zero", name);
}

static lac_status check_size(const char *name, size_t len, size_t needed)
{
    if (len < needed) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: payload has %zu bytes, expected at least %zu for the indices",
            name, len, needed);
    }
    return LAC_OK;
}

static lac_status get_list(
    const char *name, const uint8_t *in, size_t k, size_t n,
    uint32_t *indices_out)
{
    for (size_t i = 0; i < k; i++) {
        const uint32_t index = laci_get_u32(in + 4 * i);
        if (index >= n) {
            return fail_range(name, index, n);
        }
        if (i > 0 && index <= indices_out[i - 1]) {
            return lac_fail(
                LAC_ERR_CORRUPT,
                "%s: index %u follows index %u, expected them ascending", name,
                (unsigned)index, (unsigned)indices_out[i - 1]);
        }
        indices_out[i] = index;
    }
    return LAC_OK;
}

// Bits on their way in: at least `count` of `bits`, all of them before `in`,
// wait to be used. Bits above are zero or those that come next.
typedef struct bit_reader {
    const uint8_t *in;
    const uint8_t *end;
    uint64_t bits;
    unsigned count;
} bit_reader;

// Makes at least 56 bits wait, fewer only at the end.
static inline void refill(bit_reader *r)
{
    if (r->end - r->in >= 8) {
        r->bits |= laci_get_u64(r->in) << r->count;
        r->in += (63 - r->count) / 8;
        r->count |= 56;
        return;
    }
    for (; r->count < 56 && r->in < r->end; r->count += 8) {
        r->bits |= (uint64_t)*r->in++ << r->count;
    }
}

static inline void skip(bit_reader *r, unsigned len)
{
    assert(len < 64);
    r->bits >>= len;
    r->count -= len;
}

// How many zeros come before a one, or 63, which is as many as can wait.
static inline unsigned zeros_of(uint64_t bits)
{
    return bits == 0 ? 63 : (unsigned)__builtin_ctzll(bits);
}

// Reads a code that does not lie in the waiting bits as a whole. Tells whether
// there is one.
static bool get_long_gap(bit_reader *r, unsigned b, uint64_t *gap_out)
{
    uint64_t quotient = 0;
    unsigned zeros = zeros_of(r->bits);
    while (zeros >= r->count) {
        quotient += r->count;
        skip(r, r->count);
        refill(r);
        if (r->count == 0) {
            return false;
        }
        zeros = zeros_of(r->bits);
    }
    quotient += zeros;
    skip(r, zeros);
    skip(r, 1);
    refill(r);
    if (r->count < b || quotient > UINT32_MAX) {
        *gap_out = UINT64_MAX >> 1;
        return r->count >= b;
    }
    *gap_out = quotient << b | (r->bits & ((1u << b) - 1));
    skip(r, b);
    return true;
}

static lac_status get_gaps(
    const char *name, bit_reader *r, unsigned b, size_t k, size_t n,
    uint32_t *indices_out)
{
    bit_reader local = *r;
    const uint64_t mask = (1u << b) - 1;
    uint64_t expected = 0;
    for (size_t i = 0; i < k; i++) {
        if (i % REFILL_CODES == 0) {
            refill(&local);
        }
        const unsigned zeros = zeros_of(local.bits);
        uint64_t gap;
        if (zeros + 1 + b <= local.count) {
            assert(zeros < 64);
            const uint64_t rest = local.bits >> zeros >> 1;
            gap = (uint64_t)zeros << b | (rest & mask);
            local.bits = rest >> b;
            local.count -= zeros + 1 + b;
        } else if (!get_long_gap(&local, b, &gap)) {
            return lac_fail(
                LAC_ERR_CORRUPT,
                "%s: payload ends after %zu indices, expected %zu", name, i, k);
        }
        if (gap >= n - expected) {
            return fail_range(name, expected + gap, n);
        }
        indices_out[i] = (uint32_t)(expected + gap);
        expected += gap + 1;
    }
    *r = local;
    return LAC_OK;
}

static lac_status get_rice(
    const char *name, const uint8_t *in, size_t len, size_t k, size_t n,
    uint32_t *indices_out, size_t *used_out)
{
    LAC_TRY(check_size(name, len, 2));
    if (in[1] > RICE_MAX) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: parameter of the gaps is %u, expected at most %d", name,
            (unsigned)in[1], RICE_MAX);
    }
    bit_reader r = {in + 2, in + len, 0, 0};
    LAC_TRY(get_gaps(name, &r, in[1], k, n, indices_out));
    const size_t unused = r.count / 8;
    const size_t used = (size_t)(r.in - in) - unused;
    const unsigned padding = r.count % 8;
    if (in[used - 1] >> (8 - padding) != 0) {
        return fail_padding(name);
    }
    *used_out = used;
    return LAC_OK;
}

static lac_status get_bitmap(
    const char *name, const uint8_t *in, size_t k, size_t n,
    uint32_t *indices_out)
{
    if (n % 8 != 0 && in[n / 8] >> n % 8 != 0) {
        return fail_padding(name);
    }
    size_t found = 0;
    for (size_t start = 0; start < n; start += 8) {
        for (unsigned bits = in [start / 8]; bits != 0; bits &= bits - 1) {
            if (found < k) {
                indices_out[found] =
                    (uint32_t)start + (uint32_t)__builtin_ctz(bits);
            }
            found++;
        }
    }
    if (found != k) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: bitmap has %zu indices, expected %zu", name,
            found, k);
    }
    return LAC_OK;
}

lac_status laci_indices_get(
    const char *name, const uint8_t *in, size_t len, size_t k, size_t n,
    uint32_t *indices_out, size_t *used_out)
{
    if (k == n) {
        for (size_t i = 0; i < n; i++) {
            indices_out[i] = (uint32_t)i;
        }
        *used_out = 0;
        return LAC_OK;
    }
    LAC_TRY(check_size(name, len, 1));
    switch (in[0]) {
    case LIST:
        LAC_TRY(check_size(name, len, list_size(k)));
        *used_out = list_size(k);
        return get_list(name, in + 1, k, n, indices_out);
    case GAPS:
        return get_rice(name, in, len, k, n, indices_out, used_out);
    case BITMAP:
        LAC_TRY(check_size(name, len, bitmap_size(n)));
        *used_out = bitmap_size(n);
        return get_bitmap(name, in + 1, k, n, indices_out);
    default:
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: mode of the indices is %u, expected 0 to 2",
            name, (unsigned)in[0]);
    }
}
