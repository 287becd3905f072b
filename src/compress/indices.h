// SPDX-License-Identifier: MIT
// A code for k distinct indices below n, in ascending order. Sender and
// receiver both know k and n, 1 <= k <= n.
//
// All n indices take no bytes. Otherwise there is a byte for the mode, then
//
//   0  list    k indices of 4 bytes
//   1  gaps    a byte b, at most 31, then for each index a Rice code of the
//              gap before it, which is index - previous - 1, the first being
//              the index itself: gap >> b zeros, a one, then the b low bits of
//              the gap, lowest first
//   2  bitmap  n bits, a one for each index
//
// Bits fill a byte from the lowest up; unused bits of the last byte are zero.
// The encoder uses the shortest mode, the first of equally short ones.
#ifndef LACONIC_COMPRESS_INDICES_H
#define LACONIC_COMPRESS_INDICES_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/status.h>

#include "kernels/kernels.h"

typedef struct laci_subset {
    size_t k;
    size_t n;
} laci_subset;

// laci_indices_bound returns the maximum length of a code of k indices below n.
size_t laci_indices_bound(size_t n, size_t k);

// laci_indices_put writes a code and returns its length. It writes nothing
// beyond. `bitmap` is the bitmap of the indices, as above, or NULL if the
// caller has none.
size_t laci_indices_put(
    const laci_kernels *kernels, const uint32_t *indices, laci_subset subset,
    const uint8_t *bitmap, uint8_t *out);

// laci_indices_get reads the code at the start of in[0..len): writes k indices
// and the number of bytes it used. `name` begins the message of a failure.
// Fails with LAC_ERR_CORRUPT.
lac_status laci_indices_get(
    const char *name, const laci_kernels *kernels, const uint8_t *in,
    size_t len, laci_subset subset, uint32_t *indices_out, size_t *used_out);

#endif
