// SPDX-License-Identifier: MIT
// PowerSGD (Vogels et al., arXiv:1905.13727): a gradient matrix G of each
// worker is replaced, on all of them, by an approximation of low rank to the
// mean of S = G + E, where the error memory E is what was not delivered so far.
//
//     P = sum of S Q        over all workers; then made orthonormal
//     Q = mean of S^T P
//     result P Q^T, the same bits everywhere;  E = S - P (S^T P)^T
//
// Q starts from the last round's (warm start), or from normal deviates that all
// workers draw alike. E is the worker's own residual: unlike S - P Q^T, which
// gives the same results, it does not grow when workers' gradients differ for
// long. If a matrix is zero or of lower rank, a column of P vanishes and
// becomes zero; that of Q is then zero too, and the next round draws it anew.
//
// The alternating form has one exchange a round: with P from the last round,
// made orthonormal, Q = mean of S^T P; in the next round P = mean of S Q with Q
// made orthonormal; the result is P Q^T.
//
// One sum holds P of all matrices of a call, a second one Q. Tensors of one row
// or column, and those that factors would not make small enough, are summed
// uncompressed together with P. The state changes only after the last exchange
// has succeeded.
//
// The error memory is stored in two parts: the last sum S, and the factors of
// this worker's part in the result, left right^T, which are still to be
// subtracted from it (kernels/powersgd.h gives the reason). The new S is
// written to a second array, which changes places with the first at the end.
// Without error memory, S is the gradient itself.
//
// A non-finite or very large value shows in the product of its row, so G needs
// no scan of its own: S = G + E is infinite or NaN where G is, and so is its
// product with anything. A tensor whose S is too large to become state is
// treated like one that is not finite.
#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "algorithm/framework/round.h"
#include "algorithm/shared/subspace.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/matrix.h"
#include "kernels/powersgd.h"
#include "kernels/vector.h"

enum { RATE_MAX = 1000000 };

#define SUSPICIOUS 0x1p80f // no product of sane gradients is as large

typedef struct powersgd {
    uint32_t rank;
    bool warm_start;
    bool error_feedback;
    double min_compression_rate;
    uint32_t start_iteration;
    bool alternating;
} powersgd;

static const lac_param powersgd_params[] = {
    {.name = "rank",
     .aliases = "matrix_approximation_rank",
     .type = LAC_PARAM_U32,
     .offset = offsetof(powersgd, rank),
     .default_value = "1",
     .min = 1,
     .max = LACI_POWERSGD_RANK_MAX,
     .help = "columns of each factor"},
    {.name = "warm-start",
     .aliases = "warm_start",
     .type = LAC_PARAM_BOOL,
     .offset = offsetof(powersgd, warm_start),
     .default_value = "yes",
     .help = "start from the last factors; no: from random ones"},
    {.name = "error-feedback",
     .aliases = "use_error_feedback",
     .type = LAC_PARAM_BOOL,
     .offset = offsetof(powersgd, error_feedback),
     .default_value = "yes",
     .help = "send the compression error later; no: drop it"},
    {.name = "min-compression-rate",
     .aliases = "min_compression_rate",
     .type = LAC_PARAM_F64,
     .offset = offsetof(powersgd, min_compression_rate),
     .default_value = "1",
     .min = 0,
     .max = RATE_MAX,
     .help = "how many times smaller factors must be, else a tensor goes raw"},
    {.name = "start-iteration",
     .aliases = "start_powerSGD_iter",
     .type = LAC_PARAM_U32,
     .offset = offsetof(powersgd, start_iteration),
     .default_value = "0",
     .min = 0,
     .max = UINT32_MAX,
     .help = "rounds that are exact before compression begins"},
    {.name = "alternating",
     .type = LAC_PARAM_BOOL,
     .offset = offsetof(powersgd, alternating),
     .default_value = "no",
     .help = "one factor a round, in turn: one exchange instead of two"},
    {0},
};

