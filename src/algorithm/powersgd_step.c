// SPDX-License-Identifier: MIT
// The error memory of a matrix is the difference of the last sum S and of what
// this worker's part in the result was, left right^T; kernels/powersgd.h says
// why it is kept in two parts. The new S is made in memory of its own, which
// changes places with the old one at the very end.
//
// Without error memory, S is the gradient itself.
#include "algorithm/powersgd_step.h"

#include <math.h>
#include <string.h>

#include "algorithm/subspace.h"
#include "kernels/gossip.h"
#include "kernels/matrix.h"
#include "kernels/powersgd.h"

// The fields of a matrix, those that there are in this order.
typedef struct parts {
    laci_field *sum;   // saved: the last S
    laci_field *next;  // the one in the making
    float *left;       // saved: what is still to be subtracted from the last
    float *right;      // saved
    float *cols_start; // saved: where the next factor of columns begins
    float *rows_start; // saved: the same for rows
} parts;

size_t laci_powersgd_rank(const laci_powersgd_settings *s, lac_shape shape)
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

void laci_powersgd_plan(
    const laci_powersgd_settings *s, lac_shape shape, laci_plan *plan)
{
    const size_t rank = laci_powersgd_rank(s, shape);
    if (s->error_feedback) {
        const size_t n = shape.rows * shape.cols;
        laci_plan_field(plan, "sum", LAC_RANK_ANY, n);
        laci_plan_field(plan, NULL, LAC_RANK_ANY, n);
        laci_plan_field(plan, "left", LAC_RANK_ANY, shape.rows * rank);
        laci_plan_field(plan, "right", LAC_RANK_ANY, shape.cols * rank);
    }
    if (s->warm_start) {
        laci_plan_field(plan, "cols-start", LAC_RANK_ANY, shape.cols * rank);
    }
    if (s->warm_start && s->alternating) {
        laci_plan_field(plan, "rows-start", LAC_RANK_ANY, shape.rows * rank);
    }
}

static parts parts_of(const laci_powersgd_step *t)
{
    laci_field *f = laci_fields(t->w, t->item->tensor);
    parts p = {0};
    if (t->settings->error_feedback) {
        p.sum = f++;
        p.next = f++;
        p.left = (f++)->values;
        p.right = (f++)->values;
    }
    if (t->settings->warm_start) {
        p.cols_start = (f++)->values;
    }
    if (t->settings->warm_start && t->settings->alternating) {
        p.rows_start = (f++)->values;
    }
    return p;
}

bool laci_powersgd_transposed(const laci_powersgd_settings *s, uint64_t round)
{
    return (round - s->start_iteration) % 2 == 0;
}

static bool transposed(const laci_powersgd_step *t)
{
    return laci_powersgd_transposed(t->settings, t->round);
}

size_t laci_powersgd_first_n(const laci_powersgd_step *t)
{
    const bool cols = t->settings->alternating && transposed(t);
    return t->rank * (cols ? t->item->shape.cols : t->item->shape.rows);
}

size_t laci_powersgd_second_n(const laci_powersgd_step *t)
{
    const lac_shape shape = t->item->shape;
    return t->rank * (shape.rows + shape.cols) - laci_powersgd_first_n(t);
}

static lac_key key_of(const laci_powersgd_step *t)
{
    return lac_key_make(
        t->w->seed, LAC_PURPOSE_FACTOR, t->round, lac_scope_shared(),
        lac_layout_tensor(t->w->layout, t->item->tensor)->name_hash);
}

static float largest(const float *x, size_t n)
{
    float most = 0;
    for (size_t i = 0; i < n; i++) {
        const float size = fabsf(x[i]);
        most = size > most ? size : most;
    }
    return most;
}

// Copies the columns that the last round left. Their length does not matter to
// what follows, and is brought near 1 by a power of two: the product with a
// matrix of very large or small values would leave the range of floats. A
// column that is zero is drawn.
static void start_columns(
    const laci_powersgd_step *t, const float *from, size_t n, float *to)
{
    const lac_key key = key_of(t);
    for (size_t c = 0; c < t->rank; c++) {
        const float *const x = from == NULL ? NULL : from + c * n;
        float *const y = to + c * n;
        const float most = x == NULL ? 0 : largest(x, n);
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

// out = S in or S^T in, for an S that is there.
static void multiply_plain(
    const laci_powersgd_step *t, const float *s, bool transpose,
    const float *in, float *out)
{
    const laci_matrix_kernels *const matrix = t->w->kernels->matrix;
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

static laci_powersgd_sum sum_of(const laci_powersgd_step *t, const parts *p)
{
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

static const float *s_of(const laci_powersgd_step *t, const parts *p)
{
    return t->settings->error_feedback ? p->next->values : t->item->in;
}

// `second` is what the matrix is multiplied with.
static void begin_alternating(const laci_powersgd_step *t, const parts *p)
{
    const lac_key key = key_of(t);
    const lac_shape shape = t->item->shape;
    const size_t n = transposed(t) ? shape.rows : shape.cols;
    start_columns(
        t, transposed(t) ? p->rows_start : p->cols_start, n, t->second);
    laci_subspace_orthonormalise(&key, t->second, n, t->rank);
    if (t->settings->error_feedback) {
        const laci_powersgd_sum x = sum_of(t, p);
        t->w->kernels->powersgd->sum(&x);
    }
    multiply_plain(t, s_of(t, p), transposed(t), t->second, t->first);
    memcpy(t->local, t->first, laci_powersgd_first_n(t) * sizeof(*t->local));
}

void laci_powersgd_begin(const laci_powersgd_step *t)
{
    const parts p = parts_of(t);
    if (t->settings->alternating) {
        begin_alternating(t, &p);
        return;
    }
    start_columns(t, p.cols_start, t->item->shape.cols, t->second);
    if (t->settings->error_feedback) {
        const laci_powersgd_sum x = sum_of(t, &p);
        t->w->kernels->powersgd->multiply(&x, t->second, t->first);
    } else {
        multiply_plain(t, t->item->in, false, t->second, t->first);
    }
}

void laci_powersgd_turn(const laci_powersgd_step *t)
{
    const parts p = parts_of(t);
    laci_subspace_orthonormalise(NULL, t->first, t->item->shape.rows, t->rank);
    multiply_plain(t, s_of(t, &p), true, t->first, t->second);
    if (t->settings->error_feedback) {
        memcpy(
            t->local, t->second, laci_powersgd_second_n(t) * sizeof(*t->local));
    }
}

static void swap_sums(const parts *p)
{
    float *const values = p->sum->values;
    p->sum->values = p->next->values;
    p->next->values = values;
}

void laci_powersgd_finish(const laci_powersgd_step *t)
{
    const parts p = parts_of(t);
    const lac_shape shape = t->item->shape;
    const bool alternating = t->settings->alternating;
    const bool swapped = alternating && transposed(t);
    const size_t left_n = t->rank * shape.rows, right_n = t->rank * shape.cols;
    float *const mean = alternating ? t->first : t->second;
    const size_t mean_n =
        alternating ? laci_powersgd_first_n(t) : laci_powersgd_second_n(t);
    float *const left = swapped ? t->second : t->first;
    float *const right = swapped ? t->first : t->second;
    const bool right_is_mean = mean == right;
    t->w->kernels->gossip->scale(
        (float)(1.0 / t->w->world), mean, mean, mean_n);
    t->w->kernels->powersgd->reconstruct(
        shape, t->rank, left, right, t->item->out);
    if (t->settings->error_feedback) {
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
