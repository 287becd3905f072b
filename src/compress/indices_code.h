// SPDX-License-Identifier: MIT
// What writing and reading indices share: the modes of the code and its sizes.
#ifndef LACONIC_COMPRESS_INDICES_CODE_H
#define LACONIC_COMPRESS_INDICES_CODE_H

#include <stddef.h>
#include <stdint.h>

enum {
    LACI_INDICES_LIST = 0,
    LACI_INDICES_GAPS = 1,
    LACI_INDICES_BITMAP = 2,
    LACI_RICE_MAX = 31, // the largest parameter of the gaps
};

static inline size_t laci_bytes_of(uint64_t bits)
{
    return (size_t)(bits / 8 + (bits % 8 != 0));
}

static inline size_t laci_list_size(size_t k)
{
    return 1 + 4 * k;
}

static inline size_t laci_bitmap_size(size_t n)
{
    return 1 + laci_bytes_of(n);
}

#endif
