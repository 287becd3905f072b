// SPDX-License-Identifier: MIT
// Unbiased low rank, a control: a matrix M as (M U) U^T with a random U of r
// columns and E[U U^T] = I, with which PowerSGD (Vogels, Karimireddy, Jaggi,
// arXiv:1905.13727) compares itself. The values of U are normal deviates of
// variance 1/r. Unlike low-rank it does not look for directions that matter,
// and its error is larger than that of random-k with as many values.
//
// A row x of M has E|x U U^T - x|^2 = |x|^2 (cols + k - 2) / r, where k is the
// fourth moment of a deviate of variance 1: 3 for normal ones, 2.9 for those of
// lac_key_normal. Hence omega = (cols + 1) / r. The contractive form has its
// factor 1 / (1 + omega) in the payload.
//
// Payload: the r columns of M U / sqrt(r), all floats. U sqrt(r) is drawn from
// the key, so payloads under a key that all workers share may be added: then
// all of them have the same U, and a mean over workers has the error of one. A
// tensor of one row or column, or of at most r columns, is sent unchanged. An
// infinity or NaN makes its row infinite or NaN.
#include <laconic/compress.h>

#include <float.h>

#include "base/bytes.h"
#include "compress/compressor.h"
#include "compress/factors.h"
#include "kernels/gossip.h"

enum { DEVIATE_MAX = 6 }; // the largest magnitude of lac_key_normal

typedef struct unbiased_rank_state {
    uint32_t rank;
} unbiased_rank_state;

static const lac_param params[] = {
    {
        .name = "rank",
        .type = LAC_PARAM_U32,
        .offset = offsetof(unbiased_rank_state, rank),
        .default_value = "1",
        .min = 1,
        .max = LACI_RANK_MAX,
        .help = "columns of the random matrix",
    },
    {.name = NULL},
};

// The factors of a tensor without their memory.
static laci_factors unbiased_rank_view(const void *state, lac_shape shape)
{
    const unbiased_rank_state *const s = state;
    const bool whole =
        shape.rows <= 1 || shape.cols <= 1 || s->rank >= shape.cols;
    return (laci_factors){
        .shape = shape,
        .n = lac_shape_values(shape),
        .rank = whole ? 0 : s->rank,
    };
}

static size_t sent_floats(const laci_factors *f)
{
    return f->rank == 0 ? f->n : f->rank * f->shape.rows;
}

static size_t unbiased_rank_bound(const void *state, lac_shape shape)
{
    const laci_factors f = unbiased_rank_view(state, shape);
    return sent_floats(&f) * sizeof(float);
}

static size_t unbiased_rank_scratch(const void *state, lac_shape shape)
{
    const laci_factors f = unbiased_rank_view(state, shape);
    return f.rank * (shape.rows + shape.cols) * sizeof(float);
}

static double unbiased_rank_omega(const laci_factors *f)
{
    return f->rank == 0 ? 0 : ((double)f->shape.cols + 1) / (double)f->rank;
}

static lac_guarantee unbiased_rank_guarantee(
    const void *state, lac_shape shape, lac_form form)
{
    const laci_factors f = unbiased_rank_view(state, shape);
    const double omega = unbiased_rank_omega(&f);
    const bool scaled = form == LAC_FORM_CONTRACTIVE && omega > 0;
    return (lac_guarantee){
        .unbiased = !scaled,
        .error = scaled ? omega / (1 + omega) : omega,
    };
}

// The factors in the scratch of a call, with U sqrt(r) as Q.
static laci_factors drawn_factors(const void *state, const lac_call *call)
{
    laci_factors f = unbiased_rank_view(state, call->shape);
    laci_factors_place(&f, call->scratch);
    laci_factors_draw(&f, &call->key);
    return f;
}

static size_t unbiased_rank_encode(
    const void *state, const lac_call *call, const float *x, uint8_t *out)
{
    const laci_factors f = drawn_factors(state, call);
    const size_t floats = sent_floats(&f);
    if (f.rank == 0) {
        laci_put_floats(out, x, floats);
        return floats * sizeof(float);
    }
    const bool scaled = call->form == LAC_FORM_CONTRACTIVE;
    const double scale = scaled ? 1 / (1 + unbiased_rank_omega(&f)) : 1;
    laci_factors_multiply(&f, x, call->kernels);
    call->kernels->gossip->scale(
        (float)(scale / (double)f.rank), f.p, f.p, floats);
    laci_factors_put(f.p, floats, out);
    return floats * sizeof(float);
}

static lac_status unbiased_rank_check(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)in;
    return laci_check_length(
        "unbiased-rank", len, unbiased_rank_bound(state, call->shape));
}

static laci_factors read_factors(
    const void *state, const lac_call *call, const uint8_t *in)
{
    const laci_factors f = drawn_factors(state, call);
    if (f.rank > 0) {
        laci_get_floats(in, f.p, sent_floats(&f));
    }
    return f;
}

static void unbiased_rank_decode(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float *x)
{
    (void)len;
    const laci_factors f = read_factors(state, call, in);
    laci_factors_decode(&f, in, x);
}

static void unbiased_rank_decode_add(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float a, float *y)
{
    (void)len;
    const laci_factors f = read_factors(state, call, in);
    laci_factors_decode_add(&f, in, a, y, call->kernels);
}

static bool unbiased_rank_finite(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)len;
    const laci_factors f = read_factors(state, call, in);
    return laci_factors_finite(&f, in, call->kernels);
}

// A value of C(M) is a sum of r cols terms, each a value of M times two
// deviates, divided by r.
static double unbiased_rank_gain(lac_shape shape)
{
    return (double)DEVIATE_MAX * DEVIATE_MAX * (double)shape.cols;
}

static double unbiased_rank_growth(
    const void *state, lac_shape shape, lac_form form)
{
    (void)form;
    const laci_factors f = unbiased_rank_view(state, shape);
    return f.rank == 0 ? 1 : 1 + unbiased_rank_gain(shape);
}

static float unbiased_rank_largest(const void *state, lac_shape shape)
{
    const laci_factors f = unbiased_rank_view(state, shape);
    return f.rank == 0 ? FLT_MAX
                       : FLT_MAX / (float)(2 * unbiased_rank_gain(shape));
}

const lac_compressor_ops laci_unbiased_rank_ops = {
    .plugin.size = sizeof(lac_compressor_ops),
    .plugin.name = "unbiased-rank",
    .plugin.summary = "a matrix times a random one: control for low-rank",
    .plugin.params = params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(unbiased_rank_state),
    .max_values = UINT32_MAX,
    .traits = LAC_TRAIT_LINEAR | LAC_TRAIT_FIXED_SIZE,
    .needs_key = true,
    .guarantee = unbiased_rank_guarantee,
    .bound = unbiased_rank_bound,
    .scratch = unbiased_rank_scratch,
    .encode = unbiased_rank_encode,
    .check = unbiased_rank_check,
    .decode = unbiased_rank_decode,
    .decode_add = unbiased_rank_decode_add,
    .finite = unbiased_rank_finite,
    .growth = unbiased_rank_growth,
    .largest = unbiased_rank_largest,
};
