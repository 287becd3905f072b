// SPDX-License-Identifier: MIT
// pack.c with BMI2: pext squeezes the codes out of 64 bits at once and pdep
// spreads them again. Loads and stores of 8 bytes reach beyond the bits that
// count, so the last few codes are left to the portable kernels.
#include "kernels/pack.h"

#include <immintrin.h>
#include <string.h>

static inline uint64_t load(const void *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

static inline void store(void *to, uint64_t value)
{
    memcpy(to, &value, sizeof(value));
}

// How many of n codes can be moved, 8 codes in 8 bytes at a time, before an
// access would reach beyond the bytes of all n.
static size_t movable(size_t n, unsigned bits)
{
    const size_t groups = n / 8;
    const size_t kept = (8 + bits - 1) / bits; // groups that hold 8 bytes
    return groups < kept ? 0 : 8 * (groups - kept + 1);
}

static void pack_bytes(
    unsigned bits, const uint8_t *codes, size_t n, uint8_t *out)
{
    const uint64_t mask = UINT64_C(0x0101010101010101) * ((1u << bits) - 1);
    const size_t stop = movable(n, bits);
    for (size_t i = 0; i < stop; i += 8) {
        store(out + i / 8 * bits, _pext_u64(load(codes + i), mask));
    }
    laci_pack_portable.pack_bytes(
        bits, codes + stop, n - stop, out + stop / 8 * bits);
}

static void unpack_bytes(
    unsigned bits, const uint8_t *in, size_t n, uint8_t *codes)
{
    const uint64_t mask = UINT64_C(0x0101010101010101) * ((1u << bits) - 1);
    const size_t stop = movable(n, bits);
    for (size_t i = 0; i < stop; i += 8) {
        store(codes + i, _pdep_u64(load(in + i / 8 * bits), mask));
    }
    laci_pack_portable.unpack_bytes(
        bits, in + stop / 8 * bits, n - stop, codes + stop);
}

// Where pair k of eight codes begins.
static inline size_t pair_byte(size_t k, unsigned bits)
{
    return 2 * k * bits / 8;
}

static inline unsigned pair_shift(size_t k, unsigned bits)
{
    return (unsigned)(2 * k * bits % 8);
}

// A pair has at most 34 bits, which with the up to 7 bits before it fit in 64.
// The bits that are shared with the pair before are written once more.
static void pack_words(
    unsigned bits, const uint32_t *codes, size_t n, uint8_t *out)
{
    const uint64_t mask = UINT64_C(0x0000000100000001) * ((1u << bits) - 1);
    const size_t stop = n > 64 ? (n - 64) / 8 * 8 : 0;
    for (size_t i = 0; i < stop; i += 8) {
        uint64_t before = 0; // the last pair, in place
        for (size_t k = 0; k < 4; k++) {
            const unsigned shift = pair_shift(k, bits);
            const uint64_t pair = _pext_u64(load(codes + i + 2 * k), mask);
            const uint64_t shared =
                before >>
                8 * (pair_byte(k, bits) - pair_byte(k - (k > 0), bits));
            before = pair << shift | shared;
            store(out + pair_byte(k, bits), before);
        }
        out += bits;
    }
    laci_pack_portable.pack_words(bits, codes + stop, n - stop, out);
}

static void unpack_words(
    unsigned bits, const uint8_t *in, size_t n, uint32_t *codes)
{
    const uint64_t mask = UINT64_C(0x0000000100000001) * ((1u << bits) - 1);
    const size_t stop = n > 64 ? (n - 64) / 8 * 8 : 0;
    for (size_t i = 0; i < stop; i += 8) {
        for (size_t k = 0; k < 4; k++) {
            const uint64_t pair =
                load(in + pair_byte(k, bits)) >> pair_shift(k, bits);
            store(codes + i + 2 * k, _pdep_u64(pair, mask));
        }
        in += bits;
    }
    laci_pack_portable.unpack_words(bits, in, n - stop, codes + stop);
}

const laci_pack_kernels laci_pack_avx2 = {
    .pack_bytes = pack_bytes,
    .unpack_bytes = unpack_bytes,
    .pack_words = pack_words,
    .unpack_words = unpack_words,
};
