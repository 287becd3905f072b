// SPDX-License-Identifier: MIT
// Rotated quantisation: blocks of values are rotated at random, so that the
// values of any block look normal, and each is sent as the number of the
// nearest of 2^bits centres, with one scale a block (DRIVE, Vargaftik et al.,
// arXiv:2105.08339; EDEN, Vargaftik et al., arXiv:2108.08842).
//
// With y the rotated block and c the centres of its codes, the unbiased scale
// is |y|^2 / <c, y>, and the contractive one is <c, y> / |c|^2, the best for
// these codes. The plain form is the unbiased one. kernels/rotate.h defines the
// rotation and the codes.
//
// The law is that of quantising normal deviates, whatever the values of the
// block: a mean over rotations, from which single blocks of 1024 values differ
// by 3 to 16 %. It would hold exactly for rotations that are
// uniformly random. For ours it was measured, for blocks of 64 to 1024 that
// were normal, sparse, equal, or had one large value: the errors were between
// 0.90 and 1.002 times the law. The mean of the unbiased form, with 1 bit, was
// off by at most 0.2 % of the length at blocks of 64; at 1024, 2 * 10^5
// rotations showed no bias. The guarantee adds 1 % to the law.
//
// The tensor is cut into blocks of `block` values; the rest into smaller powers
// of two, descending; fewer than 64 values are left unchanged, because the law
// does not hold for such small blocks.
//
// Payload for n values:
//
//     a float for each block   its scale, at least +0 and finite, or NaN
//     bits * (n - n % 64) / 8  codes, packed as in kernels/pack.h
//     4 * (n % 64)             the last values as floats
//
// A block of zeros has the scale 0. One with an infinity or a NaN has the scale
// NaN. Both have codes 0.
#include <laconic/compress.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "compress/compressor.h"
#include "kernels/pack.h"
#include "kernels/rotate.h"
#include "kernels/vector.h"

enum { SCALE_SIZE = sizeof(float) };

typedef struct rotated_state {
    uint32_t bits;
    uint32_t block;
} rotated_state;

static const lac_param params[] = {
    {
        .name = "bits",
        .type = LAC_PARAM_U32,
        .offset = offsetof(rotated_state, bits),
        .default_value = "4",
        .min = 1,
        .max = LACI_ROTATE_BITS,
        .help = "bits of a value",
    },
    {
        .name = "block",
        .type = LAC_PARAM_U32,
        .offset = offsetof(rotated_state, block),
        .default_value = "1024",
        .min = LACI_ROTATE_MIN,
        .max = LACI_ROTATE_MAX,
        .help = "values that are rotated together, a power of two",
    },
    {.name = NULL},
};

static lac_status rotated_configure(void *state)
{
    const rotated_state *const s = state;
    if ((s->block & (s->block - 1)) != 0) {
        return lac_fail(
            LAC_ERR_INVALID, "rotated: block is %u, expected a power of two",
            (unsigned)s->block);
    }
    return LAC_OK;
}

// The block that begins at value `start`, a multiple of 64; 0 if less than the
// smallest block is left.
static size_t rotated_block_at(const rotated_state *s, size_t n, size_t start)
{
    size_t block = s->block;
    while (block > n - start) {
        block /= 2;
    }
    return block < LACI_ROTATE_MIN ? 0 : block;
}

static size_t rotated_block_count(const rotated_state *s, size_t n)
{
    size_t count = n / s->block;
    for (size_t rest = n % s->block / LACI_ROTATE_MIN; rest > 0; rest /= 2) {
        count += rest % 2;
    }
    return count;
}

// The parts of a payload.
typedef struct sections {
    size_t n;
    size_t coded; // values that are rotated
    size_t codes; // where they begin
    size_t rest;  // where the last values begin
    size_t len;
} sections;

