// SPDX-License-Identifier: MIT
// pack.c with BMI2: pext squeezes the codes out of 64 bits at once and pdep
// spreads them again. Codes of 4 bits are packed with AVX2, 32 at once. Loads
// and stores of 8 bytes reach beyond the bits that count, so the last few codes
// are left to the portable kernels.
#include "kernels/pack.h"

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/pack_gaps.h"

enum { LANES = 8, SHORT = 15, BITS_KEPT = 64 };

static inline uint64_t pack_load(const void *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

static inline void pack_store(void *to, uint64_t value)
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

// Packs 32 codes of 4 bits at a time. Returns how many it packed.
static size_t pack_halves(const uint8_t *codes, size_t n, uint8_t *out)
{
    const __m256i factors = _mm256_set1_epi16(0x1001); // 1 and 16
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m256i pairs = _mm256_maddubs_epi16(
            _mm256_loadu_si256((const void *)(codes + i)), factors);
        const __m128i bytes = _mm_packus_epi16(
            _mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
        _mm_storeu_si128((void *)(out + i / 2), bytes);
    }
    return i;
}

// The reverse: a byte in 16 bits, and again 4 bits higher, is two codes.
static size_t unpack_halves(const uint8_t *in, size_t n, uint8_t *codes)
{
    const __m256i mask = _mm256_set1_epi8(15);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m256i bytes =
            _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)(in + i / 2)));
        const __m256i both =
            _mm256_or_si256(bytes, _mm256_slli_epi16(bytes, 4));
        _mm256_storeu_si256((void *)(codes + i), _mm256_and_si256(both, mask));
    }
    return i;
}

static void avx2_pack_bytes(
    unsigned bits, const uint8_t *codes, size_t n, uint8_t *out)
{
    if (bits == 4) {
        const size_t done = pack_halves(codes, n, out);
        laci_pack_portable.pack_bytes(
            bits, codes + done, n - done, out + done / 2);
        return;
    }
    const uint64_t mask = UINT64_C(0x0101010101010101) * ((1u << bits) - 1);
    const size_t stop = movable(n, bits);
    for (size_t i = 0; i < stop; i += 8) {
        pack_store(out + i / 8 * bits, _pext_u64(pack_load(codes + i), mask));
    }
    laci_pack_portable.pack_bytes(
        bits, codes + stop, n - stop, out + stop / 8 * bits);
}

