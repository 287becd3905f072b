// SPDX-License-Identifier: MIT
// Asking for memory early. The processor fetches ahead by itself, but not past
// the end of a page, and not far enough while a loop is busy computing.
#ifndef LACONIC_KERNELS_AHEAD_AVX2_H
#define LACONIC_KERNELS_AHEAD_AVX2_H

#include <immintrin.h>
#include <stdint.h>

enum { LACI_AHEAD = 4096, LACI_LINE = 64 }; // bytes

// laci_ask_ahead asks for what lies LACI_AHEAD bytes beyond the 32 floats at x.
// That may be past the end of the array, where asking does no harm.
static inline void laci_ask_ahead(const float *x)
{
    const uintptr_t place = (uintptr_t)x + LACI_AHEAD;
    _mm_prefetch((const void *)place, _MM_HINT_T0);
    _mm_prefetch((const void *)(place + LACI_LINE), _MM_HINT_T0);
}

#endif