static sections sections_of(const rotated_state *s, lac_shape shape)
{
    sections p = {.n = lac_shape_values(shape)};
    p.coded = p.n - p.n % LACI_ROTATE_MIN;
    p.codes = rotated_block_count(s, p.n) * SCALE_SIZE;
    p.rest = p.codes + laci_packed_size(p.coded, s->bits);
    p.len = p.rest + (p.n - p.coded) * sizeof(float);
    return p;
}

static size_t rotated_bound(const void *state, lac_shape shape)
{
    return sections_of(state, shape).len;
}

static bool rotated_needs_seed(const void *state, lac_shape shape)
{
    (void)state;
    return lac_shape_values(shape) >= LACI_ROTATE_MIN;
}

static size_t rotated_group(const void *state)
{
    const rotated_state *const s = state;
    return s->block;
}

// The error of the best quantiser of normal deviates with so many bits.
static double rotated_law(const rotated_state *s)
{
    static const double law[] = {0.36338, 0.11748, 0.03455, 0.009501};
    return law[s->bits - 1];
}

// With d the error of the contractive form, 1 - d of |y|^2 is along c, and the
// unbiased form has |y|^2 there: omega is d / (1 - d).
static lac_guarantee rotated_guarantee(
    const void *state, lac_shape shape, lac_form form)
{
    const double margin = 1.01;
    const double error = rotated_law(state);
    if (!rotated_needs_seed(state, shape)) {
        return (lac_guarantee){.unbiased = true, .error = 0};
    }
    if (form == LAC_FORM_CONTRACTIVE) {
        return (lac_guarantee){.unbiased = false, .error = margin * error};
    }
    return (lac_guarantee){
        .unbiased = true, .error = margin * error / (1 - error)};
}

// Working memory for one block.
typedef struct workspace {
    float *lifted;  // values whose rotation might overflow or vanish
    float *rotated; // values
    uint8_t *codes;
} workspace;

static size_t rotated_scratch(const void *state, lac_shape shape)
{
    const rotated_state *const s = state;
    (void)shape;
    return 2 * laci_aligned(s->block * sizeof(float)) + laci_aligned(s->block);
}

static workspace workspace_of(const rotated_state *s, void *scratch)
{
    const size_t size = laci_aligned(s->block * sizeof(float));
    unsigned char *const bytes = scratch;
    return (workspace){
        .lifted = (void *)bytes,
        .rotated = (void *)(bytes + size),
        .codes = bytes + 2 * size,
    };
}

static laci_rotation rotation_of(
    const lac_call *call, size_t start, size_t block)
{
    return (laci_rotation){
        .stream = laci_stream_of(&call->key),
        .first = (uint32_t)(start / 4),
        .n = block,
    };
}

// What a rotation multiplies lengths by: a stage by the square root of 2, each
// of the four unequal ones by 5/4.
static double rotation_gain(size_t n)
{
    return (double)n / 4 * (5 * 5 * 5 * 5) / (4 * 4 * 4 * 4);
}

// The scale of a block, in double: <c, y> is products / 2^22 * norm / sqrt(n),
// |c|^2 is squares / 2^24.
static double scale_of_sums(
    laci_rotate_sums sums, double norm, size_t n, lac_form form)
{
    const double root = sqrt((double)n);
    const double units = (double)LACI_CENTRE_UNIT * LACI_ROTATED_UNIT;
    const double products = (double)sums.products / units;
    const double squares =
        (double)sums.squares / ((double)LACI_CENTRE_UNIT * LACI_CENTRE_UNIT);
    return form == LAC_FORM_CONTRACTIVE ? norm / root * products / squares
                                        : norm * root / products;
}

// Multiplies the values by a power of two that makes all sums of their rotation
// ordinary floats, if they are huge or tiny. Returns the power.
static float lift_block(
    const laci_vector_kernels *vector, const float **x_inout, size_t n,
    float *lifted, float *norm_inout)
{
    const float norm = *norm_inout;
    if (norm >= 0x1p-60f && norm <= 0x1p100f) {
        return 1;
    }
    const float lift = norm < 1 ? 0x1p100f : 0x1p-60f;
    for (size_t i = 0; i < n; i++) {
        lifted[i] = (*x_inout)[i] * lift;
    }
    *x_inout = lifted;
    *norm_inout = laci_norm(vector, lifted, n);
    return lift;
}