// Returns the number of columns of a tensor's factors, 0 for one that is sent
// uncompressed.
static size_t powersgd_rank_of(const powersgd *s, lac_shape shape)
{
    if (shape.rows <= 1 || shape.cols <= 1) {
        return 0;
    }
    const size_t smaller = shape.rows < shape.cols ? shape.rows : shape.cols;
    const size_t rank = smaller < s->rank ? smaller : s->rank;
    const double kept = (double)(shape.rows + shape.cols) * (double)rank;
    const double all = (double)shape.rows * (double)shape.cols;
    return kept * s->min_compression_rate >= all ? 0 : rank;
}

static void powersgd_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    const powersgd *const s = state;
    const lac_shape shape = laci_tensor_shape(w, tensor);
    const size_t rank = powersgd_rank_of(s, shape);
    if (rank == 0) {
        return;
    }
    if (s->error_feedback) {
        const size_t n = lac_shape_values(shape);
        laci_plan_own(plan, "sum", n);
        laci_plan_working(plan, n);
        laci_plan_own(plan, "left", shape.rows * rank);
        laci_plan_own(plan, "right", shape.cols * rank);
    }
    if (s->warm_start) {
        laci_plan_shared(plan, "cols-start", shape.cols * rank);
    }
    if (s->warm_start && s->alternating) {
        laci_plan_shared(plan, "rows-start", shape.rows * rank);
    }
}

// Room for both sums, and for a copy of the worker's own part in one.
static size_t powersgd_sum_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    const powersgd *const s = state;
    const lac_shape shape = laci_tensor_shape(w, tensor);
    const size_t n = lac_shape_values(shape);
    const size_t rank = powersgd_rank_of(s, shape);
    const size_t larger = shape.rows > shape.cols ? shape.rows : shape.cols;
    const size_t factors = rank * (shape.rows + shape.cols + larger);
    return rank == 0 || (s->start_iteration > 0 && n > factors) ? n : factors;
}

// A tensor in a round. A matrix has its parts of the two sums, and room for a
// copy of its own part in the last; an uncompressed tensor has `first` alone.
// In the alternating form, `first` is the one sum and `second` the factor that
// it is a product with.
typedef struct step {
    const powersgd *settings;
    const laci_round *round;
    const laci_item *item;
    size_t rank; // 0: uncompressed
    float *first;
    float *second;
    float *local;
} step;

// The fields of a matrix, in this order where they exist.
typedef struct matrix_fields {
    laci_field *sum;   // saved: the last S
    laci_field *next;  // the new S
    float *left;       // saved: to be subtracted from the last S
    float *right;      // saved
    float *cols_start; // saved: where the next factor of columns starts
    float *rows_start; // saved: the same for rows
} matrix_fields;

static matrix_fields fields_of(const step *t)
{
    laci_field *f = t->item->fields;
    matrix_fields m = {0};
    if (t->settings->error_feedback) {
        m.sum = f++;
        m.next = f++;
        m.left = (f++)->values;
        m.right = (f++)->values;
    }
    if (t->settings->warm_start) {
        m.cols_start = (f++)->values;
    }
    if (t->settings->warm_start && t->settings->alternating) {
        m.rows_start = (f++)->values;
    }
    return m;
}

// An alternating round multiplies with S or, in turn, with S^T.
static bool transposed(const step *t)
{
    return (t->round->number - t->settings->start_iteration) % 2 == 0;
}

// The numbers of floats of `first` and of `second`.
static size_t first_n(const step *t)
{
    const bool cols = t->settings->alternating && transposed(t);
    return t->rank == 0
               ? t->item->n
               : t->rank * (cols ? t->item->shape.cols : t->item->shape.rows);
}

static size_t second_n(const step *t)
{
    const lac_shape shape = t->item->shape;
    return t->rank == 0 ? 0 : t->rank * (shape.rows + shape.cols) - first_n(t);
}

static lac_key key_of(const step *t)
{
    return lac_key_make(
        t->round->worker->seed, LAC_PURPOSE_FACTOR, t->round->number,
        lac_scope_shared(), t->item->name_hash);
}

static float step_max(const step *t, const float *x, size_t n)
{
    const uint32_t bits =
        t->round->worker->kernels->vector->max_magnitude(x, n);
    return laci_float_of(bits);
}

