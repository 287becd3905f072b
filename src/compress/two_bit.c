// SPDX-License-Identifier: MIT
// Two bits a value: the values are sorted into four bins by their distance from
// the mean, and each becomes the mean of its bin. SparseLoCo (arXiv:2508.15706)
// sends the values that top-k keeps in this way.
//
// With a the mean and d the standard deviation of the n values, of variance
// |v - a|^2 / (n - 1), the bin of v is (v - a) / (1.5 d) + 2, rounded to the
// nearest integer, ties to even, at least 0 and at most 3. All sums are of
// doubles, in the order of the values. If d is 0, every bin is 2.
//
// The sum of all values does not change, and |C(x) - x|^2 = |x|^2 - |C(x)|^2.
// At most 0.75 d from the mean, values are in bin 2. If n >= 3, not all of them
// can be, so one of the other bins has a mean of at least 0.75 d:
// |C(x) - x|^2 <= (1 - 0.5625 / (n - 1)) |x|^2. Two values may become 0. It is
// not unbiased and cannot be, so all forms are the same.
//
// Payload for n values: the means of the bins, four floats, which are all
// finite or all NaN; then two bits a value, packed as in kernels/pack.h. The
// mean of an empty bin is 0. They are NaN if a value is an infinity or NaN, and
// the codes 0.
#include <laconic/compress.h>

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/fail.h"
#include "compress/compressor.h"
#include "kernels/pack.h"

enum {
    BINS = 4,
    MIDDLE = 2, // the bin of the mean
    CODE_BITS = 2,
    HEAD = BINS * sizeof(float),
    BLOCK = 2048, // codes in scratch
};

static size_t two_bit_bound(const void *state, lac_shape shape)
{
    (void)state;
    return HEAD + laci_packed_size(lac_shape_values(shape), CODE_BITS);
}

static size_t two_bit_scratch(const void *state, lac_shape shape)
{
    (void)state;
    (void)shape;
    return BLOCK;
}

static lac_guarantee two_bit_guarantee(
    const void *state, lac_shape shape, lac_form form)
{
    (void)state;
    (void)form;
    const size_t n = lac_shape_values(shape);
    if (n <= 2) {
        return (lac_guarantee){.unbiased = n == 1, .error = n == 1 ? 0 : 1};
    }
    const double kept = 0.5625 / ((double)n - 1);
    return (lac_guarantee){.unbiased = false, .error = 1 - kept};
}

// How values are sorted into bins.
typedef struct bins {
    double mean;
    double width; // 0 if all values are equal
} bins;

// Returns false if a value is not finite.
static bool make_bins(const float *x, size_t n, bins *out)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i];
    }
    const double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    }
    const double variance = n > 1 ? squares / ((double)n - 1) : 0;
    *out = (bins){mean, 1.5 * sqrt(variance)};
    return isfinite(squares);
}

static uint8_t bin_of(const bins *b, float x)
{
    if (!(b->width > 0)) {
        return MIDDLE;
    }
    const double place = nearbyint(((double)x - b->mean) / b->width + MIDDLE);
    return (uint8_t)fmin(fmax(place, 0), BINS - 1);
}

static void put_means(
    const double sums[BINS], const size_t counts[BINS], uint8_t *out)
{
    for (size_t j = 0; j < BINS; j++) {
        const double mean = counts[j] == 0 ? 0 : sums[j] / (double)counts[j];
        laci_put_f32(out + j * sizeof(float), (float)mean);
    }
}

static size_t two_bit_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t two_bit_encode(
    const void *state, const lac_call *call, const float *x, uint8_t *out)
{
    const size_t n = lac_shape_values(call->shape);
    const size_t len = two_bit_bound(state, call->shape);
    uint8_t *const codes = call->scratch;
    double sums[BINS] = {0};
    size_t counts[BINS] = {0};
    bins b;
    if (!make_bins(x, n, &b)) {
        memset(out + HEAD, 0, len - HEAD);
        for (size_t j = 0; j < BINS; j++) {
            laci_put_f32(out + j * sizeof(float), NAN);
        }
        return len;
    }
    for (size_t start = 0; start < n; start += BLOCK) {
        const size_t some = two_bit_least(n - start, BLOCK);
        for (size_t i = 0; i < some; i++) {
            const float value = x[start + i];
            const uint8_t bin = bin_of(&b, value);
            codes[i] = bin;
            sums[bin] += (double)value;
            counts[bin]++;
        }
        call->kernels->pack->pack_bytes(
            CODE_BITS, codes, some,
            out + HEAD + laci_packed_size(start, CODE_BITS));
    }
    put_means(sums, counts, out);
    return len;
}

static lac_status two_bit_check(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    const size_t n = lac_shape_values(call->shape);
    LAC_TRY(
        laci_check_length("two-bit", len, two_bit_bound(state, call->shape)));
    const bool nan = isnan(laci_get_f32(in));
    for (size_t j = 0; j < BINS; j++) {
        const float mean = laci_get_f32(in + j * sizeof(float));
        if (nan ? !isnan(mean) : !isfinite(mean)) {
            return lac_fail(
                LAC_ERR_CORRUPT,
                "two-bit: the mean of bin %zu is %g, expected "
                "%s",
                j, (double)mean,
                nan ? "nan, as that of bin 0" : "a finite number");
        }
    }
    if (n % 4 != 0 && in[len - 1] >> n % 4 * CODE_BITS != 0) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "two-bit: codes past the last value are not zero, expected zero");
    }
    return LAC_OK;
}

// Writes the values to `x`, or adds `*a` times them.
static void two_bit_decode_to(
    const lac_call *call, const uint8_t *in, const float *a, float *x)
{
    const size_t n = lac_shape_values(call->shape);
    uint8_t *const codes = call->scratch;
    float means[BINS];
    laci_get_floats(in, means, BINS);
    for (size_t start = 0; start < n; start += BLOCK) {
        const size_t some = two_bit_least(n - start, BLOCK);
        call->kernels->pack->unpack_bytes(
            CODE_BITS, in + HEAD + laci_packed_size(start, CODE_BITS), some,
            codes);
        for (size_t i = 0; i < some; i++) {
            const float value = means[codes[i]];
            x[start + i] = a == NULL ? value : x[start + i] + *a * value;
        }
    }
}

static void two_bit_decode(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float *x)
{
    (void)state;
    (void)len;
    two_bit_decode_to(call, in, NULL, x);
}

static void two_bit_decode_add(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float a, float *y)
{
    (void)state;
    (void)len;
    two_bit_decode_to(call, in, &a, y);
}

static bool two_bit_finite(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)state;
    (void)call;
    (void)len;
    return isfinite(laci_get_f32(in));
}

// A value and the mean of its bin are both between the smallest and the largest
// value.
static double two_bit_growth(const void *state, lac_shape shape, lac_form form)
{
    (void)state;
    (void)shape;
    (void)form;
    return 2;
}

const lac_compressor_ops laci_two_bit_ops = {
    .plugin.size = sizeof(lac_compressor_ops),
    .plugin.name = "two-bit",
    .plugin.summary = "the mean of one of four bins, 2 bits a value",
    .traits = LAC_TRAIT_DETERMINISTIC | LAC_TRAIT_FIXED_SIZE,
    .guarantee = two_bit_guarantee,
    .bound = two_bit_bound,
    .scratch = two_bit_scratch,
    .encode = two_bit_encode,
    .check = two_bit_check,
    .decode = two_bit_decode,
    .decode_add = two_bit_decode_add,
    .finite = two_bit_finite,
    .growth = two_bit_growth,
};
