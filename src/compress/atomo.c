// SPDX-License-Identifier: MIT
// Spectral ATOMO (Wang et al., arXiv:1806.04090), a control: a matrix is the
// sum of its singular values times the outer products of singular vectors. r of
// these atoms are kept at random, atom i with probability p_i, and divided by
// p_i, so that the result is unbiased. It needs a singular value decomposition
// of every matrix in every step, which is slow: powersgd avoids it.
//
// The p_i with the least error are min(1, c s_i), with c such that they add up
// to r. The atoms are orthogonal, so the error is sum_i s_i^2 (1/p_i - 1),
// however the choices depend on one another; with p_i = r / count for all it
// would be |M|^2 (count / r - 1), which is omega. The atoms are chosen by one
// uniform u: those in whose part [p_0 + ... + p_{i-1}, p_0 + ... + p_i) one of
// u, u + 1, ..., u + r - 1 is. So exactly r are kept. (Independent choices,
// repeated until there are r, as in the published experiments, are biased.)
// u has 32 bits: the mean is exact to 2^-32 of an atom.
//
// Payload: r columns of P, which are p_i^-1 s_i left_i, then r columns of Q,
// right_i, all floats: as low-rank has them, and decoded alike. A tensor of n
// values for which r * (rows + columns) is not below n is sent unchanged. The
// contractive form has its factor 1 / (1 + omega) in P. A matrix with an
// infinity or NaN becomes NaN.
#include "compress/atomo.h"

#include <laconic/compress.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "compress/compressor.h"
#include "compress/factors.h"
#include "compress/svd.h"
#include "kernels/vector.h"

typedef struct atomo_state {
    uint32_t rank;
} atomo_state;

static const lac_param params[] = {
    {
        .name = "rank",
        .type = LAC_PARAM_U32,
        .offset = offsetof(atomo_state, rank),
        .default_value = "1",
        .min = 1,
        .max = LACI_RANK_MAX,
        .help = "atoms that are kept",
    },
    {.name = NULL},
};

// The factors of a tensor without their memory.
static laci_factors atomo_view(const void *state, lac_shape shape)
{
    const atomo_state *const s = state;
    return laci_factors_of(shape, shape, s->rank);
}

static size_t atomo_bound(const void *state, lac_shape shape)
{
    const laci_factors f = atomo_view(state, shape);
    return laci_factors_floats(&f) * sizeof(float);
}

static size_t atom_count(lac_shape shape)
{
    return shape.rows < shape.cols ? shape.rows : shape.cols;
}

// The decomposition and the probabilities, all doubles.
static size_t svd_size(lac_shape shape)
{
    return (laci_svd_room(shape) + atom_count(shape)) * sizeof(double);
}

// The factors, then the decomposition.
static size_t atomo_scratch(const void *state, lac_shape shape)
{
    const laci_factors f = atomo_view(state, shape);
    return f.rank == 0
               ? 0
               : laci_aligned(atomo_bound(state, shape)) + svd_size(shape);
}

static double atomo_omega(const laci_factors *f)
{
    return f->rank == 0 ? 0
                        : (double)atom_count(f->shape) / (double)f->rank - 1;
}

static lac_guarantee atomo_guarantee(
    const void *state, lac_shape shape, lac_form form)
{
    const laci_factors f = atomo_view(state, shape);
    const double omega = atomo_omega(&f);
    const bool scaled = form == LAC_FORM_CONTRACTIVE && omega > 0;
    return (lac_guarantee){
        .unbiased = !scaled,
        .error = scaled ? omega / (1 + omega) : omega,
    };
}

// Atoms whose share of the rest is at least one are kept for certain; the
// others share what remains of the rank in proportion to their values.
void laci_atomo_probabilities(
    const double *values, size_t count, size_t rank, double *out)
{
    double rest = 0;
    for (size_t i = count; i > 0; i--) {
        out[i - 1] = rest += values[i - 1]; // the sum from here on
    }
    size_t kept = 0;
    while (kept < rank && values[kept] * (double)(rank - kept) >= out[kept]) {
        out[kept++] = 1;
    }
    const double share = kept < rank ? (double)(rank - kept) / out[kept] : 0;
    for (size_t i = kept; i < count; i++) {
        out[i] = fmin(1, values[i] * share);
    }
}

size_t laci_atomo_choose(
    const double *p, size_t count, size_t rank, double u, size_t *out)
{
    double sum = 0;
    size_t chosen = 0;
    for (size_t i = 0; i < count && chosen < rank; i++) {
        sum += p[i];
        if (p[i] > 0 && u + (double)chosen < sum) {
            out[chosen++] = i;
        }
    }
    return chosen;
}