// Copies the columns of the last round, or draws those that are zero. Their
// length does not matter; a power of two brings it near 1, since the product
// with a matrix of very large or small values would leave the range of floats.
static void start_columns(const step *t, const float *from, size_t n, float *to)
{
    const lac_key key = key_of(t);
    for (size_t c = 0; c < t->rank; c++) {
        const float *const x = from == NULL ? NULL : from + c * n;
        float *const y = to + c * n;
        const float most = x == NULL ? 0 : step_max(t, x, n);
        int exponent;
        (void)frexpf(most, &exponent);
        const double scale = ldexp(1, -exponent);
        for (size_t i = 0; i < n; i++) {
            y[i] = x != NULL && most > 0
                       ? (float)((double)x[i] * scale)
                       : lac_key_normal(&key, (uint32_t)(c * n + i));
        }
    }
}

// out = S in or S^T in.
static void multiply_plain(
    const step *t, const float *s, bool transpose, const float *in, float *out)
{
    const laci_matrix_kernels *const matrix = t->round->worker->kernels->matrix;
    const lac_shape shape = t->item->shape;
    const size_t in_n = transpose ? shape.rows : shape.cols;
    const size_t out_n = transpose ? shape.cols : shape.rows;
    laci_column columns[LACI_POWERSGD_RANK_MAX];
    for (size_t c = 0; c < t->rank; c++) {
        columns[c] = (laci_column){in + c * in_n, out + c * out_n};
    }
    if (transpose) {
        memset(out, 0, t->rank * out_n * sizeof(*out));
        matrix->multiply_transposed(s, shape, columns, t->rank);
    } else {
        matrix->multiply(s, shape, columns, t->rank);
    }
}

static laci_powersgd_sum sum_of(const step *t, const matrix_fields *p)
{
    assert(p->sum != NULL && p->next != NULL);
    return (laci_powersgd_sum){
        .shape = t->item->shape,
        .rank = t->rank,
        .g = t->item->in,
        .m = p->sum->values,
        .left = p->left,
        .right = p->right,
        .s = p->next->values,
    };
}

static const float *s_of(const step *t, const matrix_fields *p)
{
    return t->settings->error_feedback ? p->next->values : t->item->in;
}

// `second` is the factor that the matrix is multiplied with.
static void begin_alternating(const step *t, const matrix_fields *p)
{
    const lac_key key = key_of(t);
    const lac_shape shape = t->item->shape;
    const size_t n = transposed(t) ? shape.rows : shape.cols;
    start_columns(
        t, transposed(t) ? p->rows_start : p->cols_start, n, t->second);
    laci_subspace_orthonormalise(&key, t->second, n, t->rank);
    if (t->settings->error_feedback) {
        const laci_powersgd_sum x = sum_of(t, p);
        t->round->worker->kernels->powersgd->sum(&x);
    }
    multiply_plain(t, s_of(t, p), transposed(t), t->second, t->first);
    memcpy(t->local, t->first, first_n(t) * sizeof(*t->local));
}

// Computes `first`, a product with the matrix.
static void multiply_first(const step *t)
{
    const matrix_fields p = fields_of(t);
    if (t->settings->alternating) {
        begin_alternating(t, &p);
        return;
    }
    start_columns(t, p.cols_start, t->item->shape.cols, t->second);
    if (t->settings->error_feedback) {
        const laci_powersgd_sum x = sum_of(t, &p);
        t->round->worker->kernels->powersgd->multiply(&x, t->second, t->first);
    } else {
        multiply_plain(t, t->item->in, false, t->second, t->first);
    }
}

// Makes `first`, now the sum over all workers, orthonormal, and computes
// `second`, the product with it.
static void multiply_second(const step *t)
{
    const matrix_fields p = fields_of(t);
    laci_subspace_orthonormalise(NULL, t->first, t->item->shape.rows, t->rank);
    multiply_plain(t, s_of(t, &p), true, t->first, t->second);
    if (t->settings->error_feedback) {
        memcpy(t->local, t->second, second_n(t) * sizeof(*t->local));
    }
}

static void swap_sums(const matrix_fields *p)
{
    float *const values = p->sum->values;
    p->sum->values = p->next->values;
    p->next->values = values;
}

