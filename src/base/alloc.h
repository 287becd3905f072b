// SPDX-License-Identifier: MIT
#ifndef LACONIC_BASE_ALLOC_H
#define LACONIC_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

// The only functions by which the library allocates memory, so that tests can
// count allocations and make any of them fail.

enum { LACI_ALIGNMENT = 64 };

// laci_zalloc returns `size` zeroed bytes, or NULL.
void *laci_zalloc(size_t size);

// laci_zalloc_aligned returns `size` zeroed bytes at a multiple of
// LACI_ALIGNMENT, or NULL. It does not touch them: pages of a large block are
// the system's zero pages until they are written.
void *laci_zalloc_aligned(size_t size);

// laci_free releases a block of laci_zalloc, laci_free_aligned one of
// laci_zalloc_aligned. NULL is allowed.
void laci_free(void *block);
void laci_free_aligned(void *aligned);

// laci_has_room returns whether `size` bytes of addresses could be reserved
// now. It detects limits on the address space and on data (ulimit -v, -d) and a
// system without overcommit.
bool laci_has_room(size_t size);

// laci_aligned rounds a size up to a multiple of LACI_ALIGNMENT.
static inline size_t laci_aligned(size_t size)
{
    return (size + LACI_ALIGNMENT - 1) / LACI_ALIGNMENT * LACI_ALIGNMENT;
}

// laci_add and laci_mul write the sum or product to `*out` and return whether
// it fits.
static inline bool laci_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool laci_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

#endif