static void put_atom(
    const laci_factors *f, size_t column, const laci_svd *svd, size_t i,
    double weight)
{
    const size_t rows = f->shape.rows, cols = f->shape.cols;
    for (size_t j = 0; j < rows; j++) {
        f->p[column * rows + j] = (float)(weight * laci_svd_left(svd, i, j));
    }
    for (size_t j = 0; j < cols; j++) {
        f->q[column * cols + j] = (float)laci_svd_right(svd, i, j);
    }
}

static void put_nan(const laci_factors *f)
{
    for (size_t i = 0; i < laci_factors_floats(f); i++) {
        f->p[i] = NAN;
    }
}

// Writes P and Q. A column that rounding has left without an atom is zero.
static void keep_atoms(
    const laci_factors *f, const laci_svd *svd, const lac_call *call,
    double *probabilities)
{
    const bool scaled = call->form == LAC_FORM_CONTRACTIVE;
    const double scale = scaled ? 1 / (1 + atomo_omega(f)) : 1;
    const double u = (double)lac_key_draw(&call->key, 0) * 0x1p-32;
    size_t atoms[LACI_RANK_MAX];
    laci_atomo_probabilities(svd->values, svd->count, f->rank, probabilities);
    const size_t chosen =
        laci_atomo_choose(probabilities, svd->count, f->rank, u, atoms);
    memset(f->p, 0, laci_factors_floats(f) * sizeof(*f->p));
    for (size_t k = 0; k < chosen; k++) {
        const size_t i = atoms[k];
        put_atom(f, k, svd, i, scale * svd->values[i] / probabilities[i]);
    }
}

static laci_factors atomo_factors(const void *state, const lac_call *call)
{
    laci_factors f = atomo_view(state, call->shape);
    laci_factors_place(&f, call->scratch);
    return f;
}

static size_t atomo_encode(
    const void *state, const lac_call *call, const float *x, uint8_t *out)
{
    const laci_factors f = atomo_factors(state, call);
    const size_t len = atomo_bound(state, call->shape);
    if (f.rank == 0) {
        laci_put_floats(out, x, f.n);
        return len;
    }
    unsigned char *const scratch = call->scratch;
    double *const probabilities = (void *)(scratch + laci_aligned(len));
    double *const room = probabilities + atom_count(call->shape);
    if (laci_all_finite(call->kernels, x, f.n)) {
        const laci_svd svd = laci_svd_of(x, call->shape, room);
        keep_atoms(&f, &svd, call, probabilities);
    } else {
        put_nan(&f);
    }
    laci_factors_put(f.p, laci_factors_floats(&f), out);
    return len;
}

static lac_status atomo_check(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)in;
    return laci_check_length("atomo", len, atomo_bound(state, call->shape));
}

static void atomo_decode(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float *x)
{
    (void)len;
    const laci_factors f = atomo_factors(state, call);
    laci_factors_read(&f, in);
    laci_factors_decode(&f, in, x);
}

static void atomo_decode_add(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float a, float *y)
{
    (void)len;
    const laci_factors f = atomo_factors(state, call);
    laci_factors_read(&f, in);
    laci_factors_decode_add(&f, in, a, y, call->kernels);
}

static bool atomo_finite(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)len;
    const laci_factors f = atomo_factors(state, call);
    laci_factors_read(&f, in);
    return laci_factors_finite(&f, in, call->kernels);
}

// A kept atom is at most the sum of the singular values, which is at most
// sqrt(count) |M|, and that n times the largest value of M.
static double atomo_gain(const laci_factors *f)
{
    return (double)f->rank * (double)f->n;
}

static double atomo_growth(const void *state, lac_shape shape, lac_form form)
{
    (void)form;
    const laci_factors f = atomo_view(state, shape);
    return 1 + atomo_gain(&f);
}

static float atomo_largest(const void *state, lac_shape shape)
{
    const laci_factors f = atomo_view(state, shape);
    return f.rank == 0 ? FLT_MAX : FLT_MAX / (float)(2 * atomo_gain(&f));
}

const lac_compressor_ops laci_atomo_ops = {
    .plugin.size = sizeof(lac_compressor_ops),
    .plugin.name = "atomo",
    .plugin.summary = "singular vectors chosen at random: slow, a control",
    .plugin.params = params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(atomo_state),
    .max_values = LACI_SVD_VALUES_MAX,
    .traits = LAC_TRAIT_FIXED_SIZE,
    .guarantee = atomo_guarantee,
    .bound = atomo_bound,
    .scratch = atomo_scratch,
    .encode = atomo_encode,
    .check = atomo_check,
    .decode = atomo_decode,
    .decode_add = atomo_decode_add,
    .finite = atomo_finite,
    .growth = atomo_growth,
    .largest = atomo_largest,
};
