// SPDX-License-Identifier: MIT
// laci_draw of base/draw.h, eight indices at once. For files compiled for AVX2.
#ifndef LACONIC_KERNELS_DRAW_AVX2_H
#define LACONIC_KERNELS_DRAW_AVX2_H

#include <immintrin.h>

#include "base/draw.h"

typedef struct laci_stream8 {
    __m256i word[4];
} laci_stream8;

static inline laci_stream8 laci_stream8_of(const laci_stream *stream)
{
    laci_stream8 all;
    for (int i = 0; i < 4; i++) {
        all.word[i] = _mm256_set1_epi32((int)stream->word[i]);
    }
    return all;
}

// A counter is index * LACI_DRAW_STEP, so that moving on by any number of
// indices is one addition instead of a multiplication.
static inline __m256i laci_counter8(uint32_t index)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_mullo_epi32(
        _mm256_add_epi32(_mm256_set1_epi32((int)index), lanes),
        _mm256_set1_epi32((int)LACI_DRAW_STEP));
}

static inline __m256i laci_counter8_step(uint32_t indices)
{
    return _mm256_set1_epi32((int)(indices * LACI_DRAW_STEP));
}

static inline __m256i laci_draw8(const laci_stream8 *stream, __m256i counter)
{
    const __m256i first = _mm256_set1_epi32((int)LACI_DRAW_FIRST);
    const __m256i second = _mm256_set1_epi32((int)LACI_DRAW_SECOND);
    __m256i z = _mm256_add_epi32(counter, stream->word[0]);
    z = _mm256_xor_si256(z, _mm256_srli_epi32(z, 16));
    z = _mm256_add_epi32(_mm256_mullo_epi32(z, first), stream->word[1]);
    z = _mm256_xor_si256(z, _mm256_srli_epi32(z, 15));
    z = _mm256_add_epi32(_mm256_mullo_epi32(z, second), stream->word[2]);
    z = _mm256_xor_si256(z, _mm256_srli_epi32(z, 15));
    return _mm256_xor_si256(z, stream->word[3]);
}

#endif
