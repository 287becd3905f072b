// SPDX-License-Identifier: MIT
// The identity: every float unchanged. The baseline of all others.
//
// Payload for n values: n floats, 4n bytes. NaN and infinities pass unchanged.
#include <laconic/compress.h>

#include "base/bytes.h"
#include "compress/compressor.h"
#include "kernels/vector.h"

static size_t identity_bound(const void *state, lac_shape shape)
{
    (void)state;
    return lac_shape_values(shape) * sizeof(float);
}

static lac_guarantee identity_guarantee(
    const void *state, lac_shape shape, lac_form form)
{
    (void)state;
    (void)shape;
    (void)form;
    return (lac_guarantee){.unbiased = true, .error = 0};
}

static size_t identity_encode(
    const void *state, const lac_call *call, const float *x, uint8_t *out)
{
    laci_put_floats(out, x, lac_shape_values(call->shape));
    return identity_bound(state, call->shape);
}

static void identity_encode_part(
    const void *state, const lac_call *call, const float *x, lac_part part,
    uint8_t *out)
{
    (void)state;
    (void)call;
    laci_put_floats(out + part.first * sizeof(*x), x, part.n);
}

static lac_status identity_check(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)in;
    return laci_check_length(
        "identity", len, identity_bound(state, call->shape));
}

static void identity_decode(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float *x)
{
    (void)state;
    (void)len;
    laci_get_floats(in, x, lac_shape_values(call->shape));
}

static void identity_decode_add_part(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    lac_part part, float a, float *y)
{
    (void)state;
    (void)len;
    call->kernels->vector->add_payload(
        a, in + part.first * sizeof(*y), y, part.n);
}

static bool identity_finite(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)state;
    (void)len;
    const size_t n = lac_shape_values(call->shape);
    return call->kernels->vector->max_payload(in, n) < LACI_INFINITY_BITS;
}

const lac_compressor_ops laci_identity_ops = {
    .plugin.size = sizeof(lac_compressor_ops),
    .plugin.name = "identity",
    .plugin.summary = "every value as it is, 32 bits each: the baseline",
    .traits = LAC_TRAIT_LINEAR | LAC_TRAIT_DETERMINISTIC |
              LAC_TRAIT_ELEMENTWISE | LAC_TRAIT_FIXED_SIZE,
    .guarantee = identity_guarantee,
    .bound = identity_bound,
    .encode = identity_encode,
    .check = identity_check,
    .decode = identity_decode,
    .decode_add_part = identity_decode_add_part,
    .encode_part = identity_encode_part,
    .finite = identity_finite,
    .growth = laci_growth_one,
};
