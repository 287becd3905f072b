// SPDX-License-Identifier: MIT
// The sign of every value, and one scale for all: C(x) = |x|_1 / n * sign(x),
// the best approximation of x by signs (Bernstein et al., arXiv:1802.04434;
// with error memory Karimireddy et al., arXiv:1901.09847).
//
// |C(x) - x|^2 = |x|^2 - |x|_1^2 / n <= (1 - 1/n) |x|^2. It is not unbiased and
// cannot be, so all forms are the same: use it with an error memory.
//
// Payload for n values:
//
//     4 bytes            the scale, a float
//     ceil(n / 8) bytes  signs: bit i % 8 of byte i / 8 is set if x[i] < 0;
//                        bits past the last value are 0
//
// Zeros of either sign and NaN count as positive. The scale is the sum of
// magnitudes, in the order of kernels/vector.h, divided in double, then
// rounded. It is NaN when a value is an infinity or NaN, so that divergence
// stays visible. Finite values have a finite scale.
//
// The error memory reads and writes each value once a step: settle only stores
// the delivered scale in the tail of the memory, and the next encode_add
// subtracts scale * sign(e) from e while it adds x. The bits are the same as
// those of subtracting at once. The tail is 0 when nothing is to be subtracted.
#include <laconic/compress.h>

#include <float.h>
#include <math.h>

#include "base/bytes.h"
#include "base/fail.h"
#include "compress/compressor.h"
#include "kernels/sign.h"

enum { SCALE_SIZE = sizeof(float) };

static size_t sign_bound(const void *state, lac_shape shape)
{
    (void)state;
    return SCALE_SIZE + (lac_shape_values(shape) + 7) / 8;
}

static lac_guarantee sign_guarantee(
    const void *state, lac_shape shape, lac_form form)
{
    (void)state;
    (void)form;
    const double n = (double)lac_shape_values(shape);
    return (lac_guarantee){.unbiased = false, .error = 1 - 1 / n};
}

// The fast sum is in float within a block and may overflow there. Then the sum
// is computed again in double, where finite values cannot overflow.
static float sign_scale(double sum, const float *x, size_t n)
{
    if (!isfinite(sum)) {
        sum = 0;
        for (size_t i = 0; i < n; i++) {
            sum += fabs((double)x[i]);
        }
    }
    const double mean = sum / (double)n;
    if (!isfinite(mean)) {
        return NAN;
    }
    return mean > (double)FLT_MAX ? FLT_MAX : (float)mean;
}

static size_t sign_encode(
    const void *state, const lac_call *call, const float *x, uint8_t *out)
{
    const size_t n = lac_shape_values(call->shape);
    const double sum = call->kernels->sign->encode(x, n, out + SCALE_SIZE);
    laci_put_f32(out, sign_scale(sum, x, n));
    return sign_bound(state, call->shape);
}

static lac_status sign_check(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    const size_t n = lac_shape_values(call->shape);
    LAC_TRY(laci_check_length("sign", len, sign_bound(state, call->shape)));
    const float scale = laci_get_f32(in);
    if (signbit(scale) || isinf(scale)) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "sign: the scale is %g, expected a finite number from 0 up, or nan",
            (double)scale);
    }
    if (n % 8 != 0 && in[len - 1] >> n % 8 != 0) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "sign: signs past the last value are not zero, expected zero");
    }
    return LAC_OK;
}

static void sign_decode(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float *x)
{
    (void)state;
    (void)len;
    call->kernels->sign->decode(
        laci_get_f32(in), in + SCALE_SIZE, x, lac_shape_values(call->shape));
}

static void sign_decode_add_part(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    lac_part part, float a, float *y)
{
    (void)state;
    (void)len;
    call->kernels->sign->decode_add(
        laci_get_f32(in), in + SCALE_SIZE + part.first / 8, a, y, part.n);
}

static size_t sign_encode_add(
    const void *state, const lac_call *call, const float *x, void *memory,
    uint8_t *out)
{
    const size_t n = lac_shape_values(call->shape);
    float *const e = memory;
    float *const noted = e + n;
    const double sum =
        call->kernels->sign->encode_add(*noted, x, e, n, out + SCALE_SIZE);
    *noted = 0;
    laci_put_f32(out, sign_scale(sum, e, n));
    return sign_bound(state, call->shape);
}

static void sign_settle(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    void *memory)
{
    const size_t n = lac_shape_values(call->shape);
    float *const e = memory;
    if (e[n] == 0) {
        e[n] = laci_get_f32(in);
        return;
    }
    // Settled before: e is no longer the tensor whose signs were encoded.
    call->kernels->sign->residual(e[n], e, e, n);
    e[n] = 0;
    sign_decode_add_part(state, call, in, len, (lac_part){0, n}, -1.0f, e);
}

static void sign_residual(
    const void *state, const lac_call *call, const void *memory, float *out)
{
    (void)state;
    const size_t n = lac_shape_values(call->shape);
    const float *const e = memory;
    call->kernels->sign->residual(e[n], e, out, n);
}

static bool sign_finite(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)state;
    (void)call;
    (void)len;
    return isfinite(laci_get_f32(in));
}

const lac_compressor_ops laci_sign_ops = {
    .plugin.size = sizeof(lac_compressor_ops),
    .plugin.name = "sign",
    .plugin.summary = "the sign times the mean magnitude, 1 bit a value",
    .traits = LAC_TRAIT_DETERMINISTIC | LAC_TRAIT_FIXED_SIZE,
    .guarantee = sign_guarantee,
    .bound = sign_bound,
    .encode = sign_encode,
    .check = sign_check,
    .decode = sign_decode,
    .decode_add_part = sign_decode_add_part,
    .memory_tail = sizeof(float),
    .encode_add = sign_encode_add,
    .settle = sign_settle,
    .residual = sign_residual,
    .finite = sign_finite,
    .growth = laci_growth_one,
};