// Writes the result and the state from the sums over all workers.
static void finish_matrix(const step *t)
{
    const matrix_fields p = fields_of(t);
    const lac_shape shape = t->item->shape;
    const bool alternating = t->settings->alternating;
    const bool swapped = alternating && transposed(t);
    const size_t left_n = t->rank * shape.rows, right_n = t->rank * shape.cols;
    float *const mean = alternating ? t->first : t->second;
    const size_t mean_n = alternating ? first_n(t) : second_n(t);
    float *const left = swapped ? t->second : t->first;
    float *const right = swapped ? t->first : t->second;
    const bool right_is_mean = mean == right;
    t->round->worker->kernels->gossip->scale(
        (float)(1.0 / t->round->worker->world), mean, mean, mean_n);
    t->round->worker->kernels->powersgd->reconstruct(
        shape, t->rank, left, right, t->item->out);
    if (t->settings->error_feedback) {
        assert(p.left != NULL && p.right != NULL);
        memcpy(p.left, right_is_mean ? left : t->local, left_n * sizeof(*left));
        memcpy(
            p.right, right_is_mean ? t->local : right,
            right_n * sizeof(*right));
        swap_sums(&p);
    }
    float *const start = right_is_mean ? p.cols_start : p.rows_start;
    if (start != NULL) {
        memcpy(start, mean, mean_n * sizeof(*mean));
    }
}

// A round: the settings, and the floats of its two sums.
typedef struct sums {
    const powersgd *settings;
    const laci_round *round;
    size_t first_n;
    size_t second_n;
} sums;

static size_t step_rank(
    const powersgd *s, const laci_round *round, const laci_item *item)
{
    return round->number < s->start_iteration
               ? 0
               : powersgd_rank_of(s, item->shape);
}

// Returns the step of the item after `before`, or of the first item if that is
// NULL: its parts of the sums follow those of the item before.
static step next_step(const sums *s, const step *before)
{
    const laci_round *const round = s->round;
    step t = {
        .settings = s->settings,
        .round = round,
        .item = before == NULL ? round->items : before->item + 1,
        .first = round->sums,
        .second = round->sums + s->first_n + LACI_SUM_NOTES,
    };
    t.local = t.second + s->second_n;
    if (before != NULL) {
        const bool alternating = s->settings->alternating;
        const size_t local_n = alternating && before->rank > 0
                                   ? first_n(before)
                                   : second_n(before);
        t.first = before->first + first_n(before);
        t.second = before->second + second_n(before);
        t.local = before->local + local_n;
    }
    t.rank = step_rank(s->settings, round, t.item);
    return t;
}

// Calls `visit` for every item of the round, in order, until it fails.
static lac_status for_each_step(
    const sums *s, lac_status (*visit)(const step *t))
{
    step t = {0};
    for (size_t i = 0; i < s->round->count; i++) {
        t = next_step(s, i == 0 ? NULL : &t);
        LAC_TRY(visit(&t));
    }
    return LAC_OK;
}

static sums sums_of(const powersgd *settings, const laci_round *round)
{
    sums s = {.settings = settings, .round = round};
    step t = {0};
    for (size_t i = 0; i < round->count; i++) {
        t = next_step(&s, i == 0 ? NULL : &t);
        s.first_n += first_n(&t);
        s.second_n += second_n(&t);
    }
    return s;
}

static bool step_finite(const step *t, const float *x, size_t n)
{
    return laci_all_finite(t->round->worker->kernels, x, n);
}

// A bound of the error memory, without computing it.
static float error_bound(const step *t, const matrix_fields *p)
{
    const lac_shape shape = t->item->shape;
    return step_max(t, p->sum->values, t->item->n) +
           (float)t->rank * step_max(t, p->left, shape.rows * t->rank) *
               step_max(t, p->right, shape.cols * t->rank);
}

// Returns whether S may become state: its products with columns whose values
// are near 1 must stay finite in later rounds. A memory that is larger already
// may shrink.
static bool step_accepted(const step *t)
{
    const lac_shape shape = t->item->shape;
    const float limit = FLT_MAX / (2 * (float)(shape.rows + shape.cols));
    if (t->rank == 0) {
        return step_finite(t, t->item->in, t->item->n);
    }
    if (!t->settings->error_feedback) {
        return step_max(t, t->item->in, t->item->n) <= limit;
    }
    const matrix_fields p = fields_of(t);
    const laci_powersgd_sum x = sum_of(t, &p);
    t->round->worker->kernels->powersgd->sum(&x);
    return step_max(t, x.s, t->item->n) <= fmaxf(limit, error_bound(t, &p));
}

