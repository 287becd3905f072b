// SPDX-License-Identifier: MIT
// Prefetching for loops over arrays of floats. The processor prefetches by
// itself, but not past the end of a page, and not far enough while a loop is
// busy computing.
#ifndef LACONIC_KERNELS_PREFETCH_AVX2_H
#define LACONIC_KERNELS_PREFETCH_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

enum { LACI_PREFETCH_BYTES = 4096, LACI_LINE_BYTES = 64 };

// laci_prefetch_l2 prefetches 32 floats that are `bytes` beyond x into the
// second cache: the first is small, and its few outstanding requests are better
// left to the loads themselves. The address may be past the end of the array,
// where a prefetch does no harm.
static inline void laci_prefetch_l2(const float *x, size_t bytes)
{
    const uintptr_t place = (uintptr_t)x + bytes;
    _mm_prefetch((const void *)place, _MM_HINT_T1);
    _mm_prefetch((const void *)(place + LACI_LINE_BYTES), _MM_HINT_T1);
}

// laci_prefetch_l1 does the same for the first cache.
static inline void laci_prefetch_l1(const float *x, size_t bytes)
{
    const uintptr_t place = (uintptr_t)x + bytes;
    _mm_prefetch((const void *)place, _MM_HINT_T0);
    _mm_prefetch((const void *)(place + LACI_LINE_BYTES), _MM_HINT_T0);
}

// laci_prefetch prefetches at the distance that suits most loops.
static inline void laci_prefetch(const float *x)
{
    laci_prefetch_l2(x, LACI_PREFETCH_BYTES);
}

#endif