// Writes the codes of a block to scratch and returns its scale.
static float encode_block(
    const rotated_state *s, const lac_call *call, const laci_rotation *r,
    const float *x, const workspace *w)
{
    const laci_kernels *const kernels = call->kernels;
    float norm = laci_norm(kernels->vector, x, r->n);
    if (!(norm > 0)) {
        memset(w->codes, 0, r->n);
        return norm;
    }
    const float lift = lift_block(kernels->vector, &x, r->n, w->lifted, &norm);
    kernels->rotate->rotate(r, x, w->rotated);
    const double size = (double)norm * rotation_gain(r->n) / sqrt((double)r->n);
    const laci_rotate_sums sums = kernels->rotate->quantise(
        s->bits, (float)(LACI_ROTATED_UNIT / size), w->rotated, r->n, w->codes);
    const double scale =
        scale_of_sums(sums, (double)norm, r->n, call->form) / (double)lift;
    return scale > (double)FLT_MAX ? FLT_MAX : (float)scale;
}

static size_t rotated_encode(
    const void *state, const lac_call *call, const float *x, uint8_t *out)
{
    const rotated_state *const s = state;
    const sections p = sections_of(s, call->shape);
    const workspace w = workspace_of(s, call->scratch);
    uint8_t *scale = out;
    uint8_t *codes = out + p.codes;
    for (size_t i = 0; i < p.coded;) {
        const size_t block = rotated_block_at(s, p.n, i);
        const laci_rotation r = rotation_of(call, i, block);
        laci_put_f32(scale, encode_block(s, call, &r, x + i, &w));
        call->kernels->pack->pack_bytes(s->bits, w.codes, block, codes);
        scale += SCALE_SIZE;
        codes += laci_packed_size(block, s->bits);
        i += block;
    }
    laci_put_floats(out + p.rest, x + p.coded, p.n - p.coded);
    return p.len;
}

static lac_status rotated_check(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    const sections p = sections_of(state, call->shape);
    LAC_TRY(laci_check_length("rotated", len, p.len));
    for (size_t i = 0; i < p.codes; i += SCALE_SIZE) {
        const float scale = laci_get_f32(in + i);
        if (signbit(scale) || isinf(scale)) {
            return lac_fail(
                LAC_ERR_CORRUPT,
                "rotated: the scale of block %zu is %g, expected a finite "
                "number from 0 up, or nan",
                i / SCALE_SIZE, (double)scale);
        }
    }
    return LAC_OK;
}

static float rotated_step(float scale, size_t n)
{
    return (float)((double)scale / rotation_gain(n));
}

// Writes the values to `x`, or adds `*a` times them.
static void rotated_decode_to(
    const rotated_state *s, const lac_call *call, const uint8_t *in,
    const float *a, float *x)
{
    const sections p = sections_of(s, call->shape);
    const workspace w = workspace_of(s, call->scratch);
    const laci_rotate_kernels *const kernels = call->kernels->rotate;
    const uint8_t *codes = in + p.codes;
    for (size_t i = 0, b = 0; i < p.coded; b++) {
        const size_t block = rotated_block_at(s, p.n, i);
        const laci_rotation r = rotation_of(call, i, block);
        const float scale = laci_get_f32(in + b * SCALE_SIZE);
        const float step = rotated_step(scale, block);
        call->kernels->pack->unpack_bytes(s->bits, codes, block, w.codes);
        if (a == NULL) {
            kernels->decode(&r, s->bits, w.codes, step, w.rotated, x + i);
        } else {
            kernels->decode_add(
                &r, s->bits, w.codes, step, w.rotated, *a, x + i);
        }
        codes += laci_packed_size(block, s->bits);
        i += block;
    }
    const size_t rest = p.n - p.coded;
    if (a == NULL) {
        laci_get_floats(in + p.rest, x + p.coded, rest);
    } else {
        call->kernels->vector->add_payload(*a, in + p.rest, x + p.coded, rest);
    }
}

