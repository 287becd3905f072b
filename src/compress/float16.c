// SPDX-License-Identifier: MIT
#include "compress/float16.h"

#include "compress/compressor.h"

enum { VALUE_SIZE = 2 };

static const laci_float16 *format_of(const void *state)
{
    return *(const laci_float16 *const *)state;
}

static const laci_float16_kernels *kernels_of(
    const void *state, const lac_call *call)
{
    return format_of(state)->kernels(call->kernels);
}

size_t laci_float16_bound(const void *state, lac_shape shape)
{
    (void)state;
    return VALUE_SIZE * lac_shape_values(shape);
}

lac_guarantee laci_float16_guarantee(
    const void *state, lac_shape shape, lac_form form)
{
    (void)shape;
    (void)form;
    return (lac_guarantee){.unbiased = false, .error = format_of(state)->error};
}

size_t laci_float16_encode(
    const void *state, const lac_call *call, const float *x, uint8_t *out)
{
    kernels_of(state, call)->encode(x, out, lac_shape_values(call->shape));
    return laci_float16_bound(state, call->shape);
}

void laci_float16_encode_part(
    const void *state, const lac_call *call, const float *x, lac_part part,
    uint8_t *out)
{
    kernels_of(state, call)->encode(x, out + VALUE_SIZE * part.first, part.n);
}

lac_status laci_float16_check(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)in;
    return laci_check_length(
        format_of(state)->name, len, laci_float16_bound(state, call->shape));
}

void laci_float16_decode(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float *x)
{
    (void)len;
    kernels_of(state, call)->decode(in, x, lac_shape_values(call->shape));
}

void laci_float16_decode_add_part(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    lac_part part, float a, float *y)
{
    (void)len;
    kernels_of(state, call)
        ->decode_add(in + VALUE_SIZE * part.first, a, y, part.n);
}

bool laci_float16_finite(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)len;
    return kernels_of(state, call)->finite(in, lac_shape_values(call->shape));
}
