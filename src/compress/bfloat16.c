// SPDX-License-Identifier: MIT
// bfloat16: the upper 16 bits of every float, rounded to nearest, ties to even.
//
// Payload for n values: n upper halves, little-endian, 2n bytes.
//
// A bfloat16 has 8 significant bits, so |C(x) - x| <= 2^-8 |x| and the error is
// (2^-8)^2, for all normal floats. Below 2^-126 the error of a value is at most
// 2^-134. A finite value stays finite: beyond the largest bfloat16, 2^128 -
// 2^120, it becomes that, which is still within 2^-8. Infinities stay; NaN
// stays a NaN, made quiet, with its sign and the upper bits of its payload.
#include <laconic/compress.h>

#include "compress/compressor.h"
#include "kernels/convert.h"

enum { VALUE_SIZE = 2 };

static size_t bfloat16_bound(const void *state, lac_shape shape)
{
    (void)state;
    return VALUE_SIZE * lac_shape_values(shape);
}

static lac_guarantee bfloat16_guarantee(
    const void *state, lac_shape shape, lac_form form)
{
    (void)state;
    (void)shape;
    (void)form;
    return (lac_guarantee){.unbiased = false, .error = 0x1p-16};
}

static size_t bfloat16_encode(
    const void *state, const lac_call *call, const float *x, uint8_t *out)
{
    call->kernels->convert->to_bfloat16(x, out, lac_shape_values(call->shape));
    return bfloat16_bound(state, call->shape);
}

static lac_status bfloat16_check(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)in;
    return laci_check_length(
        "bfloat16", len, bfloat16_bound(state, call->shape));
}

static void bfloat16_decode(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float *x)
{
    (void)state;
    (void)len;
    call->kernels->convert->from_bfloat16(in, x, lac_shape_values(call->shape));
}

static void bfloat16_decode_add(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float a, float *y)
{
    (void)state;
    (void)len;
    const size_t n = lac_shape_values(call->shape);
    call->kernels->convert->add_bfloat16(in, a, y, n);
}

const lac_compressor_ops laci_bfloat16_ops = {
    .plugin.size = sizeof(lac_compressor_ops),
    .plugin.name = "bfloat16",
    .plugin.summary = "the upper half of each float, rounded, 16 bits a value",
    .traits = LAC_TRAIT_DETERMINISTIC,
    .guarantee = bfloat16_guarantee,
    .bound = bfloat16_bound,
    .encode = bfloat16_encode,
    .check = bfloat16_check,
    .decode = bfloat16_decode,
    .decode_add = bfloat16_decode_add,
};
