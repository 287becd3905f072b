// SPDX-License-Identifier: MIT
// Sums of many floats in the order of the portable kernels, and bits of masks.
// For arm64.
#ifndef LACONIC_KERNELS_LANES_NEON_H
#define LACONIC_KERNELS_LANES_NEON_H

#include <arm_neon.h>

enum { LACI_SUM_REGISTERS = 8 }; // of four lanes, LACI_SUM_LANES in all

// laci_four_lanes adds lanes 0 and 2, 1 and 3, then both sums.
static inline float laci_four_lanes(float32x4_t four)
{
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

// laci_sum_lanes adds LACI_SUM_LANES partial sums in pairs, lane i and lane
// i + half, until one is left.
static inline float laci_sum_lanes(float32x4_t lanes[LACI_SUM_REGISTERS])
{
    for (int half = LACI_SUM_REGISTERS / 2; half > 0; half /= 2) {
        for (int j = 0; j < half; j++) {
            lanes[j] = vaddq_f32(lanes[j], lanes[j + half]);
        }
    }
    return laci_four_lanes(lanes[0]);
}

// laci_bits_of_masks makes a byte of the masks of eight values, the first in
// the lowest bit.
static inline uint8_t laci_bits_of_masks(uint32x4_t low, uint32x4_t high)
{
    static const uint8_t weights[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    const uint16x8_t masks = vcombine_u16(vmovn_u32(low), vmovn_u32(high));
    return vaddv_u8(vand_u8(vmovn_u16(masks), vld1_u8(weights)));
}

// laci_signs_of returns the sign bits of values [4j, 4j + 4) of eight whose
// signs are the bits of a byte.
static inline uint32x4_t laci_signs_of(uint8_t byte, int j)
{
    static const int32_t shifts[2][4] = {{31, 30, 29, 28}, {27, 26, 25, 24}};
    const uint32x4_t top = vdupq_n_u32(0x80000000u);
    return vandq_u32(vshlq_u32(vdupq_n_u32(byte), vld1q_s32(shifts[j])), top);
}

#endif