static void avx2_unpack_bytes(
    unsigned bits, const uint8_t *in, size_t n, uint8_t *codes)
{
    if (bits == 4) {
        const size_t done = unpack_halves(in, n, codes);
        laci_pack_portable.unpack_bytes(
            bits, in + done / 2, n - done, codes + done);
        return;
    }
    const uint64_t mask = UINT64_C(0x0101010101010101) * ((1u << bits) - 1);
    const size_t stop = movable(n, bits);
    for (size_t i = 0; i < stop; i += 8) {
        pack_store(codes + i, _pdep_u64(pack_load(in + i / 8 * bits), mask));
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
static void avx2_pack_words(
    unsigned bits, const uint32_t *codes, size_t n, uint8_t *out)
{
    const uint64_t mask = UINT64_C(0x0000000100000001) * ((1u << bits) - 1);
    const size_t stop = n > 64 ? (n - 64) / 8 * 8 : 0;
    for (size_t i = 0; i < stop; i += 8) {
        uint64_t before = 0; // the last pair, in place
        for (size_t k = 0; k < 4; k++) {
            const unsigned shift = pair_shift(k, bits);
            const uint64_t pair = _pext_u64(pack_load(codes + i + 2 * k), mask);
            const uint64_t shared =
                before >>
                8 * (pair_byte(k, bits) - pair_byte(k - (k > 0), bits));
            before = pair << shift | shared;
            pack_store(out + pair_byte(k, bits), before);
        }
        out += bits;
    }
    laci_pack_portable.pack_words(bits, codes + stop, n - stop, out);
}

static void avx2_unpack_words(
    unsigned bits, const uint8_t *in, size_t n, uint32_t *codes)
{
    const uint64_t mask = UINT64_C(0x0000000100000001) * ((1u << bits) - 1);
    const size_t stop = n > 64 ? (n - 64) / 8 * 8 : 0;
    for (size_t i = 0; i < stop; i += 8) {
        for (size_t k = 0; k < 4; k++) {
            const uint64_t pair =
                pack_load(in + pair_byte(k, bits)) >> pair_shift(k, bits);
            pack_store(codes + i + 2 * k, _pdep_u64(pair, mask));
        }
        in += bits;
    }
    laci_pack_portable.unpack_words(bits, in, n - stop, codes + stop);
}

// Codes that are joined: two of up to 60 bits, and their lengths.
typedef struct joined {
    uint64_t bits[2];
    unsigned lens[2];
} joined;

// Puts each code behind the one before it: those of odd lanes in front of even
// ones, then pairs in front of pairs. Returns whether all are short enough.
static inline bool join(__m256i gaps, unsigned b, joined *out)
{
    const __m256i low = _mm256_set1_epi64x(0xffffffff);
    const __m256i most = _mm256_set1_epi32(SHORT);
    const __m256i rest =
        _mm256_and_si256(gaps, _mm256_set1_epi32((int)((1u << b) - 1)));
    const __m256i zeros = _mm256_srl_epi32(gaps, _mm_cvtsi32_si128((int)b));
    const __m256i lens = _mm256_add_epi32(zeros, _mm256_set1_epi32((int)b + 1));
    const __m256i fits = _mm256_cmpeq_epi32(_mm256_max_epu32(lens, most), most);
    if (_mm256_movemask_epi8(fits) != -1) {
        return false;
    }
    const __m256i codes = _mm256_sllv_epi32(
        _mm256_or_si256(_mm256_slli_epi32(rest, 1), _mm256_set1_epi32(1)),
        zeros);
    const __m256i len = _mm256_and_si256(lens, low);
    const __m256i pairs = _mm256_or_si256(
        _mm256_and_si256(codes, low),
        _mm256_sllv_epi64(_mm256_srli_epi64(codes, 32), len));
    const __m256i pair_lens =
        _mm256_add_epi64(len, _mm256_srli_epi64(lens, 32));
    const __m256i fours = _mm256_or_si256(
        pairs,
        _mm256_sllv_epi64(_mm256_unpackhi_epi64(pairs, pairs), pair_lens));
    const __m256i four_lens = _mm256_add_epi64(
        pair_lens, _mm256_unpackhi_epi64(pair_lens, pair_lens));
    out->bits[0] = (uint64_t)_mm256_extract_epi64(fours, 0);
    out->bits[1] = (uint64_t)_mm256_extract_epi64(fours, 2);
    out->lens[0] = (unsigned)_mm256_extract_epi32(four_lens, 0);
    out->lens[1] = (unsigned)_mm256_extract_epi32(four_lens, 4);
    return true;
}

// laci_bits_put without a branch, which could not be predicted. It always
// writes the 8 bytes of the buffer.
static inline void pack_put(laci_bit_writer *w, uint64_t bits, unsigned len)
{
    const uint64_t word = w->bits | bits << w->count;
    const uint64_t carry = bits >> 1 >> (63 - w->count);
    const unsigned count = w->count + len;
    pack_store(w->out, word);
    w->out += count / 64 * 8;
    w->bits = count >= 64 ? carry : word;
    w->count = count % 64;
}

// The last 64 codes take at least 8 bytes, so that writing 8 bytes is safe.
static void avx2_pack_gaps(
    unsigned b, const uint32_t *indices, size_t k, uint8_t *out)
{
    laci_bit_writer w = {out, 0, 0};
    size_t i = 1;
    laci_rice_put(&w, indices[0], b);
    for (; i + LANES + BITS_KEPT <= k; i += LANES) {
        const __m256i gaps = _mm256_sub_epi32(
            _mm256_sub_epi32(
                _mm256_loadu_si256((const void *)(indices + i)),
                _mm256_loadu_si256((const void *)(indices + i - 1))),
            _mm256_set1_epi32(1));
        joined four;
        if (join(gaps, b, &four)) {
            pack_put(&w, four.bits[0], four.lens[0]);
            pack_put(&w, four.bits[1], four.lens[1]);
            continue;
        }
        for (size_t j = i; j < i + LANES; j++) {
            laci_rice_put(&w, indices[j] - indices[j - 1] - 1, b);
        }
    }
    for (; i < k; i++) {
        laci_rice_put(&w, indices[i] - indices[i - 1] - 1, b);
    }
    laci_bits_end(&w);
}

// The compiler vectorises the sum.
static uint32_t avx2_gaps_zeros(unsigned b, const uint32_t *indices, size_t k)
{
    return laci_gaps_sum(b, indices, k);
}

const laci_pack_kernels laci_pack_avx2 = {
    .pack_bytes = avx2_pack_bytes,
    .unpack_bytes = avx2_unpack_bytes,
    .pack_words = avx2_pack_words,
    .unpack_words = avx2_unpack_words,
    .pack_gaps = avx2_pack_gaps,
    .gaps_zeros = avx2_gaps_zeros,
};
