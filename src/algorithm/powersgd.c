// SPDX-License-Identifier: MIT
// PowerSGD (Vogels et al., arXiv:1905.13727): a gradient matrix G of each
// worker is replaced, on all of them, by an approximation of low rank to the
// mean of S = G + E, where the error memory E is what was not delivered so far.
//
//     P = sum of S Q        over all workers; then made orthonormal
//     Q = mean of S^T P
//     result P Q^T, the same bits everywhere;  E = S - P (S^T P)^T
//
// Q goes on from the last round (warm start), or from normal deviates that all
// workers draw alike. E is the worker's own residual: unlike S - P Q^T, which
// gives the same results, it does not grow where workers' gradients differ for
// long. A column of P that vanishes, as of a matrix that is zero or of lower
// rank, becomes zero; Q's is then zero too, and is drawn anew the next time.
//
// The alternating form has one exchange a round: with P from the last round,
// made orthonormal, Q = mean of S^T P; in the next round P = mean of S Q with Q
// made orthonormal; the result is P Q^T.
//
// All matrices of a call are in one sum for P and one for Q; tensors of one row
// or column, and those that factors would not make small enough, are summed as
// they are, with the P's. Nothing of the state changes until the last exchange
// has succeeded.
//
// A value that is not finite shows in the product of its row, so there is no
// need to look for it in all of G: S = G + E is infinite or NaN where G is, and
// nothing it is multiplied with makes it finite.
#include "kernels/powersgd.h"
#include "algorithm/nonfinite.h"
#include "algorithm/powersgd_step.h"
#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/vector.h"

#include <string.h>

enum { EXPONENT_ALL_ONES = 0x7f800000, RATE_MAX = 1000000 };

static const lac_param powersgd_params[] = {
    {.name = "rank",
     .aliases = "matrix_approximation_rank",
     .type = LAC_PARAM_U32,
     .offset = offsetof(laci_powersgd_settings, rank),
     .default_value = "1",
     .min = 1,
     .max = LACI_POWERSGD_RANK_MAX,
     .help = "columns of each factor"},
    {.name = "warm-start",
     .aliases = "warm_start",
     .type = LAC_PARAM_BOOL,
     .offset = offsetof(laci_powersgd_settings, warm_start),
     .default_value = "yes",
     .help = "go on from the last factors; no: from random ones"},
    {.name = "error-feedback",
     .aliases = "use_error_feedback",
     .type = LAC_PARAM_BOOL,
     .offset = offsetof(laci_powersgd_settings, error_feedback),
     .default_value = "yes",
     .help = "send later what was left out; no: lose it"},
    {.name = "min-compression-rate",
     .aliases = "min_compression_rate",
     .type = LAC_PARAM_F64,
     .offset = offsetof(laci_powersgd_settings, min_compression_rate),
     .default_value = "1",
     .min = 0,
     .max = RATE_MAX,
     .help = "how many times smaller factors must be, else a tensor goes raw"},
    {.name = "start-iteration",
     .aliases = "start_powerSGD_iter",
     .type = LAC_PARAM_U32,
     .offset = offsetof(laci_powersgd_settings, start_iteration),
     .default_value = "0",
     .min = 0,
     .max = UINT32_MAX,
     .help = "rounds that are exact before compression begins"},
    {.name = "alternating",
     .type = LAC_PARAM_BOOL,
     .offset = offsetof(laci_powersgd_settings, alternating),
     .default_value = "no",
     .help = "one factor a round, in turn: one exchange instead of two"},
    {0},
};

static void powersgd_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    const lac_shape shape = lac_layout_tensor(w->layout, tensor)->shape;
    if (laci_powersgd_rank(state, shape) > 0) {
        laci_powersgd_plan(state, shape, plan);
    }
}

static size_t powersgd_message_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    (void)state, (void)w, (void)tensor;
    return 0;
}

// Room for both sums, and for a copy of the worker's own part in one.
static size_t powersgd_sum_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    const laci_powersgd_settings *const s = state;
    const lac_shape shape = lac_layout_tensor(w->layout, tensor)->shape;
    const size_t n = shape.rows * shape.cols;
    const size_t rank = laci_powersgd_rank(s, shape);
    const size_t larger = shape.rows > shape.cols ? shape.rows : shape.cols;
    const size_t factors = rank * (shape.rows + shape.cols + larger);
    return rank == 0 || (s->start_iteration > 0 && n > factors) ? n : factors;
}

// A round on its way: where the places of its items are in w->sums.
typedef struct flight {
    const laci_powersgd_settings *settings;
    laci_worker *w;
    const laci_round *round;
    size_t first_n; // floats of the first sum
    size_t second_n;
} flight;

// An item with its places; `first` alone for one that is sent as it is. Places
// follow each other: start from the one before, or from NULL.
static laci_powersgd_step place_next(
    const flight *f, const laci_powersgd_step *before, const laci_item *item)
{
    laci_powersgd_step t = {
        .settings = f->settings,
        .w = f->w,
        .item = item,
        .round = f->round->number,
        .first = f->w->sums,
        .second = f->w->sums + f->first_n + LACI_SUM_NOTES,
    };
    t.local = t.second + f->second_n;
    if (before != NULL && before->rank == 0) {
        t.first = before->first + before->item->n;
        t.second = before->second;
        t.local = before->local;
    } else if (before != NULL) {
        const size_t local_n = f->settings->alternating
                                   ? laci_powersgd_first_n(before)
                                   : laci_powersgd_second_n(before);
        t.first = before->first + laci_powersgd_first_n(before);
        t.second = before->second + laci_powersgd_second_n(before);
        t.local = before->local + local_n;
    }
    t.rank = f->round->number < f->settings->start_iteration
                 ? 0
                 : laci_powersgd_rank(f->settings, item->shape);
    return t;
}

