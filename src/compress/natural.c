// SPDX-License-Identifier: MIT
// Natural compression (Horváth et al., arXiv:1905.10988): only the sign and the
// exponent of each float are sent. The exponent is rounded up or down at random
// so that the mean is exact. |x| in [2^e, 2^(e+1)) becomes 2^(e+1) with
// probability |x| / 2^e - 1, else 2^e. So E[C(x)] = x, and for u = |x| / 2^e
// E|C(x) - x|^2 = (2 - u)(u - 1) / u^2 * |x|^2, at most |x|^2 / 8 (u = 4/3).
// That is below |x|^2, so one encoding serves every form.
//
// Payload for n values, bits=9:
//
//     n bytes            exponent fields, as in IEEE 754 binary32
//     ceil(n / 8) bytes  signs: bit i % 8 of byte i / 8 is the sign of x[i];
//                        bits past the last value are 0
//
// Payload for n values, bits=8, a window of exponents:
//
//     1 byte             top: the exponent field of the largest level
//     n bytes            bit 7 is the sign; the others are a code: 0 for zero,
//                        else the exponent field is top - 127 + code
//
// The top is the field of the largest magnitude, plus one if that may round
// up. Values below the least of the 127 levels become zero or that level, at
// random and with the exact mean. The level is 2^-125 of the largest value, so
// this adds at most n * 2^-250 * |x|^2 to the error, which is negligible. A
// window that would reach below field 1 ends there; smaller codes are invalid.
//
// Value i is rounded with draw i of the key. Edge cases, all on purpose:
//
//   - Zero stays zero and keeps its sign. A subnormal becomes 0 or 2^-126;
//     its mean is exact, the bound on the error is for normal floats.
//   - From 2^127 on, rounding up would turn a finite value into an infinity, so
//     the result is 2^127: biased but finite.
//   - Infinities stay, and NaN becomes an infinity of its sign, so that
//     divergence stays visible. They have field 255; a window with one of them
//     has the top 255 and thus ends at 2^2.
#include <laconic/compress.h>

#include <string.h>

#include "base/fail.h"
#include "compress/compressor.h"
#include "kernels/natural.h"
#include "kernels/vector.h"

typedef struct natural_state {
    uint32_t window; // the position in the choices of `bits`
} natural_state;

static const lac_param natural_params[] = {
    {
        .name = "bits",
        .type = LAC_PARAM_CHOICE,
        .offset = offsetof(natural_state, window),
        .default_value = "9",
        .choices = "9|8",
        .help = "bits a value; 8 keeps a window of 127 exponents",
    },
    {0},
};

static bool windowed(const void *state)
{
    return ((const natural_state *)state)->window != 0;
}

static size_t natural_bound(const void *state, lac_shape shape)
{
    const size_t n = lac_shape_values(shape);
    return windowed(state) ? 1 + n : n + (n + 7) / 8;
}

static lac_guarantee natural_guarantee(
    const void *state, lac_shape shape, lac_form form)
{
    (void)state;
    (void)shape;
    (void)form;
    return (lac_guarantee){.unbiased = true, .error = 1.0 / 8};
}

// The largest exponent field that rounding may produce.
static uint32_t top_of(uint32_t magnitude)
{
    const uint32_t field = magnitude >> 23;
    if (field >= LACI_NATURAL_TOP || (magnitude & 0x7fffff) == 0) {
        return field;
    }
    return field + 1;
}

static size_t natural_encode(
    const void *state, const lac_call *call, const float *x, uint8_t *out)
{
    const size_t n = lac_shape_values(call->shape);
    const laci_natural_kernels *const natural = call->kernels->natural;
    const laci_stream stream = laci_stream_of(&call->key);
    if (windowed(state)) {
        const uint32_t top = top_of(call->kernels->vector->max_magnitude(x, n));
        out[0] = (uint8_t)top;
        natural->encode_window(&stream, 0, top, x, n, out + 1);
    } else {
        natural->encode(&stream, 0, x, n, out, out + n);
    }
    return natural_bound(state, call->shape);
}

static bool natural_encodes_parts(const void *state)
{
    return !windowed(state);
}

static void natural_encode_part(
    const void *state, const lac_call *call, const float *x, lac_part part,
    uint8_t *out)
{
    (void)state;
    const laci_stream stream = laci_stream_of(&call->key);
    uint8_t *const signs = out + lac_shape_values(call->shape);
    call->kernels->natural->encode(
        &stream, (uint32_t)part.first, x, part.n, out + part.first,
        signs + part.first / 8);
}

static lac_status check_codes(const lac_call *call, const uint8_t *in, size_t n)
{
    const uint32_t top = in[0];
    const uint32_t least = laci_natural_least(top) + LACI_NATURAL_WINDOW - top;
    if (least == 1) {
        return LAC_OK;
    }
    const uint32_t found = call->kernels->natural->least_code(in + 1, n);
    if (found < least) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "natural: a code is %u in a window with top %u, expected 0 or at "
            "least %u",
            (unsigned)found, (unsigned)top, (unsigned)least);
    }
    return LAC_OK;
}

static lac_status natural_check(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    const size_t n = lac_shape_values(call->shape);
    LAC_TRY(
        laci_check_length("natural", len, natural_bound(state, call->shape)));
    if (windowed(state)) {
        return check_codes(call, in, n);
    }
    if (n % 8 != 0 && in[len - 1] >> n % 8 != 0) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "natural: signs past the last value are not zero, expected zero");
    }
    return LAC_OK;
}

static void natural_decode(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float *x)
{
    (void)len;
    const size_t n = lac_shape_values(call->shape);
    if (windowed(state)) {
        call->kernels->natural->decode_window(in[0], in + 1, x, n);
    } else {
        call->kernels->natural->decode(in, in + n, x, n);
    }
}

static void natural_decode_add_part(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    lac_part part, float a, float *y)
{
    (void)len;
    if (windowed(state)) {
        call->kernels->natural->decode_window_add(
            in[0], in + 1 + part.first, a, y, part.n);
    } else {
        const uint8_t *const signs = in + lac_shape_values(call->shape);
        call->kernels->natural->decode_add(
            in + part.first, signs + part.first / 8, a, y, part.n);
    }
}

// An exponent field of 255, which only a window with that top can hold, is an
// infinity.
static bool natural_finite(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)len;
    const size_t n = lac_shape_values(call->shape);
    if (!windowed(state)) {
        return memchr(in, 255, n) == NULL;
    }
    return in[0] < 255 ||
           (memchr(in + 1, LACI_NATURAL_WINDOW, n) == NULL &&
            memchr(in + 1, 0x80 | LACI_NATURAL_WINDOW, n) == NULL);
}

const lac_compressor_ops laci_natural_ops = {
    .plugin.size = sizeof(lac_compressor_ops),
    .plugin.name = "natural",
    .plugin.summary = "sign and randomly rounded exponent, 8 or 9 bits a value",
    .plugin.params = natural_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(natural_state),
    .max_values = UINT32_MAX,
    .traits = LAC_TRAIT_ELEMENTWISE | LAC_TRAIT_FIXED_SIZE,
    .guarantee = natural_guarantee,
    .bound = natural_bound,
    .encode = natural_encode,
    .check = natural_check,
    .decode = natural_decode,
    .decode_add_part = natural_decode_add_part,
    .encode_part = natural_encode_part,
    .encodes_parts = natural_encodes_parts,
    .finite = natural_finite,
    .growth = laci_growth_one,
};