static void rotated_decode(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float *x)
{
    (void)len;
    rotated_decode_to(state, call, in, NULL, x);
}

static void rotated_decode_add(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float a, float *y)
{
    (void)len;
    rotated_decode_to(state, call, in, &a, y);
}

// The length of the centres of a block is at most this, and a value of the
// block, or of a sum in its rotation, at most the scale times it.
static double longest(const rotated_state *s, size_t block)
{
    const int16_t *const centres = laci_centres(s->bits);
    const double last = centres[(1u << (s->bits - 1)) - 1];
    return last / LACI_CENTRE_UNIT * sqrt((double)block);
}

// Decodes a block whose scale is so large that values may overflow.
static bool block_finite(
    const rotated_state *s, const lac_call *call, const laci_rotation *r,
    float scale, const uint8_t *codes)
{
    const workspace w = workspace_of(s, call->scratch);
    call->kernels->pack->unpack_bytes(s->bits, codes, r->n, w.codes);
    call->kernels->rotate->decode(
        r, s->bits, w.codes, rotated_step(scale, r->n), w.rotated, w.lifted);
    return laci_all_finite(call->kernels, w.lifted, r->n);
}

static bool rotated_finite(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)len;
    const rotated_state *const s = state;
    const sections p = sections_of(s, call->shape);
    const double most = (double)FLT_MAX / (2 * longest(s, s->block));
    for (size_t i = 0, b = 0; i < p.coded; b++) {
        const size_t block = rotated_block_at(s, p.n, i);
        const laci_rotation r = rotation_of(call, i, block);
        const float scale = laci_get_f32(in + b * SCALE_SIZE);
        const uint8_t *const codes =
            in + p.codes + laci_packed_size(i, s->bits);
        if (!((double)scale < most) &&
            !block_finite(s, call, &r, scale, codes)) {
            return false;
        }
        i += block;
    }
    return call->kernels->vector->max_payload(in + p.rest, p.n - p.coded) <
           LACI_INFINITY_BITS;
}

// A bound of |C(x)| / |x| for a block. The contractive form is a projection.
// Otherwise it is |c| |y| / <c, y>, where every value of c is at least the
// first centre, so <c, y> at least that times |y|.
static double block_gain(const rotated_state *s, lac_form form)
{
    const double first = laci_centres(s->bits)[0] / (double)LACI_CENTRE_UNIT;
    return form == LAC_FORM_CONTRACTIVE ? 1 : longest(s, s->block) / first;
}

static double rotated_growth(const void *state, lac_shape shape, lac_form form)
{
    (void)shape;
    const rotated_state *const s = state;
    return 1 + block_gain(s, form) * sqrt((double)s->block);
}

static float rotated_largest(const void *state, lac_shape shape)
{
    (void)shape;
    const rotated_state *const s = state;
    const double gain =
        block_gain(s, LAC_FORM_UNBIASED) * sqrt((double)s->block);
    return (float)((double)FLT_MAX / (2 * gain));
}

const lac_compressor_ops laci_rotated_ops = {
    .plugin.size = sizeof(lac_compressor_ops),
    .plugin.name = "rotated",
    .plugin.summary = "randomly rotated blocks, 1 to 4 bits a value (EDEN)",
    .plugin.params = params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(rotated_state),
    .max_values = UINT32_MAX,
    .traits = LAC_TRAIT_FIXED_SIZE,
    .configure = rotated_configure,
    .guarantee = rotated_guarantee,
    .bound = rotated_bound,
    .scratch = rotated_scratch,
    .encode = rotated_encode,
    .check = rotated_check,
    .decode = rotated_decode,
    .decode_add = rotated_decode_add,
    .finite = rotated_finite,
    .growth = rotated_growth,
    .largest = rotated_largest,
    .group = rotated_group,
    .needs_seed = rotated_needs_seed,
};
