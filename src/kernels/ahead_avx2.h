// SPDX-License-Identifier: MIT
// Asking for memory early. The processor fetches ahead by itself, but not past
// the end of a page, and not far enough while a loop is busy computing.
#ifndef LACONIC_KERNELS_AHEAD_AVX2_H
#define LACONIC_KERNELS_AHEAD_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

enum { LACI_AHEAD = 4096, LACI_LINE = 64 }; // bytes

// laci_ask_beyond asks for what lies `bytes` beyond the 32 floats at x. That
// may be past the end of the array, where asking does no harm. It goes to the
// second cache: the first is small, and its few waiting lines are better left
// to the loads themselves.
static inline void laci_ask_beyond(const float *x, size_t bytes)
{
    const uintptr_t place = (uintptr_t)x + bytes;
    _mm_prefetch((const void *)place, _MM_HINT_T1);
    _mm_prefetch((const void *)(place + LACI_LINE), _MM_HINT_T1);
}

// laci_ask_soon does the same for the first cache: what is needed next.
static inline void laci_ask_soon(const float *x, size_t bytes)
{
    const uintptr_t place = (uintptr_t)x + bytes;
    _mm_prefetch((const void *)place, _MM_HINT_T0);
    _mm_prefetch((const void *)(place + LACI_LINE), _MM_HINT_T0);
}

// laci_ask_ahead asks as far ahead as suits most loops.
static inline void laci_ask_ahead(const float *x)
{
    laci_ask_beyond(x, LACI_AHEAD);
}

#endif
