// SPDX-License-Identifier: MIT
// The ops of the dithering compressors. Codes of 8 bits are written to the
// payload directly. Others are written to blocks that stay in the cache, then
// packed. Blocks begin at multiples of their length in the tensor, whatever the
// buckets, so they begin at a byte of the payload.
#include "compress/dither.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/fail.h"
#include "compress/compressor.h"
#include "kernels/pack.h"
#include "kernels/vector.h"

enum { BLOCK = LAC_PART, LIFTED = 256 };

// The buckets of a tensor.
typedef struct layout {
    size_t n;
    size_t bucket; // values of each bucket but the last
    size_t buckets;
} layout;

// The codes of one block, in scratch: on the stack, encoding takes half as long
// again.
typedef union block {
    uint8_t bytes[BLOCK];
    uint32_t words[BLOCK];
} block;

static size_t dither_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static layout layout_of(const laci_dither_state *s, lac_shape shape)
{
    const size_t n = lac_shape_values(shape);
    const size_t bucket = s->bucket == 0 ? n : dither_least(s->bucket, n);
    return (layout){n, bucket, (n - 1) / bucket + 1};
}

unsigned laci_dither_bits(uint32_t levels)
{
    unsigned bits = 1;
    for (; levels > 0; levels /= 2) {
        bits++;
    }
    return bits;
}

static double omega_of(const laci_dither_state *s, lac_shape shape)
{
    return s->omega(s, layout_of(s, shape).bucket);
}

lac_guarantee laci_dither_guarantee(
    const void *state, lac_shape shape, lac_form form)
{
    const double omega = omega_of(state, shape);
    if (form == LAC_FORM_CONTRACTIVE) {
        return (lac_guarantee){.unbiased = false, .error = omega / (1 + omega)};
    }
    return (lac_guarantee){.unbiased = true, .error = omega};
}

size_t laci_dither_group(const void *state)
{
    const laci_dither_state *const s = state;
    return s->bucket;
}

size_t laci_dither_bound(const void *state, lac_shape shape)
{
    const laci_dither_state *const s = state;
    const layout l = layout_of(s, shape);
    return l.buckets * sizeof(float) + laci_packed_size(l.n, s->bits);
}

size_t laci_dither_scratch(const void *state, lac_shape shape)
{
    (void)state;
    (void)shape;
    return sizeof(block);
}

// NaN when a value is not finite.
static float norm_of(
    const laci_dither_state *s, const laci_vector_kernels *vector,
    const float *x, size_t n)
{
    if (s->norm == LACI_NORM_2) {
        return laci_norm(vector, x, n);
    }
    const float norm = laci_float_of(vector->max_magnitude(x, n));
    return isfinite(norm) ? norm : NAN;
}

// Encodes values whose norm is so small that levels / norm overflows. It
// multiplies them by a power of two, which changes no code.
static void encode_tiny(
    const laci_dither_codes *kernels, const laci_dither *d, const float *x,
    size_t n, uint32_t first, void *codes, size_t code_size)
{
    const float lift = 1 / LACI_DITHER_NORM_MIN;
    laci_dither lifted = *d;
    lifted.norm *= lift;
    for (size_t start = 0; start < n; start += LIFTED) {
        float values[LIFTED];
        const size_t some = dither_least(n - start, LIFTED);
        for (size_t i = 0; i < some; i++) {
            values[i] = x[start + i] * lift;
        }
        kernels->encode(
            &lifted, values, some, first + (uint32_t)start,
            (uint8_t *)codes + start * code_size);
    }
}

// Writes the codes of values of one bucket, the first of which is value
// `first` of the tensor.
static void make_codes(
    const laci_dither_state *s, const laci_dither_codes *kernels,
    const laci_dither *d, const float *x, size_t n, size_t first, void *codes)
{
    const size_t code_size = s->words ? sizeof(uint32_t) : sizeof(uint8_t);
    if (d->norm >= LACI_DITHER_NORM_MIN) {
        kernels->encode(d, x, n, (uint32_t)first, codes);
    } else if (d->norm > 0) {
        encode_tiny(kernels, d, x, n, (uint32_t)first, codes, code_size);
    } else {
        memset(codes, 0, n * code_size);
    }
}

static void *code_at(const laci_dither_state *s, block *codes, size_t i)
{
    return s->words ? (void *)(codes->words + i) : codes->bytes + i;
}

static void dither_pack(
    const laci_dither_state *s, const laci_pack_kernels *kernels,
    const block *codes, size_t n, uint8_t *out)
{
    if (s->words) {
        kernels->pack_words(s->bits, codes->words, n, out);
    } else {
        kernels->pack_bytes(s->bits, codes->bytes, n, out);
    }
}

