// SPDX-License-Identifier: MIT
// Low rank: a matrix M as the product P Q^T of two thin ones, by subspace
// iteration (Vogels, Karimireddy, Jaggi, arXiv:1905.13727, on one worker). Each
// iteration is P = orthonormal(M Q), Q = M^T P; the first
// Q is normal, drawn with the key. So C(M) = P P^T M is a projection.
//
// The error is at most 1 - r/columns in the mean. Let B be an orthonormal basis
// of the span of Q. C(M) preserves M B, and |M B|^2 = trace(M B B^T M^T) has
// the mean r/columns * |M|^2: the mean of B B^T is invariant under permutations
// and sign changes of the rows of Q, so it is a multiple of the identity, of
// trace r. Further iterations only come closer to the best approximation.
//
// r is the smallest of rank, rows and columns. A tensor of n values for which
// r * (rows + columns) is not below n, such as a vector, is sent unchanged.
// With fold=yes a vector is viewed as a matrix with zeros after its values
// (base/fold.h); the error of the values that are used is not larger than that
// of all.
//
// Payload: r columns of P, then r columns of Q, all floats; or the tensor. For
// huge matrices P is large and Q small, for tiny ones the other way round. An
// infinity or NaN in the matrix turns the values it affects into NaN.
#include <laconic/compress.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/fold.h"
#include "compress/compressor.h"
#include "compress/factors.h"

typedef struct low_rank_state {
    uint32_t rank;
    uint32_t iterations;
    bool fold;
} low_rank_state;

static const lac_param params[] = {
    {
        .name = "rank",
        .type = LAC_PARAM_U32,
        .offset = offsetof(low_rank_state, rank),
        .default_value = "1",
        .min = 1,
        .max = LACI_RANK_MAX,
        .help = "columns of each factor",
    },
    {
        .name = "iterations",
        .type = LAC_PARAM_U32,
        .offset = offsetof(low_rank_state, iterations),
        .default_value = "1",
        .min = 1,
        .max = 64,
        .help = "more come closer to the best factors, two passes each",
    },
    {
        .name = "fold",
        .type = LAC_PARAM_BOOL,
        .offset = offsetof(low_rank_state, fold),
        .default_value = "no",
        .help = "view a long vector as a matrix, which can be compressed",
    },
    {.name = NULL},
};

// The factors of a tensor without their memory.
static laci_factors low_rank_view(const void *state, lac_shape shape)
{
    const low_rank_state *const s = state;
    return laci_factors_of(shape, s->fold ? laci_fold(shape) : shape, s->rank);
}

static size_t low_rank_rank_of(const void *state, lac_shape shape)
{
    return low_rank_view(state, shape).rank;
}

static size_t low_rank_bound(const void *state, lac_shape shape)
{
    const laci_factors f = low_rank_view(state, shape);
    return laci_factors_floats(&f) * sizeof(float);
}

// The factors, and a copy of a folded tensor. It has room even if no zeros
// follow its values: a longer vector then needs no less than a shorter one.
static size_t low_rank_scratch(const void *state, lac_shape shape)
{
    const laci_factors f = low_rank_view(state, shape);
    const size_t copy =
        f.shape.rows == shape.rows ? 0 : lac_shape_values(f.shape);
    return f.rank == 0 ? 0
                       : low_rank_bound(state, shape) + copy * sizeof(float);
}

static lac_guarantee low_rank_guarantee(
    const void *state, lac_shape shape, lac_form form)
{
    (void)form;
    const laci_factors f = low_rank_view(state, shape);
    if (f.rank == 0) {
        return (lac_guarantee){.unbiased = true, .error = 0};
    }
    return (lac_guarantee){
        .unbiased = false,
        .error = 1 - (double)f.rank / (double)f.shape.cols,
    };
}

// The factors of a tensor, in the scratch of a call.
static laci_factors low_rank_factors(const void *state, const lac_call *call)
{
    laci_factors f = low_rank_view(state, call->shape);
    laci_factors_place(&f, call->scratch);
    return f;
}

// Returns the tensor with zeros after its values where it is folded.
static const float *matrix_of(
    const laci_factors *f, const float *x, float *padded)
{
    const size_t all = lac_shape_values(f->shape);
    if (all == f->n) {
        return x;
    }
    memcpy(padded, x, f->n * sizeof(*x));
    memset(padded + f->n, 0, (all - f->n) * sizeof(*x));
    return padded;
}

static size_t low_rank_encode(
    const void *state, const lac_call *call, const float *x, uint8_t *out)
{
    const low_rank_state *const s = state;
    const laci_factors f = low_rank_factors(state, call);
    const size_t floats = laci_factors_floats(&f);
    if (f.rank == 0) {
        laci_put_floats(out, x, floats);
    } else {
        const float *const m = matrix_of(&f, x, f.p + floats);
        laci_factors_find(&f, m, s->iterations, &call->key, call->kernels);
        laci_factors_put(f.p, floats, out);
    }
    return floats * sizeof(float);
}

static lac_status low_rank_check(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)in;
    return laci_check_length(
        "low-rank", len, low_rank_bound(state, call->shape));
}

static void low_rank_decode(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float *x)
{
    (void)len;
    const laci_factors f = low_rank_factors(state, call);
    laci_factors_read(&f, in);
    laci_factors_decode(&f, in, x);
}

static void low_rank_decode_add(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float a, float *y)
{
    (void)len;
    const laci_factors f = low_rank_factors(state, call);
    laci_factors_read(&f, in);
    laci_factors_decode_add(&f, in, a, y, call->kernels);
}

static bool low_rank_finite(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)len;
    const laci_factors f = low_rank_factors(state, call);
    laci_factors_read(&f, in);
    return laci_factors_finite(&f, in, call->kernels);
}

// M - P P^T M is a projection of M, so its largest value is at most |M|, which
// is at most sqrt(n) max|M|. The factor 2 is for rounding.
static double low_rank_growth(const void *state, lac_shape shape, lac_form form)
{
    (void)form;
    const double n = (double)lac_shape_values(shape);
    return low_rank_rank_of(state, shape) == 0 ? 1 : 2 * sqrt(n);
}

// A cautious limit: the values of C(M) are below sqrt(n) max|M|, and those of
// the factors below n max|M|.
static float low_rank_largest(const void *state, lac_shape shape)
{
    const float n = (float)lac_shape_values(shape);
    return low_rank_rank_of(state, shape) == 0 ? FLT_MAX : FLT_MAX / (8 * n);
}

const lac_compressor_ops laci_low_rank_ops = {
    .plugin.size = sizeof(lac_compressor_ops),
    .plugin.name = "low-rank",
    .plugin.summary = "a matrix as the product of two thin ones",
    .plugin.params = params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(low_rank_state),
    .max_values = UINT32_MAX,
    .traits = LAC_TRAIT_FIXED_SIZE,
    .guarantee = low_rank_guarantee,
    .bound = low_rank_bound,
    .scratch = low_rank_scratch,
    .encode = low_rank_encode,
    .check = low_rank_check,
    .decode = low_rank_decode,
    .decode_add = low_rank_decode_add,
    .finite = low_rank_finite,
    .growth = low_rank_growth,
    .largest = low_rank_largest,
};
