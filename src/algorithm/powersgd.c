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
// More iterations repeat the two steps in one round, from the new Q: without
// warm start and with about four, the result is nearly the best approximation
// of its rank. Each costs as much as the first.
//
// With high=H the rank of a matrix is H while its gradients change, and `rank`
// while they do not (ACCORDION, Agarwal et al., arXiv:2010.16248): after every
// interval of rounds, the norm of the sum of its results is compared with that
// of the interval before. The first interval has rank H.
//
// One sum holds P of all matrices of a call, a second one Q. Tensors of one row
// or column, unless they are folded, and those that factors would not make
// small enough, are summed uncompressed together with the first P. The state
// changes only after the last exchange has succeeded.
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
#include <string.h>

#include "algorithm/powersgd_step.h"
#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/powersgd.h"
#include "kernels/vector.h"

enum { RATE_MAX = 1000000, ITERATIONS_MAX = 64 };

#define SUSPICIOUS 0x1p80f // no product of sane gradients is as large

static const lac_param powersgd_params[] = {
    {.name = "rank",
     .aliases = "matrix_approximation_rank",
     .type = LAC_PARAM_U32,
     .offset = offsetof(laci_powersgd, rank),
     .default_value = "1",
     .min = 1,
     .max = LACI_POWERSGD_RANK_MAX,
     .help = "columns of each factor"},
    {.name = "iterations",
     .type = LAC_PARAM_U32,
     .offset = offsetof(laci_powersgd, iterations),
     .default_value = "1",
     .min = 1,
     .max = ITERATIONS_MAX,
     .help = "steps of the power method a round, with two exchanges each"},
    {.name = "warm-start",
     .aliases = "warm_start",
     .type = LAC_PARAM_BOOL,
     .offset = offsetof(laci_powersgd, warm_start),
     .default_value = "yes",
     .help = "start from the last factors; no: from random ones"},
    {.name = "error-feedback",
     .aliases = "use_error_feedback",
     .type = LAC_PARAM_BOOL,
     .offset = offsetof(laci_powersgd, error_feedback),
     .default_value = "yes",
     .help = "send the compression error later; no: drop it"},
    {.name = "min-compression-rate",
     .aliases = "min_compression_rate",
     .type = LAC_PARAM_F64,
     .offset = offsetof(laci_powersgd, min_compression_rate),
     .default_value = "1",
     .min = 0,
     .max = RATE_MAX,
     .help = "how many times smaller factors must be, else a tensor goes raw"},
    {.name = "start-iteration",
     .aliases = "start_powerSGD_iter",
     .type = LAC_PARAM_U32,
     .offset = offsetof(laci_powersgd, start_iteration),
     .default_value = "0",
     .min = 0,
     .max = UINT32_MAX,
     .help = "rounds that are exact before compression begins"},
    {.name = "alternating",
     .type = LAC_PARAM_BOOL,
     .offset = offsetof(laci_powersgd, alternating),
     .default_value = "no",
     .help = "one factor a round, in turn: one exchange instead of two"},
    {.name = "fold",
     .type = LAC_PARAM_BOOL,
     .offset = offsetof(laci_powersgd, fold),
     .default_value = "no",
     .help = "view a long vector as a matrix, which can be compressed"},
    {.name = "high",
     .type = LAC_PARAM_U32,
     .offset = offsetof(laci_powersgd, high),
     .default_value = "0",
     .min = 0,
     .max = LACI_POWERSGD_RANK_MAX,
     .help = "rank while gradients change; 0: that of `rank`"},
    {.name = "interval",
     .type = LAC_PARAM_U32,
     .offset = offsetof(laci_powersgd, interval),
     .default_value = "1000",
     .min = 1,
     .max = UINT32_MAX,
     .help = "rounds after which to choose between `rank` and `high`"},
    {0},
};

static lac_status powersgd_configure(void *state, const laci_worker *w)
{
    const laci_powersgd *const s = state;
    (void)w;
    if (s->alternating && s->iterations > 1) {
        return lac_fail(
            LAC_ERR_INVALID,
            "powersgd: iterations is %u with alternating=yes, expected 1",
            s->iterations);
    }
    if (s->high > 0 && s->high < s->rank) {
        return lac_fail(
            LAC_ERR_INVALID,
            "powersgd: high is %u with rank=%u, expected at least that, or 0",
            s->high, s->rank);
    }
    return LAC_OK;
}