static flight flight_of(
    const laci_powersgd_settings *s, laci_worker *w, const laci_round *round)
{
    flight f = {.settings = s, .w = w, .round = round};
    for (size_t i = 0; i < round->count; i++) {
        const laci_powersgd_step t = place_next(&f, NULL, &round->items[i]);
        f.first_n += t.rank == 0 ? t.item->n : laci_powersgd_first_n(&t);
        f.second_n += t.rank == 0 ? 0 : laci_powersgd_second_n(&t);
    }
    return f;
}

static bool finite(const laci_worker *w, const float *x, size_t n)
{
    return w->kernels->vector->max_magnitude(x, n) < EXPONENT_ALL_ONES;
}

// Makes what the first sum has of an item. Fails when its values are not
// finite.
static lac_status begin_item(const laci_powersgd_step *t)
{
    const laci_item *const item = t->item;
    size_t n = item->n;
    if (t->rank > 0) {
        laci_powersgd_begin(t);
        n = laci_powersgd_first_n(t);
    } else if (n > 0) {
        memcpy(t->first, item->in, n * sizeof(*item->in));
    }
    if (!finite(t->w, t->first, n) && !finite(t->w, item->in, item->n)) {
        t->w->must_look = true;
        return lac_fail(LAC_ERR_INVALID, "a value is not finite");
    }
    return LAC_OK;
}

// All workers look at the same numbers, and fail alike.
static lac_status check_range(
    const laci_powersgd_step *t, const float *x, size_t n)
{
    if (!finite(t->w, x, n)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "powersgd: the factors of %s are more than a float holds",
            lac_layout_tensor(t->w->layout, t->item->tensor)->name);
    }
    return LAC_OK;
}

static lac_status sum_first(const flight *f)
{
    laci_powersgd_step t = {0};
    for (size_t i = 0; i < f->round->count; i++) {
        t = place_next(f, i == 0 ? NULL : &t, &f->round->items[i]);
        LAC_TRY(begin_item(&t));
    }
    LAC_TRY(laci_first_sum(f->w, f->round, f->w->sums, f->first_n));
    for (size_t i = 0; i < f->round->count; i++) {
        t = place_next(f, i == 0 ? NULL : &t, &f->round->items[i]);
        if (t.rank > 0) {
            LAC_TRY(check_range(&t, t.first, laci_powersgd_first_n(&t)));
        }
    }
    return LAC_OK;
}

static lac_status sum_second(const flight *f)
{
    laci_powersgd_step t = {0};
    for (size_t i = 0; i < f->round->count; i++) {
        t = place_next(f, i == 0 ? NULL : &t, &f->round->items[i]);
        if (t.rank > 0) {
            laci_powersgd_turn(&t);
        }
    }
    float *const x = f->w->sums + f->first_n + LACI_SUM_NOTES;
    LAC_TRY(laci_group_sum(f->w->group, f->round->number, 1, x, f->second_n));
    for (size_t i = 0; i < f->round->count; i++) {
        t = place_next(f, i == 0 ? NULL : &t, &f->round->items[i]);
        if (t.rank > 0) {
            LAC_TRY(check_range(&t, t.second, laci_powersgd_second_n(&t)));
        }
    }
    return LAC_OK;
}

static lac_status powersgd_reduce(
    void *state, laci_worker *w, const laci_round *round)
{
    const flight f = flight_of(state, w, round);
    LAC_TRY(sum_first(&f));
    if (f.second_n > 0 && !f.settings->alternating) {
        LAC_TRY(sum_second(&f));
    }
    laci_powersgd_step t = {0};
    for (size_t i = 0; i < round->count; i++) {
        t = place_next(&f, i == 0 ? NULL : &t, &round->items[i]);
        if (t.rank > 0) {
            laci_powersgd_finish(&t);
        } else {
            w->kernels->gossip->scale(
                (float)(1.0 / w->world), t.first, t.item->out, t.item->n);
        }
    }
    return LAC_OK;
}

// Of rounds that compress. Alternating, a round sends one of the two factors.
static void powersgd_cost(
    const void *state, const laci_worker *w, lac_cost *out)
{
    const laci_powersgd_settings *const s = state;
    double raw = 0, factors = 0;
    for (size_t t = 0; t < lac_layout_count(w->layout); t++) {
        const lac_shape shape = lac_layout_tensor(w->layout, t)->shape;
        const size_t rank = laci_powersgd_rank(s, shape);
        raw += rank == 0 ? (double)(shape.rows * shape.cols) : 0;
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
    .plugin.state_size = sizeof(laci_powersgd_settings),
    .family = LAC_FAMILY_GRADIENT,
    .finds_unfit = true,
    .plan = powersgd_plan,
    .message_bound = powersgd_message_bound,
    .sum_bound = powersgd_sum_bound,
    .reduce = powersgd_reduce,
    .cost = powersgd_cost,
};
