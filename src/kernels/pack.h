// SPDX-License-Identifier: MIT
// Codes of a few bits in a row without gaps: code i occupies the bits
// [i * bits, (i + 1) * bits) of a stream of bytes whose bit j is bit j % 8,
// counted from the lowest, of byte j / 8. The bits after the last code are 0.
#ifndef LACONIC_KERNELS_PACK_H
#define LACONIC_KERNELS_PACK_H

#include <stddef.h>
#include <stdint.h>

enum { LACI_PACK_WORD_BITS = 17 }; // the widest code of the words below

// Codes to pack must not have bits beyond their width. Eight codes are whole
// bytes, so a long stream can be made of pieces of a multiple of 8 codes.
typedef struct laci_pack_kernels {
    // Codes of 1 to 8 bits.
    void (*pack_bytes)(
        unsigned bits, const uint8_t *codes, size_t n, uint8_t *out);
    void (*unpack_bytes)(
        unsigned bits, const uint8_t *in, size_t n, uint8_t *codes);

    // Codes of 1 to 17 bits.
    void (*pack_words)(
        unsigned bits, const uint32_t *codes, size_t n, uint8_t *out);
    void (*unpack_words)(
        unsigned bits, const uint8_t *in, size_t n, uint32_t *codes);

    // Rice codes, with a parameter b of at most 31, of the gaps before k
    // ascending indices: gap >> b zeros, a one, then the b low bits of the gap.
    // The first gap is the first index, any other is the index minus the one
    // before it minus 1.
    void (*pack_gaps)(
        unsigned b, const uint32_t *indices, size_t k, uint8_t *out);

    // The sum of gap >> b: how many zeros the codes begin with in all.
    uint32_t (*gaps_zeros)(unsigned b, const uint32_t *indices, size_t k);
} laci_pack_kernels;

extern const laci_pack_kernels laci_pack_portable;
extern const laci_pack_kernels laci_pack_avx2;

// laci_packed_size returns the bytes that n codes of up to 32 bits occupy.
static inline size_t laci_packed_size(size_t n, unsigned bits)
{
    return n / 8 * bits + (n % 8 * bits + 7) / 8;
}

#endif
