// SPDX-License-Identifier: MIT
#include "algorithm/powersgd_step.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "algorithm/shared/subspace.h"
#include "base/bytes.h"
#include "kernels/gossip.h"
#include "kernels/matrix.h"
#include "kernels/powersgd.h"
#include "kernels/vector.h"

// The indices of field `choice`.
enum { LOW, NORM, RATE, CHOICES };

static size_t rank_for(const laci_powersgd *s, lac_shape shape, size_t wanted)
{
    if (shape.rows <= 1 || shape.cols <= 1) {
        return 0;
    }
    const size_t smaller = shape.rows < shape.cols ? shape.rows : shape.cols;
    const size_t rank = smaller < wanted ? smaller : wanted;
    const double kept = (double)(shape.rows + shape.cols) * (double)rank;
    const double all = (double)shape.rows * (double)shape.cols;
    return kept * s->min_compression_rate >= all ? 0 : rank;
}

size_t laci_powersgd_rank(const laci_powersgd *s, lac_shape shape)
{
    const size_t high = rank_for(s, shape, s->high);
    return high > 0 ? high : rank_for(s, shape, s->rank);
}

// Whether a tensor has two ranks.
static bool adapts(const laci_powersgd *s, lac_shape shape)
{
    return s->high > 0 &&
           laci_powersgd_rank(s, shape) > rank_for(s, shape, s->rank);
}

void laci_powersgd_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    const laci_powersgd *const s = state;
    const lac_shape shape = laci_tensor_shape(w, tensor);
    const size_t rank = laci_powersgd_rank(s, shape);
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
    if (adapts(s, shape)) {
        laci_plan_shared(plan, "history", lac_shape_values(shape));
        laci_plan_shared(plan, "choice", CHOICES);
    }
}

// Room for both sums, and for a copy of the worker's own part in one.
// The fields of a matrix, in this order where they exist.
typedef struct matrix_fields {
    laci_field *sum;   // saved: the last S
    laci_field *next;  // the new S
    float *left;       // saved: to be subtracted from the last S
    float *right;      // saved
    float *cols_start; // saved: where the next factor of columns starts
    float *rows_start; // saved: the same for rows
    float *history;    // saved: the sum of the interval's results
    float *choice;     // saved: LOW, NORM and RATE
} matrix_fields;

static matrix_fields fields_in(const laci_powersgd *s, const laci_item *item)
{
    laci_field *f = item->fields;
    matrix_fields m = {0};
    if (s->error_feedback) {
        m.sum = f++;
        m.next = f++;
        m.left = (f++)->values;
        m.right = (f++)->values;
    }
    if (s->warm_start) {
        m.cols_start = (f++)->values;
    }
    if (s->warm_start && s->alternating) {
        m.rows_start = (f++)->values;
    }
    if (adapts(s, item->shape)) {
        m.history = (f++)->values;
        m.choice = (f++)->values;
    }
    return m;
}

static matrix_fields fields_of(const laci_powersgd_step *t)
{
    return fields_in(t->settings, t->item);
}

size_t laci_powersgd_rank_now(const laci_powersgd *s, const laci_item *item)
{
    if (!adapts(s, item->shape)) {
        return laci_powersgd_rank(s, item->shape);
    }
    const matrix_fields m = fields_in(s, item);
    return m.choice != NULL && m.choice[LOW] != 0
               ? rank_for(s, item->shape, s->rank)
               : laci_powersgd_rank(s, item->shape);
}

// An alternating round multiplies with S or, in turn, with S^T.
static bool transposed(const laci_powersgd_step *t)
{
    return (t->round->number - t->settings->start_iteration) % 2 == 0;
}

size_t laci_powersgd_first(const laci_powersgd_step *t)
{
    const bool cols = t->settings->alternating && transposed(t);
    return t->rank == 0
               ? t->item->n
               : t->rank * (cols ? t->item->shape.cols : t->item->shape.rows);
}

size_t laci_powersgd_second(const laci_powersgd_step *t)
{
    const lac_shape shape = t->item->shape;
    return t->rank == 0
               ? 0
               : t->rank * (shape.rows + shape.cols) - laci_powersgd_first(t);
}

static lac_key key_of(const laci_powersgd_step *t)
{
    return lac_key_make(
        t->round->worker->seed, LAC_PURPOSE_FACTOR, t->round->number,
        lac_scope_shared(), t->item->name_hash);
}

float laci_powersgd_max(const laci_powersgd_step *t, const float *x, size_t n)
{
    const uint32_t bits =
        t->round->worker->kernels->vector->max_magnitude(x, n);
    return laci_float_of(bits);
}

// Copies the columns of the last round, or of the last iteration to their own
// place, or draws those that are zero. Their
// length does not matter; a power of two brings it near 1, since the product
// with a matrix of very large or small values would leave the range of floats.
static void start_columns(
    const laci_powersgd_step *t, const float *from, size_t n, float *to)
{
    const lac_key key = key_of(t);
    for (size_t c = 0; c < t->rank; c++) {
        const float *const x = from == NULL ? NULL : from + c * n;
        float *const y = to + c * n;
        const float most = x == NULL ? 0 : laci_powersgd_max(t, x, n);
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
    const laci_powersgd_step *t, const float *s, bool transpose,
    const float *in, float *out)
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

static laci_powersgd_sum sum_of(
    const laci_powersgd_step *t, const matrix_fields *p)
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

static const float *s_of(const laci_powersgd_step *t, const matrix_fields *p)
{
    return t->settings->error_feedback ? p->next->values : t->item->in;
}

// `second` is the factor that the matrix is multiplied with.
static void begin_alternating(
    const laci_powersgd_step *t, const matrix_fields *p)
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
    memcpy(t->local, t->first, laci_powersgd_first(t) * sizeof(*t->local));
}

