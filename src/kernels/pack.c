// SPDX-License-Identifier: MIT
#include "kernels/pack.h"

#include "base/bytes.h"
#include "kernels/pack_gaps.h"

// The bits of a stream that are not yet written, or not yet used.
typedef struct pool {
    uint64_t bits;
    unsigned count;
} pool;

static inline uint8_t *pool_put(
    pool *p, uint32_t code, unsigned bits, uint8_t *out)
{
    p->bits |= (uint64_t)code << p->count;
    p->count += bits;
    if (p->count >= 32) {
        laci_put_u32(out, (uint32_t)p->bits);
        out += 4;
        p->bits >>= 32;
        p->count -= 32;
    }
    return out;
}

static void pool_flush(const pool *p, uint8_t *out)
{
    for (unsigned at = 0; at < p->count; at += 8) {
        *out++ = (uint8_t)(p->bits >> at);
    }
}

// Reads a code from the stream, which has `*left` more bytes.
static inline uint32_t pool_get(
    pool *p, unsigned bits, const uint8_t **in, size_t *left)
{
    if (p->count < bits && *left >= 4) {
        p->bits |= (uint64_t)laci_get_u32(*in) << p->count;
        p->count += 32;
        *in += 4;
        *left -= 4;
    }
    while (p->count < bits) {
        p->bits |= (uint64_t) * (*in)++ << p->count;
        p->count += 8;
        --*left;
    }
    const uint32_t code = (uint32_t)p->bits & ((UINT32_C(1) << bits) - 1);
    p->bits >>= bits;
    p->count -= bits;
    return code;
}

static void pack_bytes(
    unsigned bits, const uint8_t *codes, size_t n, uint8_t *out)
{
    pool p = {0};
    for (size_t i = 0; i < n; i++) {
        out = pool_put(&p, codes[i], bits, out);
    }
    pool_flush(&p, out);
}

static void pack_words(
    unsigned bits, const uint32_t *codes, size_t n, uint8_t *out)
{
    pool p = {0};
    for (size_t i = 0; i < n; i++) {
        out = pool_put(&p, codes[i], bits, out);
    }
    pool_flush(&p, out);
}

static void unpack_bytes(
    unsigned bits, const uint8_t *in, size_t n, uint8_t *codes)
{
    pool p = {0};
    size_t left = laci_packed_size(n, bits);
    for (size_t i = 0; i < n; i++) {
        codes[i] = (uint8_t)pool_get(&p, bits, &in, &left);
    }
}

static void unpack_words(
    unsigned bits, const uint8_t *in, size_t n, uint32_t *codes)
{
    pool p = {0};
    size_t left = laci_packed_size(n, bits);
    for (size_t i = 0; i < n; i++) {
        codes[i] = pool_get(&p, bits, &in, &left);
    }
}

static void pack_gaps(
    unsigned b, const uint32_t *indices, size_t k, uint8_t *out)
{
    laci_bit_writer w = {out, 0, 0};
    uint32_t expected = 0;
    for (size_t i = 0; i < k; i++) {
        laci_rice_put(&w, indices[i] - expected, b);
        expected = indices[i] + 1;
    }
    laci_bits_end(&w);
}

static uint32_t gaps_zeros(unsigned b, const uint32_t *indices, size_t k)
{
    return laci_gaps_sum(b, indices, k);
}

const laci_pack_kernels laci_pack_portable = {
    .pack_bytes = pack_bytes,
    .unpack_bytes = unpack_bytes,
    .pack_words = pack_words,
    .unpack_words = unpack_words,
    .pack_gaps = pack_gaps,
    .gaps_zeros = gaps_zeros,
};
