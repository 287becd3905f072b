// SPDX-License-Identifier: MIT
// Writing indices, then reading them. The bytes that are read may come from
// anywhere: nothing in them is used before it is checked.
#include "compress/indices.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "base/fail.h"
#include "kernels/pack.h"
#include "kernels/pack_gaps.h"
#include "kernels/select.h"

enum {
    MODE_LIST = 0,
    MODE_GAPS = 1,
    MODE_BITMAP = 2,
    RICE_MAX = 31, // the largest parameter of the gaps

    STEP_BITS = 11, // looked up at once
    STEP_VALUES = 1 << STEP_BITS,
    STEP_CODES = 4,
    STEPS = 5,      // in the 56 bits that are buffered
    SHORT_RICE = 3, // the largest parameter for which codes are short
    MANY = 1 << 16, // codes
};

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

static size_t indices_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

// The gaps sum to at most n - k, so their quotients sum to at most
// (n - k) / 2^b.
size_t laci_indices_bound(size_t n, size_t k)
{
    if (k == n) {
        return 0;
    }
    size_t bound = indices_least(list_size(k), bitmap_size(n));
    for (unsigned b = 0; b <= RICE_MAX; b++) {
        const uint64_t bits = (uint64_t)k * (b + 1) + ((uint64_t)(n - k) >> b);
        bound = indices_least(bound, 2 + bytes_of(bits));
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

// A lower bound of the cost of the parameter `next`, one more or less than b,
// given the cost of b: a gap has at least twice as many zeros with one less,
// and half as many, rounded down, with one more.
static uint64_t least_cost(size_t k, unsigned b, uint64_t cost, unsigned next)
{
    const uint64_t zeros = cost - (uint64_t)k * (b + 1);
    const uint64_t fewer = zeros > k ? (zeros - k) / 2 : 0;
    return (uint64_t)k * (next + 1) + (next < b ? 2 * zeros : fewer);
}

// The cost falls and then rises with b, so a walk downhill ends at the best.
// For indices spread at random it starts there or one beside it: their gaps
// are geometric with mean g, and the best 2^b is near g * ln 2.
static unsigned best_parameter(
    const laci_kernels *kernels, const uint32_t *indices, size_t k, size_t n,
    uint64_t *cost_out)
{
    const double spread = 0.7 * (double)(n - k) / (double)k;
    unsigned b = 0;
    while (b < RICE_MAX && (double)(2ull << b) <= spread) {
        b++;
    }
    uint64_t cost = gaps_cost(kernels, indices, k, b);
    for (int step = -1; step <= 1; step += 2) {
        while ((step < 0 && b > 0) || (step > 0 && b < RICE_MAX)) {
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
    const size_t gaps = 2 + bytes_of(cost);
    if (list_size(k) <= indices_least(gaps, bitmap_size(n))) {
        out[0] = MODE_LIST;
        for (size_t i = 0; i < k; i++) {
            laci_put_u32(out + 1 + 4 * i, indices[i]);
        }
        return list_size(k);
    }
    if (gaps <= bitmap_size(n)) {
        out[0] = MODE_GAPS;
        out[1] = (uint8_t)b;
        kernels->pack->pack_gaps(b, indices, k, out + 2);
        return gaps;
    }
    out[0] = MODE_BITMAP;
    if (bitmap != NULL) {
        memcpy(out + 1, bitmap, bytes_of(n));
    } else {
        put_bitmap(indices, k, n, out + 1);
    }
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

static lac_status check_room(const char *name, size_t len, size_t needed)
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

// A buffer of bits: at least the `count` lowest of `bits`, all from before
// `in`, are still to be used. Bits above are zero or those that come next.
typedef struct bit_reader {
    const uint8_t *in;
    const uint8_t *end;
    uint64_t bits;
    unsigned count;
} bit_reader;

// Fills the buffer to at least 56 bits, fewer only at the end.
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

static inline void skip_bits(bit_reader *r, unsigned len)
{
    assert(len < 64);
    r->bits >>= len;
    r->count -= len;
}

// How many zeros come before a one, or 63, as many as the buffer can hold.
static inline unsigned zeros_of(uint64_t bits)
{
    return bits == 0 ? 63 : (unsigned)__builtin_ctzll(bits);
}

// Reads a code that is not in the buffer as a whole. Returns whether there is
// one.
static bool get_long_gap(bit_reader *r, unsigned b, uint64_t *gap_out)
{
    uint64_t quotient = 0;
    unsigned zeros = zeros_of(r->bits);
    while (zeros >= r->count) {
        quotient += r->count;
        skip_bits(r, r->count);
        refill(r);
        if (r->count == 0) {
            return false;
        }
        zeros = zeros_of(r->bits);
    }
    quotient += zeros;
    skip_bits(r, zeros);
    skip_bits(r, 1);
    refill(r);
    if (r->count < b || quotient > UINT32_MAX) {
        *gap_out = UINT64_MAX >> 1;
        return r->count >= b;
    }
    *gap_out = quotient << b | (r->bits & ((1u << b) - 1));
    skip_bits(r, b);
    return true;
}

// The length of the code at the start of the bits, more than 63 if it is not in
// them as a whole.
static inline unsigned code_length(uint64_t bits, unsigned b)
{
    if (bits == 0) {
        return 64;
    }
    return (unsigned)__builtin_ctzll(bits) + 1 + b;
}

// The progress of reading: `found` indices, the next is `expected` or more.
typedef struct progress {
    size_t found;
    uint64_t expected;
} progress;

// Reads codes until there are `stop` indices. The buffer mostly holds eight
// codes when their parameter is small, four when it is not.
static lac_status get_gaps(
    const char *name, bit_reader *r, unsigned b, laci_subset subset,
    size_t stop, progress *p, uint32_t *indices_out)
{
    bit_reader local = *r;
    const uint64_t mask = (1u << b) - 1;
    const size_t refill_mask = b <= 2 ? 7 : 3;
    uint64_t expected = p->expected;
    for (size_t i = p->found; i < stop; i++) {
        if ((i & refill_mask) == 0) {
            refill(&local);
        }
        const unsigned used = code_length(local.bits, b);
        uint64_t gap;
        if (used <= local.count) {
            gap = (uint64_t)(used - 1 - b) << b |
                  (local.bits >> (used - b) & mask);
            skip_bits(&local, used);
        } else if (!get_long_gap(&local, b, &gap)) {
            return lac_fail(
                LAC_ERR_CORRUPT,
                "%s: payload ends after %zu indices, expected %zu", name, i,
                subset.k);
        }
        if (gap >= subset.n - expected) {
            return fail_range(name, expected + gap, subset.n);
        }
        indices_out[i] = (uint32_t)(expected + gap);
        expected += gap + 1;
    }
    *r = local;
    *p = (progress){stop, expected};
    return LAC_OK;
}

// The codes at the start of the next STEP_BITS bits: `count` whole ones, at
// most STEP_CODES, in `used` bits. Index j is ends[j] - 1 beyond the one that
// is expected; the ends after the last code repeat it.
typedef struct step {
    uint16_t used;
    uint16_t count;
    uint8_t ends[STEP_CODES];
} step;

static step indices_step(unsigned bits, unsigned b)
{
    step s = {0};
    unsigned end = 0, len = code_length(bits, b);
    while (s.count < STEP_CODES && s.used + len <= STEP_BITS) {
        const unsigned rest = bits >> (len - b) & ((1u << b) - 1);
        end += ((len - 1 - b) << b | rest) + 1;
        s.ends[s.count++] = (uint8_t)end;
        s.used = (uint16_t)(s.used + len);
        bits >>= len;
        len = code_length(bits, b);
    }
    for (unsigned j = s.count; j < STEP_CODES; j++) {
        s.ends[j] = (uint8_t)end;
    }
    return s;
}

// Takes one step. It writes STEP_CODES indices whatever their number. Returns
// whether it had a whole code, and no index beyond n.
static inline bool take_step(
    const step *steps, bit_reader *r, size_t n, progress *p,
    uint32_t *indices_out)
{
    const step s = steps[r->bits % STEP_VALUES];
    const uint64_t next = p->expected + s.ends[STEP_CODES - 1];
    if (s.count == 0 || next > n) {
        return false;
    }
    for (size_t j = 0; j < STEP_CODES; j++) {
        indices_out[p->found + j] = (uint32_t)(p->expected + s.ends[j] - 1);
    }
    r->bits >>= s.used;
    r->count -= s.used;
    p->found += s.count;
    p->expected = next;
    return true;
}

// Takes steps until one fails or the end is near.
static void get_steps(
    const step *steps, bit_reader *r, laci_subset subset, progress *p,
    uint32_t *indices_out)
{
    bit_reader local = *r;
    progress at = *p;
    bool going = true;
    while (going && at.found + STEPS * STEP_CODES <= subset.k &&
           local.end - local.in >= 8) {
        refill(&local);
        for (int i = 0; i < STEPS && going; i++) {
            going = take_step(steps, &local, subset.n, &at, indices_out);
        }
    }
    *r = local;
    *p = at;
}

// For many short codes, a table of all steps pays off. Codes that are not in it
// are read one by one.
static lac_status get_many_gaps(
    const char *name, bit_reader *r, unsigned b, laci_subset subset,
    uint32_t *indices_out)
{
    step steps[STEP_VALUES];
    progress p = {0, 0};
    for (unsigned i = 0; i < STEP_VALUES; i++) {
        steps[i] = indices_step(i, b);
    }
    for (;;) {
        get_steps(steps, r, subset, &p, indices_out);
        if (p.found == subset.k) {
            return LAC_OK;
        }
        refill(r);
        LAC_TRY(get_gaps(name, r, b, subset, p.found + 1, &p, indices_out));
    }
}

static lac_status get_rice(
    const char *name, const uint8_t *in, size_t len, laci_subset subset,
    uint32_t *indices_out, size_t *used_out)
{
    LAC_TRY(check_room(name, len, 2));
    if (in[1] > RICE_MAX) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: parameter of the gaps is %u, expected at most %d", name,
            (unsigned)in[1], RICE_MAX);
    }
    bit_reader r = {in + 2, in + len, 0, 0};
    if (in[1] <= SHORT_RICE && subset.k >= MANY) {
        LAC_TRY(get_many_gaps(name, &r, in[1], subset, indices_out));
    } else {
        progress p = {0, 0};
        LAC_TRY(get_gaps(name, &r, in[1], subset, subset.k, &p, indices_out));
    }
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
    const char *name, const laci_kernels *kernels, const uint8_t *in,
    laci_subset subset, uint32_t *indices_out)
{
    const size_t n = subset.n;
    if (n % 8 != 0 && in[n / 8] >> n % 8 != 0) {
        return fail_padding(name);
    }
    const size_t found = kernels->select->expand(in, n, subset.k, indices_out);
    if (found != subset.k) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: bitmap has %zu indices, expected %zu", name,
            found, subset.k);
    }
    return LAC_OK;
}

lac_status laci_indices_get(
    const char *name, const laci_kernels *kernels, const uint8_t *in,
    size_t len, laci_subset subset, uint32_t *indices_out, size_t *used_out)
{
    const size_t k = subset.k, n = subset.n;
    if (k == n) {
        for (size_t i = 0; i < n; i++) {
            indices_out[i] = (uint32_t)i;
        }
        *used_out = 0;
        return LAC_OK;
    }
    LAC_TRY(check_room(name, len, 1));
    switch (in[0]) {
    case MODE_LIST:
        LAC_TRY(check_room(name, len, list_size(k)));
        *used_out = list_size(k);
        return get_list(name, in + 1, k, n, indices_out);
    case MODE_GAPS:
        return get_rice(name, in, len, subset, indices_out, used_out);
    case MODE_BITMAP:
        LAC_TRY(check_room(name, len, bitmap_size(n)));
        *used_out = bitmap_size(n);
        return get_bitmap(name, kernels, in + 1, subset, indices_out);
    default:
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: mode of the indices is %u, expected 0 to 2",
            name, (unsigned)in[0]);
    }
}