void laci_powersgd_multiply_first(const laci_powersgd_step *t)
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

void laci_powersgd_multiply_second(const laci_powersgd_step *t)
{
    const matrix_fields p = fields_of(t);
    laci_subspace_orthonormalise(NULL, t->first, t->item->shape.rows, t->rank);
    multiply_plain(t, s_of(t, &p), true, t->first, t->second);
    if (t->settings->error_feedback) {
        memcpy(
            t->local, t->second, laci_powersgd_second(t) * sizeof(*t->local));
    }
}

void laci_powersgd_multiply_again(const laci_powersgd_step *t)
{
    const matrix_fields p = fields_of(t);
    assert(t->second != NULL);
    start_columns(t, t->second, t->item->shape.cols, t->second);
    multiply_plain(t, s_of(t, &p), false, t->second, t->first);
}

static void swap_sums(const matrix_fields *p)
{
    float *const values = p->sum->values;
    p->sum->values = p->next->values;
    p->next->values = values;
}

// Subtracts the factors from the last S and zeroes them: those of a lower rank
// would leave columns out.
static void settle_memory(const laci_powersgd_step *t, const matrix_fields *p)
{
    const lac_shape shape = t->item->shape;
    const laci_vector_kernels *const vector = t->round->worker->kernels->vector;
    for (size_t r = 0; r < shape.rows; r++) {
        for (size_t c = 0; c < t->rank; c++) {
            vector->add_scaled(
                -p->left[c * shape.rows + r], p->right + c * shape.cols,
                p->sum->values + r * shape.cols, shape.cols);
        }
    }
    memset(p->left, 0, t->rank * shape.rows * sizeof(float));
    memset(p->right, 0, t->rank * shape.cols * sizeof(float));
}

// ACCORDION: after an interval in which the norm of the summed results changed
// by less than half, and the rate did not fall below half, the lower rank is
// enough. All workers have the same results, and decide alike.
static void choose_rank(const laci_powersgd_step *t, const matrix_fields *p)
{
    const laci_vector_kernels *const vector = t->round->worker->kernels->vector;
    const size_t n = t->item->n;
    const uint64_t done = t->round->number + 1 - t->settings->start_iteration;
    vector->add(t->item->out, p->history, n);
    if (!laci_all_finite(t->round->worker->kernels, p->history, n)) {
        memset(p->history, 0, n * sizeof(float));
    }
    if (done % t->settings->interval != 0) {
        return;
    }
    const float norm = laci_norm(vector, p->history, n);
    const float old = p->choice[NORM], rate = (float)t->round->rate;
    const bool calm =
        fabsf(old - norm) < 0.5f * old && rate >= 0.5f * p->choice[RATE];
    if (calm && p->choice[LOW] == 0 && t->settings->error_feedback) {
        settle_memory(t, p);
    }
    p->choice[LOW] = calm;
    p->choice[NORM] = norm;
    p->choice[RATE] = rate;
    memset(p->history, 0, n * sizeof(float));
}

void laci_powersgd_finish(const laci_powersgd_step *t)
{
    const matrix_fields p = fields_of(t);
    const lac_shape shape = t->item->shape;
    const bool alternating = t->settings->alternating;
    const bool swapped = alternating && transposed(t);
    const size_t left_n = t->rank * shape.rows, right_n = t->rank * shape.cols;
    float *const mean = alternating ? t->first : t->second;
    const size_t mean_n =
        alternating ? laci_powersgd_first(t) : laci_powersgd_second(t);
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

void laci_powersgd_choose(const laci_powersgd_step *t)
{
    const matrix_fields p = fields_of(t);
    if (p.choice != NULL) {
        choose_rank(t, &p);
    }
}

// A bound of the error memory, without computing it.
static float error_bound(const laci_powersgd_step *t, const matrix_fields *p)
{
    const lac_shape shape = t->item->shape;
    return laci_powersgd_max(t, p->sum->values, t->item->n) +
           (float)t->rank *
               laci_powersgd_max(t, p->left, shape.rows * t->rank) *
               laci_powersgd_max(t, p->right, shape.cols * t->rank);
}

bool laci_powersgd_accepts(const laci_powersgd_step *t)
{
    const lac_shape shape = t->item->shape;
    const float limit = FLT_MAX / (2 * (float)(shape.rows + shape.cols));
    if (t->rank == 0) {
        return laci_all_finite(
            t->round->worker->kernels, t->item->in, t->item->n);
    }
    if (!t->settings->error_feedback) {
        return laci_powersgd_max(t, t->item->in, t->item->n) <= limit;
    }
    const matrix_fields p = fields_of(t);
    const laci_powersgd_sum x = sum_of(t, &p);
    t->round->worker->kernels->powersgd->sum(&x);
    return laci_powersgd_max(t, x.s, t->item->n) <=
           fmaxf(limit, error_bound(t, &p));
}
