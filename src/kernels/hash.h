// SPDX-License-Identifier: MIT
// The hash of messages.
#ifndef LACONIC_KERNELS_HASH_H
#define LACONIC_KERNELS_HASH_H

#include <stddef.h>
#include <stdint.h>

// laci_hash returns XXH3 (64 bits) of the bytes, computed with the best
// instructions of this processor.
uint64_t laci_hash(const void *bytes, size_t len);

uint64_t laci_hash_avx2(const void *bytes, size_t len);

#endif
