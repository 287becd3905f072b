// SPDX-License-Identifier: MIT
// Half precision: every float rounded to IEEE 754 binary16, to nearest, ties
// to even.
//
// A half has 11 significant bits, so |C(x) - x| <= 2^-11 |x| and the error is
// (2^-11)^2, for values in the normal range of a half: 2^-14 to 65504. Below,
// the error of a value is at most 2^-25, and a value below 2^-25 becomes zero.
// Beyond, a finite value becomes 65504 with its sign, since an infinity would
// look like divergence. Infinities stay. NaN stays NaN: it becomes quiet and
// keeps its sign and the upper bits of its payload.
#include <laconic/compress.h>

#include "compress/compressor.h"
#include "compress/float16.h"

static const laci_float16_kernels *half_kernels(const laci_kernels *kernels)
{
    return &kernels->convert->half;
}

static lac_status half_configure(void *state)
{
    static const laci_float16 format = {"half", 0x1p-22, half_kernels};
    *(const laci_float16 **)state = &format;
    return LAC_OK;
}

const lac_compressor_ops laci_half_ops = {
    LACI_FLOAT16_OPS,
    .plugin.name = "half",
    .plugin.summary = "rounded to an IEEE half, 16 bits a value",
    .configure = half_configure,
};
