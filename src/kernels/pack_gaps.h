// SPDX-License-Identifier: MIT
// A buffered stream of bits, and Rice codes of gaps for it. pack.h defines
// both.
#ifndef LACONIC_KERNELS_PACK_GAPS_H
#define LACONIC_KERNELS_PACK_GAPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

// `bits` buffers `count` bits, fewer than 64.
typedef struct laci_bit_writer {
    uint8_t *out;
    uint64_t bits;
    unsigned count;
} laci_bit_writer;

// laci_bits_put appends `len` bits, 1 to 63.
static inline void laci_bits_put(
    laci_bit_writer *w, uint64_t bits, unsigned len)
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

// laci_bits_end writes the buffered bits.
static inline void laci_bits_end(const laci_bit_writer *w)
{
    for (unsigned sent = 0; sent < w->count; sent += 8) {
        w->out[sent / 8] = (uint8_t)(w->bits >> sent);
    }
}

// laci_rice_put appends the code of a gap: gap >> b zeros, a one, and the b low
// bits of the gap, b at most 31.
static inline void laci_rice_put(laci_bit_writer *w, uint32_t gap, unsigned b)
{
    uint32_t quotient = gap >> b;
    for (; quotient > 31; quotient -= 32) {
        laci_bits_put(w, 0, 32);
    }
    const uint64_t code = (uint64_t)(gap & ((1u << b) - 1)) << 1 | 1;
    laci_bits_put(w, code << quotient, quotient + 1 + b);
}

// laci_gaps_sum returns the sum of gap >> b, for which 32 bits are enough.
static inline uint32_t laci_gaps_sum(
    unsigned b, const uint32_t *indices, size_t k)
{
    uint32_t sum = indices[0] >> b;
    for (size_t i = 1; i < k; i++) {
        sum += (indices[i] - indices[i - 1] - 1) >> b;
    }
    return sum;
}

#endif