static bool powersgd_folds(const void *state, size_t n, lac_shape folded)
{
    const laci_powersgd *const s = state;
    const size_t rank = laci_powersgd_rank(s, folded);
    return s->fold && rank > 0 && rank * (folded.rows + folded.cols) < n;
}

static size_t powersgd_sum_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    const laci_powersgd *const s = state;
    const lac_shape shape = laci_tensor_shape(w, tensor);
    const size_t n = lac_shape_values(shape);
    const size_t rank = laci_powersgd_rank(s, shape);
    const size_t larger = shape.rows > shape.cols ? shape.rows : shape.cols;
    const size_t factors = rank * (shape.rows + shape.cols + larger);
    return rank == 0 || (s->start_iteration > 0 && n > factors) ? n : factors;
}

// The floats of tensors: of P, which begin the first sum, of tensors that are
// summed uncompressed, which follow, of Q in the second sum, and of copies of
// a worker's own part.
typedef struct floats {
    size_t factors;
    size_t raw;
    size_t second;
    size_t local;
} floats;

// A round: the settings, and the floats of all its items.
typedef struct sums {
    const laci_powersgd *settings;
    const laci_round *round;
    floats all;
} sums;

static size_t first_n(const sums *s)
{
    return s->all.factors + s->all.raw;
}

static float *second_of(const sums *s)
{
    return s->round->sums + first_n(s) + LACI_SUM_NOTES;
}

static size_t step_rank(
    const laci_powersgd *s, const laci_round *round, const laci_item *item)
{
    if (round->number < s->start_iteration) {
        return 0;
    }
    return item->fields == NULL ? laci_powersgd_rank(s, item->shape)
                                : laci_powersgd_rank_now(s, item);
}

// Adds the floats of an item.
static void count_step(floats *at, const laci_powersgd_step *t)
{
    const size_t first = laci_powersgd_first(t);
    const size_t second = laci_powersgd_second(t);
    if (t->rank == 0) {
        at->raw += first;
        return;
    }
    at->factors += first;
    at->second += second;
    at->local += t->settings->alternating ? first : second;
}

// Returns the step of an item whose parts of the sums begin `at`.
static laci_powersgd_step step_at(
    const sums *s, const laci_item *item, const floats *at)
{
    const size_t rank = step_rank(s->settings, s->round, item);
    float *const first = s->round->sums;
    return (laci_powersgd_step){
        .settings = s->settings,
        .round = s->round,
        .item = item,
        .rank = rank,
        .first = first + (rank > 0 ? at->factors : s->all.factors + at->raw),
        .second = second_of(s) + at->second,
        .local = second_of(s) + s->all.second + at->local,
    };
}

// A visit of items that threads share, each some of them in a row.
typedef struct powersgd_loop {
    const sums *sums;
    lac_status (*visit)(const laci_powersgd_step *t);
    atomic_int failure; // the status of one that failed
} powersgd_loop;

// Visits the items that begin among the values [first, first + n) of the round.
static void visit_share(void *context, size_t first, size_t n)
{
    powersgd_loop *const l = context;
    const laci_round *const round = l->sums->round;
    floats at = {0};
    size_t start = 0;
    for (size_t i = 0; i < round->count && start < first + n; i++) {
        const laci_powersgd_step t = step_at(l->sums, &round->items[i], &at);
        const lac_status status =
            start < first || round->items[i].n == 0 ? LAC_OK : l->visit(&t);
        if (status != LAC_OK) {
            atomic_store(&l->failure, (int)status);
        }
        count_step(&at, &t);
        start += round->items[i].n;
    }
}

// Calls `visit` for every item of the round that has values. It reports a
// failure without a message.
static lac_status share_steps(
    const sums *s, lac_status (*visit)(const laci_powersgd_step *t))
{
    powersgd_loop l = {.sums = s, .visit = visit};
    size_t n = 0;
    for (size_t i = 0; i < s->round->count; i++) {
        n += s->round->items[i].n;
    }
    laci_pool_run(s->round->worker->pool, n, 1, visit_share, &l);
    return (lac_status)atomic_load(&l.failure);
}

