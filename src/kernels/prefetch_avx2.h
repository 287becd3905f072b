// SPDX-License-Identifier: MIT
// Prefetching for loops over arrays of floats. Some processors prefetch by
// themselves, but not past the end of a page, and not far enough while a loop
// is busy computing. Others do it well, and are slower with instructions that
// prefetch. Files that include this header are therefore compiled twice: as
// they are, and with LACI_PREFETCH 0, where these functions do nothing. The
// names of their tables then end in _plain. kernels.c chooses between them.
//
// An address may be past the end of the array, where a prefetch does no harm.
#ifndef LACONIC_KERNELS_PREFETCH_AVX2_H
#define LACONIC_KERNELS_PREFETCH_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#ifndef LACI_PREFETCH
#define LACI_PREFETCH 1
#endif

enum { LACI_PREFETCH_BYTES = 4096, LACI_LINE_BYTES = 64 };

// laci_prefetch_line prefetches the line that is `bytes` beyond x into the
// first cache.
static inline void laci_prefetch_line(const float *x, size_t bytes)
{
    if (LACI_PREFETCH) {
        _mm_prefetch((const void *)((uintptr_t)x + bytes), _MM_HINT_T0);
    }
}

// laci_prefetch_l1 does so for 32 floats.
static inline void laci_prefetch_l1(const float *x, size_t bytes)
{
    laci_prefetch_line(x, bytes);
    laci_prefetch_line(x, bytes + LACI_LINE_BYTES);
}

// laci_prefetch_l2 prefetches 32 floats into the second cache: the first is
// small, and its few outstanding requests are better left to the loads
// themselves.
static inline void laci_prefetch_l2(const float *x, size_t bytes)
{
    if (LACI_PREFETCH) {
        const uintptr_t place = (uintptr_t)x + bytes;
        _mm_prefetch((const void *)place, _MM_HINT_T1);
        _mm_prefetch((const void *)(place + LACI_LINE_BYTES), _MM_HINT_T1);
    }
}

// laci_prefetch prefetches at the distance that suits most loops.
static inline void laci_prefetch(const float *x)
{
    laci_prefetch_l2(x, LACI_PREFETCH_BYTES);
}

// laci_prefetch_far prefetches the line that is `values` beyond x into the
// second cache, in both versions of a file: for loops that read several rows at
// a time and prefetch the next ones, which no processor does by itself. It is
// always inlined, because GCC 12 removes calls of a function that has no other
// effect.
static inline __attribute__((always_inline)) void laci_prefetch_far(
    const float *x, size_t values)
{
    const uintptr_t place = (uintptr_t)x + values * sizeof(*x);
    _mm_prefetch((const void *)place, _MM_HINT_T1);
}

#endif
