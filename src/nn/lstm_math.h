// SPDX-License-Identifier: MIT
// Exponentials without branches or calls, so that compilers vectorise loops
// over them. The relative error is at most 2e-7; NaN stays NaN. The polynomials
// are those of Moshier's Cephes library.
#ifndef LACONIC_NN_LSTM_MATH_H
#define LACONIC_NN_LSTM_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

// Arguments are clamped to these, so that exp is neither infinite nor denormal.
#define NN_EXP_MIN (-87.0F)
#define NN_EXP_MAX 88.0F

#define NN_INLINE static inline __attribute__((always_inline))

// exp(x) = 2^n exp(r) with |r| <= log(2) / 2. Adding 1.5 * 2^23 rounds to an
// integer, which is then in the low bits of the sum.
NN_INLINE float nn_exp(float x)
{
    const float above = x < NN_EXP_MIN ? NN_EXP_MIN : x;
    const float y = above > NN_EXP_MAX ? NN_EXP_MAX : above;
    const float shifted = y * 1.44269504F + 0x1.8p23F;
    const float n = shifted - 0x1.8p23F;
    const float r = y - n * 0.693359375F + n * 2.12194440e-4F;
    float p = 1.9875691500e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * (r * r) + r + 1.0F;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof(bits));
    bits = (bits << 23) + ((uint32_t)127 << 23);
    float scale;
    memcpy(&scale, &bits, sizeof(scale));
    return p * scale;
}

NN_INLINE float nn_sigmoid(float x)
{
    return 1.0F / (1.0F + nn_exp(-x));
}

// Near 0 the exponentials cancel, so an odd polynomial is used.
NN_INLINE float nn_tanh(float x)
{
    const float size = fabsf(x);
    const float far = 1.0F - 2.0F / (nn_exp(2.0F * size) + 1.0F);
    const float z = x * x;
    float p = -5.70498872745e-3F;
    p = p * z + 2.06390887954e-2F;
    p = p * z - 5.37397155531e-2F;
    p = p * z + 1.33314422036e-1F;
    p = p * z - 3.33332819422e-1F;
    const float near = p * z * x + x;
    return size < 0.625F ? near : copysignf(far, x);
}

#endif
