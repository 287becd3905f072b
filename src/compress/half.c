// SPDX-License-Identifier: MIT
// Half precision: every float rounded to IEEE 754 binary16, to nearest, ties
// to even.
//
// Payload for n values: n halves, little-endian, 2n bytes.
//
// A half has 11 significant bits, so |C(x) - x| <= 2^-11 |x| and the error is
// (2^-11)^2, for values in the normal range of a half: 2^-14 to 65504. Below,
// the error of a value is at most 2^-25, and what is below 2^-25 becomes zero.
// Beyond, a finite value becomes 65504 with its sign, since an infinity would
// look like divergence. Infinities stay; NaN stays a NaN, made quiet, with its
// sign and the upper bits of its payload.
#include <laconic/compress.h>

#include "compress/compressor.h"
#include "kernels/convert.h"

enum { VALUE_SIZE = 2 };

static size_t half_bound(const void *state, lac_shape shape)
{
    (void)state;
    return VALUE_SIZE * lac_shape_values(shape);
}

static lac_guarantee half_guarantee(
    const void *state, lac_shape shape, lac_form form)
{
    (void)state;
    (void)shape;
    (void)form;
    return (lac_guarantee){.unbiased = false, .error = 0x1p-22};
}

static size_t half_encode(
    const void *state, const lac_call *call, const float *x, uint8_t *out)
{
    call->kernels->convert->to_half(x, out, lac_shape_values(call->shape));
    return half_bound(state, call->shape);
}

static lac_status half_check(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)in;
    return laci_check_length("half", len, half_bound(state, call->shape));
}

static void half_decode(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float *x)
{
    (void)state;
    (void)len;
    call->kernels->convert->from_half(in, x, lac_shape_values(call->shape));
}

static void half_decode_add(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float a, float *y)
{
    (void)state;
    (void)len;
    const size_t n = lac_shape_values(call->shape);
    call->kernels->convert->add_half(in, a, y, n);
}

const lac_compressor_ops laci_half_ops = {
    .plugin.size = sizeof(lac_compressor_ops),
    .plugin.name = "half",
    .plugin.summary = "rounded to an IEEE half, 16 bits a value",
    .traits = LAC_TRAIT_DETERMINISTIC,
    .guarantee = half_guarantee,
    .bound = half_bound,
    .encode = half_encode,
    .check = half_check,
    .decode = half_decode,
    .decode_add = half_decode_add,
};