// Calls `visit` for every item of the round, in order, until it fails.
static lac_status for_each_step(
    const sums *s, lac_status (*visit)(const laci_powersgd_step *t))
{
    floats at = {0};
    for (size_t i = 0; i < s->round->count; i++) {
        const laci_powersgd_step t = step_at(s, &s->round->items[i], &at);
        LAC_TRY(visit(&t));
        count_step(&at, &t);
    }
    return LAC_OK;
}

static sums sums_of(const laci_powersgd *settings, const laci_round *round)
{
    sums s = {.settings = settings, .round = round};
    floats all = {0};
    for (size_t i = 0; i < round->count; i++) {
        const laci_powersgd_step t = step_at(&s, &round->items[i], &all);
        count_step(&all, &t);
    }
    s.all = all;
    return s;
}

static bool step_finite(const laci_powersgd_step *t, const float *x, size_t n)
{
    return laci_all_finite(t->round->worker->kernels, x, n);
}

static bool powersgd_accepts(
    const void *state, const laci_round *round, size_t i)
{
    const laci_item *const item = &round->items[i];
    const laci_powersgd_step t = {
        .settings = state,
        .round = round,
        .item = item,
        .rank = step_rank(state, round, item),
    };
    return laci_powersgd_accepts(&t);
}

// Writes the item's part of the first sum. A product of S that is not large
// shows that S is not either; only a large one needs a look at S itself.
// Returns LACI_SCAN if S is not finite or too large.
static lac_status begin_step(const laci_powersgd_step *t)
{
    const laci_item *const item = t->item;
    if (t->rank > 0) {
        laci_powersgd_multiply_first(t);
    } else if (item->n > 0) {
        memcpy(t->first, item->in, item->n * sizeof(*item->in));
    }
    return laci_powersgd_max(t, t->first, laci_powersgd_first(t)) <
                       SUSPICIOUS ||
                   laci_powersgd_accepts(t)
               ? LAC_OK
               : LACI_SCAN;
}

// All workers check the same numbers, and overflow alike.
static lac_status check_range(
    const laci_powersgd_step *t, const float *x, size_t n)
{
    if (!step_finite(t, x, n)) {
        return lac_fail(
            LACI_OVERFLOW,
            "powersgd: the factors of %s are more than a float holds",
            t->item->name);
    }
    return LAC_OK;
}

// Of a tensor that was summed uncompressed.
static lac_status check_raw(const laci_powersgd_step *t)
{
    const laci_round *const round = t->round;
    return t->rank > 0 || step_finite(t, t->first, t->item->n)
               ? LAC_OK
               : laci_nonfinite_overflows(
                     round, (size_t)(t->item - round->items));
}

static lac_status check_first(const laci_powersgd_step *t)
{
    return t->rank == 0 ? LAC_OK
                        : check_range(t, t->first, laci_powersgd_first(t));
}

static lac_status turn_step(const laci_powersgd_step *t)
{
    if (t->rank > 0) {
        laci_powersgd_multiply_second(t);
    }
    return LAC_OK;
}

static lac_status check_second(const laci_powersgd_step *t)
{
    return t->rank == 0 ? LAC_OK
                        : check_range(t, t->second, laci_powersgd_second(t));
}

static lac_status finish_step(const laci_powersgd_step *t)
{
    const laci_worker *const w = t->round->worker;
    if (t->rank > 0) {
        laci_powersgd_finish(t);
    } else {
        w->kernels->gossip->scale(
            (float)(1.0 / w->world), t->first, t->item->out, t->item->n);
    }
    return LAC_OK;
}

// Not shared among threads: each finds its items by the ranks of those before.
static lac_status powersgd_choose(const laci_powersgd_step *t)
{
    if (t->rank > 0) {
        laci_powersgd_choose(t);
    }
    return LAC_OK;
}

static lac_status again_step(const laci_powersgd_step *t)
{
    if (t->rank > 0) {
        laci_powersgd_multiply_again(t);
    }
    return LAC_OK;
}

