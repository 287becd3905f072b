// SPDX-License-Identifier: MIT
// Sums of many floats in the order of the portable kernels.
#ifndef LACONIC_KERNELS_LANES_AVX2_H
#define LACONIC_KERNELS_LANES_AVX2_H

#include <immintrin.h>

// laci_sum_lanes adds LACI_SUM_LANES partial sums in pairs, lane i and lane
// i + half, until one is left.
static inline float laci_sum_lanes(const __m256 lanes[4])
{
    const __m256 eight = _mm256_add_ps(
        _mm256_add_ps(lanes[0], lanes[2]), _mm256_add_ps(lanes[1], lanes[3]));
    __m128 four = _mm_add_ps(
        _mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

#endif