static void dither_unpack(
    const laci_dither_state *s, const laci_pack_kernels *kernels,
    const uint8_t *in, size_t n, block *codes)
{
    if (s->words) {
        kernels->unpack_words(s->bits, in, n, codes->words);
    } else {
        kernels->unpack_bytes(s->bits, in, n, codes->bytes);
    }
}

// Writes a norm. One near the largest float is made a little smaller: in the
// decoder, levels times norm / levels must not round to infinity.
static void put_norm(uint8_t *out, float norm, double factor)
{
    const float largest = FLT_MAX * (1 - 0x1p-22f);
    const float stored = (float)((double)norm * factor);
    laci_put_f32(out, stored > largest ? largest : stored);
}

// Encodes the buckets that begin in [first, stop), with room for a block of
// codes. x is the value `first`.
static void dither_encode(
    const laci_dither_state *s, const lac_call *call, const float *x,
    size_t first, size_t stop, block *codes, uint8_t *out)
{
    const layout l = layout_of(s, call->shape);
    const laci_dither_codes *const kernels = s->codes(call->kernels);
    const double factor = call->form == LAC_FORM_CONTRACTIVE
                              ? 1 / (1 + omega_of(s, call->shape))
                              : 1;
    uint8_t *const packed = out + l.buckets * sizeof(float);
    laci_dither d = {
        laci_stream_of(&call->key), .levels = s->levels, .bits = s->bits};
    for (size_t i = first; i < stop;) {
        const size_t end = i + dither_least(l.bucket, l.n - i);
        d.norm = norm_of(s, call->kernels->vector, x + (i - first), end - i);
        put_norm(out + i / l.bucket * sizeof(float), d.norm, factor);
        if (s->bits == 8) {
            make_codes(s, kernels, &d, x + (i - first), end - i, i, packed + i);
            i = end;
            continue;
        }
        while (i < end) {
            const size_t at = i % BLOCK;
            const size_t some = dither_least(end - i, BLOCK - at);
            make_codes(
                s, kernels, &d, x + (i - first), some, i,
                code_at(s, codes, at));
            i += some;
            if (i % BLOCK == 0 || i == l.n) {
                dither_pack(
                    s, call->kernels->pack, codes, at + some,
                    packed + laci_packed_size(i - at - some, s->bits));
            }
        }
    }
}

size_t laci_dither_encode(
    const void *state, const lac_call *call, const float *x, uint8_t *out)
{
    dither_encode(
        state, call, x, 0, lac_shape_values(call->shape), call->scratch, out);
    return laci_dither_bound(state, call->shape);
}

// Parts then consist of whole buckets.
bool laci_dither_encodes_parts(const void *state)
{
    const laci_dither_state *const s = state;
    return s->bucket > 0 && LAC_PART % s->bucket == 0;
}

void laci_dither_encode_part(
    const void *state, const lac_call *call, const float *x, lac_part part,
    uint8_t *out)
{
    block codes;
    dither_encode(state, call, x, part.first, part.first + part.n, &codes, out);
}

static lac_status check_norms(
    const laci_dither_state *s, const uint8_t *in, size_t buckets)
{
    for (size_t b = 0; b < buckets; b++) {
        const float norm = laci_get_f32(in + b * sizeof(float));
        if (norm < 0 || isinf(norm)) {
            return lac_fail(
                LAC_ERR_CORRUPT,
                "%s: norm %zu is %g, expected a finite one of at least 0, or "
                "NaN",
                s->name, b, (double)norm);
        }
    }
    return LAC_OK;
}

static lac_status check_padding(
    const laci_dither_state *s, const uint8_t *packed, size_t n)
{
    const size_t used = n % 8 * s->bits % 8; // bits of the last byte
    const unsigned last = packed[laci_packed_size(n, s->bits) - 1];
    const unsigned padding = used == 0 ? 0 : last >> used;
    if (padding != 0) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: the bits after the last value are 0x%x, expected 0", s->name,
            padding);
    }
    return LAC_OK;
}

// The largest level among codes.
static uint32_t highest(
    const laci_dither_state *s, const block *codes, size_t n)
{
    const uint32_t mask = (UINT32_C(1) << (s->bits - 1)) - 1;
    uint32_t most = 0;
    if (s->words) {
        for (size_t i = 0; i < n; i++) {
            const uint32_t level = codes->words[i] & mask;
            most = level > most ? level : most;
        }
        return most;
    }
    uint8_t most_byte = 0;
    for (size_t i = 0; i < n; i++) {
        const uint8_t level = (uint8_t)(codes->bytes[i] & mask);
        most_byte = level > most_byte ? level : most_byte;
    }
    return most_byte;
}