// Sums Q of all matrices, the product with P; then P again and Q, for each
// iteration after the first.
static lac_status sum_factors(const sums *s)
{
    const laci_round *const round = s->round;
    uint32_t phase = 1;
    for (uint32_t i = 0; i < s->settings->iterations; i++) {
        if (i > 0) {
            LAC_TRY(share_steps(s, again_step));
            LAC_TRY(laci_group_sum(
                round->group, round->number, phase++, round->sums,
                s->all.factors, 0));
            LAC_TRY(for_each_step(s, check_first));
        }
        LAC_TRY(share_steps(s, turn_step));
        LAC_TRY(laci_group_sum(
            round->group, round->number, phase++, second_of(s), s->all.second,
            0));
        LAC_TRY(for_each_step(s, check_second));
    }
    return LAC_OK;
}

// The status of the first sum, of P and of tensors uncompressed.
static lac_status check_sum(const sums *s, lac_status status)
{
    if (status == LACI_OVERFLOW) { // with a message that names no tensor
        LAC_TRY(for_each_step(s, check_raw));
    } else {
        LAC_TRY(status);
    }
    LAC_TRY(for_each_step(s, check_first));
    return status;
}

static lac_status powersgd_reduce(void *state, laci_round *round)
{
    const sums s = sums_of(state, round);
    LAC_TRY(share_steps(&s, begin_step));
    LAC_TRY(check_sum(&s, laci_nonfinite_sum(round, round->sums, first_n(&s))));
    if (s.all.second > 0 && !s.settings->alternating) {
        LAC_TRY(sum_factors(&s));
    }
    LAC_TRY(share_steps(&s, finish_step));
    return s.settings->high > 0 ? for_each_step(&s, powersgd_choose) : LAC_OK;
}

// The floats of a round that compresses, from shapes alone. Its number has the
// parity of `parity`.
static floats listed_floats(
    const laci_powersgd *s, const laci_worker *w, uint64_t parity)
{
    const uint64_t start = s->start_iteration;
    const laci_round round = {
        .worker = w, .number = start + start % 2 + parity};
    floats all = {0};
    for (size_t i = 0; i < lac_layout_count(w->layout); i++) {
        const laci_item item = {
            .shape = laci_tensor_shape(w, i), .n = laci_tensor_values(w, i)};
        const laci_powersgd_step t = {
            s, &round, &item, .rank = step_rank(s, &round, &item)};
        count_step(&all, &t);
    }
    all.second = s->alternating ? 0 : all.second;
    return all;
}

static void powersgd_cost(
    const void *state, const laci_worker *w, lac_cost *out)
{
    const laci_powersgd *const s = state;
    double sent = 0;
    uint32_t messages = 1;
    for (uint64_t parity = 0; parity < 2; parity++) {
        const floats all = listed_floats(s, w, parity);
        sent += (double)all.raw +
                (double)s->iterations * (double)(all.factors + all.second);
        messages = all.second > 0 ? 2 * s->iterations : 1;
    }
    out->payload_bytes = sent * (double)sizeof(float) / 2;
    out->messages = messages;
    out->phases = messages;
}

static void powersgd_exchanges(
    const void *state, const laci_worker *w, laci_listing *out)
{
    const laci_powersgd *const s = state;
    const floats all = listed_floats(s, w, out->round);
    if (s->high > 0) { // the listed rank is the larger one
        out->flags |= LAC_EXCHANGE_BOUND;
    }
    laci_nonfinite_list_sum(out, all.factors + all.raw);
    for (uint32_t i = 0; all.second > 0 && i < s->iterations; i++) {
        if (i > 0) {
            laci_list_sum(out, all.factors);
        }
        laci_list_sum(out, all.second);
    }
}

static uint32_t powersgd_period(const void *state, const laci_worker *w)
{
    const laci_powersgd *const s = state;
    (void)w;
    return s->alternating ? 2 : 1;
}

const laci_algorithm_ops laci_powersgd_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "powersgd",
    .plugin.summary = "factors of low rank by the power method, error feedback",
    .plugin.example = "powersgd:rank=4",
    .plugin.params = powersgd_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(laci_powersgd),
    .family = LAC_FAMILY_GRADIENT,
    .late = "interval",
    .finds_nonfinite = true,
    .accepts = powersgd_accepts,
    .folds = powersgd_folds,
    .configure = powersgd_configure,
    .plan = laci_powersgd_plan,
    .sum_bound = powersgd_sum_bound,
    .reduce = powersgd_reduce,
    .cost = powersgd_cost,
    .exchanges = powersgd_exchanges,
    .period = powersgd_period,
};
