// SPDX-License-Identifier: MIT
// bfloat16: the upper 16 bits of every float, rounded to nearest, ties to even.
//
// A bfloat16 has 8 significant bits, so |C(x) - x| <= 2^-8 |x| and the error is
// (2^-8)^2, for all normal floats. Below 2^-126 the error of a value is at most
// 2^-134. A finite value stays finite: beyond the largest bfloat16, 2^128 -
// 2^120, it becomes that, which is still within 2^-8. Infinities stay. NaN
// stays NaN: it becomes quiet and keeps its sign and the upper bits of its
// payload.
#include <laconic/compress.h>

#include "compress/compressor.h"
#include "compress/float16.h"

static const laci_float16_kernels *bfloat16_kernels(const laci_kernels *kernels)
{
    return &kernels->convert->bfloat16;
}

static lac_status bfloat16_configure(void *state)
{
    static const laci_float16 format = {"bfloat16", 0x1p-16, bfloat16_kernels};
    *(const laci_float16 **)state = &format;
    return LAC_OK;
}

const lac_compressor_ops laci_bfloat16_ops = {
    LACI_FLOAT16_OPS,
    .plugin.name = "bfloat16",
    .plugin.summary = "the upper half of each float, rounded, 16 bits a value",
    .configure = bfloat16_configure,
};