static lac_status check_levels(
    const laci_dither_state *s, const lac_call *call, const uint8_t *packed,
    size_t n)
{
    if ((s->levels & (s->levels + 1)) == 0) {
        return LAC_OK; // every code has a level
    }
    block *const codes = call->scratch;
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t some = dither_least(n - i, BLOCK);
        dither_unpack(
            s, call->kernels->pack, packed + laci_packed_size(i, s->bits), some,
            codes);
        const uint32_t level = highest(s, codes, some);
        if (level > s->levels) {
            return lac_fail(
                LAC_ERR_CORRUPT,
                "%s: one of the values %zu to %zu has level %u, expected at "
                "most %u",
                s->name, i, i + some - 1, (unsigned)level, (unsigned)s->levels);
        }
    }
    return LAC_OK;
}

lac_status laci_dither_check(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    const laci_dither_state *const s = state;
    const layout l = layout_of(s, call->shape);
    const uint8_t *const packed = in + l.buckets * sizeof(float);
    LAC_TRY(laci_check_length(s->name, len, laci_dither_bound(s, call->shape)));
    LAC_TRY(check_norms(s, in, l.buckets));
    LAC_TRY(check_padding(s, packed, l.n));
    return check_levels(s, call, packed, l.n);
}

// Writes the values from `first` to `stop` to `x`, or adds `*a` times them.
static void dither_decode(
    const laci_dither_state *s, const lac_call *call, const uint8_t *in,
    size_t first, size_t stop, const float *a, float *x)
{
    const layout l = layout_of(s, call->shape);
    const laci_dither_codes *const kernels = s->codes(call->kernels);
    const uint8_t *const packed = in + l.buckets * sizeof(float);
    laci_dither d = {.levels = s->levels, .bits = s->bits};
    block room, *const codes = &room;
    for (size_t i = first, some; i < stop; i += some) {
        const size_t at = i % BLOCK;
        const size_t b = i / l.bucket;
        const void *from = packed + i;
        some = dither_least(l.bucket - i % l.bucket, stop - i);
        if (s->bits != 8) {
            if (at == 0) {
                dither_unpack(
                    s, call->kernels->pack,
                    packed + laci_packed_size(i, s->bits),
                    dither_least(stop - i, BLOCK), codes);
            }
            some = dither_least(some, BLOCK - at);
            from = code_at(s, codes, at);
        }
        d.norm = laci_get_f32(in + b * sizeof(float));
        if (a == NULL) {
            kernels->decode(&d, from, some, x + (i - first));
        } else {
            kernels->decode_add(&d, from, some, *a, x + (i - first));
        }
    }
}

void laci_dither_decode(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float *x)
{
    (void)len;
    const size_t n = lac_shape_values(call->shape);
    dither_decode(state, call, in, 0, n, NULL, x);
}

void laci_dither_decode_add_part(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    lac_part part, float a, float *y)
{
    (void)len;
    dither_decode(state, call, in, part.first, part.first + part.n, &a, y);
}

// Whether the highest level of a norm is finite. Only norms at the very end of
// the floats, which no encoder writes, have levels that are not.
static bool highest_finite(const laci_dither_state *s, float norm)
{
    const float levels = (float)s->levels;
    return isfinite(s->uniform ? levels * (norm / levels) : norm);
}

// Looks at every code. Only for norms as above.
static bool values_finite(
    const laci_dither_state *s, const lac_call *call, const uint8_t *in)
{
    const layout l = layout_of(s, call->shape);
    const uint8_t *const packed = in + l.buckets * sizeof(float);
    const uint32_t mask = (UINT32_C(1) << (s->bits - 1)) - 1;
    block *const codes = call->scratch;
    for (size_t i = 0; i < l.n; i++) {
        const size_t at = i % BLOCK;
        if (at == 0) {
            dither_unpack(
                s, call->kernels->pack, packed + laci_packed_size(i, s->bits),
                dither_least(l.n - i, BLOCK), codes);
        }
        const float norm = laci_get_f32(in + i / l.bucket * sizeof(float));
        const uint32_t code = s->words ? codes->words[at] : codes->bytes[at];
        const float step = norm / (float)s->levels;
        if (!isfinite((float)(code & mask) * step)) {
            return false;
        }
    }
    return true;
}

bool laci_dither_finite(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)len;
    const laci_dither_state *const s = state;
    const layout l = layout_of(s, call->shape);
    bool finite = true;
    for (size_t b = 0; b < l.buckets; b++) {
        const float norm = laci_get_f32(in + b * sizeof(float));
        if (isnan(norm)) {
            return false;
        }
        finite &= highest_finite(s, norm);
    }
    return finite || values_finite(s, call, in);
}

// A value that is rounded down errs by less than its magnitude. One that is
// rounded up errs by at most the step between two levels: the lowest level,
// or, between higher natural levels, less than the value.
double laci_dither_growth(const void *state, lac_shape shape, lac_form form)
{
    (void)form;
    const laci_dither_state *const s = state;
    const double d = (double)layout_of(s, shape).bucket;
    return fmax(1, s->lowest * (s->norm == LACI_NORM_2 ? sqrt(d) : 1));
}