static bool powersgd_accepts(
    const void *state, const laci_round *round, size_t i)
{
    const laci_item *const item = &round->items[i];
    const step t = {
        .settings = state,
        .round = round,
        .item = item,
        .rank = step_rank(state, round, item),
    };
    return step_accepted(&t);
}

// Writes the item's part of the first sum. A product of S that is not large
// shows that S is not either; only a large one needs a look at S itself.
// Returns LACI_SCAN if S is not finite or too large.
static lac_status begin_step(const step *t)
{
    const laci_item *const item = t->item;
    if (t->rank > 0) {
        multiply_first(t);
    } else if (item->n > 0) {
        memcpy(t->first, item->in, item->n * sizeof(*item->in));
    }
    return step_max(t, t->first, first_n(t)) < SUSPICIOUS || step_accepted(t)
               ? LAC_OK
               : LACI_SCAN;
}

// All workers check the same numbers, and overflow alike.
static lac_status check_range(const step *t, const float *x, size_t n)
{
    if (!step_finite(t, x, n)) {
        return lac_fail(
            LACI_OVERFLOW,
            "powersgd: the factors of %s are more than a float holds",
            t->item->name);
    }
    return LAC_OK;
}

static lac_status check_first(const step *t)
{
    return t->rank == 0 ? LAC_OK : check_range(t, t->first, first_n(t));
}

static lac_status turn_step(const step *t)
{
    if (t->rank > 0) {
        multiply_second(t);
    }
    return LAC_OK;
}

static lac_status check_second(const step *t)
{
    return t->rank == 0 ? LAC_OK : check_range(t, t->second, second_n(t));
}

static lac_status finish_step(const step *t)
{
    const laci_worker *const w = t->round->worker;
    if (t->rank > 0) {
        finish_matrix(t);
    } else {
        w->kernels->gossip->scale(
            (float)(1.0 / w->world), t->first, t->item->out, t->item->n);
    }
    return LAC_OK;
}

static lac_status powersgd_reduce(void *state, laci_round *round)
{
    const sums s = sums_of(state, round);
    LAC_TRY(for_each_step(&s, begin_step));
    LAC_TRY(laci_nonfinite_sum(round, round->sums, s.first_n));
    LAC_TRY(for_each_step(&s, check_first));
    if (s.second_n > 0 && !s.settings->alternating) {
        LAC_TRY(for_each_step(&s, turn_step));
        LAC_TRY(laci_group_sum(
            round->group, round->number, 1,
            round->sums + s.first_n + LACI_SUM_NOTES, s.second_n, 0));
        LAC_TRY(for_each_step(&s, check_second));
    }
    return for_each_step(&s, finish_step);
}

// Of rounds that compress. An alternating round sends one of the two factors.
static void powersgd_cost(
    const void *state, const laci_worker *w, lac_cost *out)
{
    const powersgd *const s = state;
    double raw = 0, factors = 0;
    for (size_t t = 0; t < lac_layout_count(w->layout); t++) {
        const lac_shape shape = laci_tensor_shape(w, t);
        const size_t rank = powersgd_rank_of(s, shape);
        raw += rank == 0 ? (double)lac_shape_values(shape) : 0;
        factors += (double)(rank * (shape.rows + shape.cols));
    }
    const bool twice = factors > 0 && !s->alternating;
    out->payload_bytes =
        sizeof(float) * (raw + (s->alternating ? factors / 2 : factors));
    out->messages = twice ? 2 : 1;
    out->phases = twice ? 2 : 1;
}

const laci_algorithm_ops laci_powersgd_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "powersgd",
    .plugin.summary = "factors of low rank by the power method, error feedback",
    .plugin.params = powersgd_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(powersgd),
    .family = LAC_FAMILY_GRADIENT,
    .finds_nonfinite = true,
    .accepts = powersgd_accepts,
    .plan = powersgd_plan,
    .sum_bound = powersgd_sum_bound,
    .reduce = powersgd_reduce,
    .cost = powersgd_cost,
};
