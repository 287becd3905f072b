// SPDX-License-Identifier: MIT
// Local steps with an outer optimiser: workers take any number of steps of
// their own between two rounds, and a round treats the way that they have come
// since the last one as a gradient. With phi the anchor, the model after the
// last round, and x the model now, with the local step of this round added,
//
//     D = phi - mean of x             inner is a gradient algorithm
//     D = phi - gossip of x           inner is a model algorithm
//     m = momentum m + D
//     phi -= lr (D + momentum m)      Nesterov's form, as in PyTorch
//     phi -= lr m                     with nesterov=no
//     x = phi
//
// A gradient algorithm averages phi - x, which it may compress. With the
// defaults this is DiLoCo (Douillard et al., arXiv:2311.08105), with lr=1 and
// momentum=0 local SGD, and with inner=(dpsgd), nesterov=no and random
// matchings NoLoCo (arXiv:2506.10911): its two vectors become one where both of
// its coefficients are lr.
//
// Streaming (Douillard et al., arXiv:2501.18512): the tensors are divided into
// fragments, each of which has rounds of its own, and the result of an exchange
// is used only after some more local steps, so that computation can hide it.
// With a delay, begin exchanges x, which D is computed from, and end makes the
// outer step when x has become y. It keeps the part alpha of the local model:
//
//     x = phi + alpha (y - phi) + update
//
// Without a delay y is x, with the update in it. How to divide the tensors, and
// how many steps to make from begin to end, are the caller's decisions: the
// settings fragments and delay are for lac_algorithm_cost. But any delay above
// 0 moves the exchange from end to begin.
//
// With a gradient algorithm all workers have the same anchor. If they start
// from different values, they begin with the exact mean of them. Whether they
// do, hashes of the values show.
//
// Stability without local steps. On a fixed graph the disagreement in the
// direction of an eigenvalue 1 - c of W is multiplied by c in D. It vanishes if
// lr c < 2 (1 + momentum) / (1 + 2 momentum), or 2 (1 + momentum) with
// nesterov=no; the same holds for c = 1 - (1 - eta lambda)^H of H local steps
// on a quadratic. On random matchings I - W is a random projection P, and with
// u the disagreement of phi, E|Pu|^2 = p |u|^2 and E<Pu, m> = p <u, m>. So
// E|u|^2, E<u, m> and E|m|^2 obey a linear recursion of their own. It preserves
// the cone of covariances, so its largest eigenvalue is real, and it reaches 1
// where the determinant of the recursion minus I vanishes. With g = lr and
// a = momentum this is at
//
//     a p (1 + 2a) g^2 + (1 + a - 2 a p (1 + 2a)) g = 2 (1 - a^2)
//     g = 2 (1 - a^2) / (1 + a - 2 a p)        with nesterov=no
//
// Steps from there on are refused. With an alpha above 0 the recursion is
// another one, and no step is refused.
//
// Over choco and deepsqueeze, momentum amplifies the steps towards values that
// follow late, by up to lr / (1 - momentum). Their gamma must be smaller by
// about as much: gamma=auto finds one, and another that is too large is refused
// at the start, see shared/gamma.c.
#include <math.h>
#include <string.h>

#include "algorithm/framework/inner.h"
#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/hash.h"
#include "kernels/vector.h"
#include "topology/topology.h"

// The fields of a tensor. With a delay ARRIVED holds the result of an exchange
// from begin to end; MIXED is working memory for a model algorithm.
enum { ANCHOR, MOMENTUM, ARRIVED, MIXED };

enum { FRAGMENTS_MAX = 1024, DELAY_MAX = 1000000 };

// A hash is compared as digits that are exact in a float: each with its
// complement, since the largest of both shows whether all workers have one
// value.
enum { HASH_DIGITS = 4, DIGIT_BITS = 16, HASH_NOTES = 2 * HASH_DIGITS };
static const uint32_t digit_max = (1U << DIGIT_BITS) - 1;

enum { PHASE_HASH, PHASE_MEAN };

typedef struct outer {
    const char *inner;
    double lr;
    double momentum;
    bool nesterov;
    uint32_t fragments;
    uint32_t delay;
    double alpha;
} outer;

static const lac_param outer_params[] = {
    {.name = "inner",
     .type = LAC_PARAM_SPEC,
     .offset = offsetof(outer, inner),
     .default_value = "allreduce",
     .help = "the algorithm that averages, in parentheses"},
    {.name = "lr",
     .type = LAC_PARAM_F64,
     .offset = offsetof(outer, lr),
     .default_value = "0.7",
     .min = 0,
     .max = 4,
     .above_min = true,
     .help = "the outer learning rate; limited on random matchings"},
    {.name = "momentum",
     .type = LAC_PARAM_F64,
     .offset = offsetof(outer, momentum),
     .default_value = "0.9",
     .min = 0,
     .max = 1,
     .help = "the outer momentum, below 1; limits the gamma of choco"},
    {.name = "nesterov",
     .type = LAC_PARAM_BOOL,
     .offset = offsetof(outer, nesterov),
     .default_value = "yes",
     .help = "Nesterov's momentum, or heavy ball"},
    {.name = "fragments",
     .type = LAC_PARAM_U32,
     .offset = offsetof(outer, fragments),
     .default_value = "1",
     .min = 1,
     .max = FRAGMENTS_MAX,
     .help = "groups of tensors that are exchanged in turn, in train"},
    {.name = "delay",
     .type = LAC_PARAM_U32,
     .offset = offsetof(outer, delay),
     .default_value = "0",
     .min = 0,
     .max = DELAY_MAX,
     .help = "local steps from an exchange to its use, in train"},
    {.name = "alpha",
     .type = LAC_PARAM_F64,
     .offset = offsetof(outer, alpha),
     .default_value = "0",
     .min = 0,
     .max = 1,
     .help = "the part of the local model that stays; below 1"},
    {0},
};

static const char *outer_inner(const void *state)
{
    const outer *const settings = state;
    return settings->inner;
}

// Returns whether begin makes the exchange.
static bool outer_holds(const void *state)
{
    const outer *const settings = state;
    return settings->delay > 0;
}

static bool averages(const laci_worker *w)
{
    return lac_algorithm_family(w->inner) == LAC_FAMILY_GRADIENT;
}

// The step from which on rounds with this p do not converge.
static double step_bound(const outer *s, double p)
{
    const double a = s->momentum;
    const double free = 2 * (1 - a * a);
    if (!s->nesterov) {
        return free / (1 + a - 2 * a * p);
    }
    const double square = a * p * (1 + 2 * a);
    const double linear = 1 + a - 2 * square;
    const double root = sqrt(linear * linear + 4 * square * free);
    // The positive root, in the form that does not cancel.
    return linear > 0 ? 2 * free / (linear + root)
                      : (root - linear) / (2 * square);
}

static lac_status check_step(const outer *s, const laci_worker *w)
{
    const double p = laci_topology_mean_gap(w->topology);
    const double rate = laci_inner_gossip_rate(w);
    if (p == 0 || rate == 0) {
        return LAC_OK;
    }
    const double bound = step_bound(s, p) / rate;
    if (s->lr < bound) {
        return LAC_OK;
    }
    return lac_fail(
        LAC_ERR_INVALID,
        "outer: lr is %g, expected less than %.4g: with momentum=%g, "
        "nesterov=%s and random matchings of %u workers, larger steps diverge",
        s->lr, bound, s->momentum, s->nesterov ? "yes" : "no", w->world);
}

static lac_status outer_configure(void *state, const laci_worker *w)
{
    const outer *const settings = state;
    if (settings->momentum >= 1) {
        return lac_fail(LAC_ERR_INVALID, "outer: momentum is 1, expected less");
    }
    if (settings->alpha >= 1) {
        return lac_fail(
            LAC_ERR_INVALID,
            "outer: alpha is 1, expected less: the workers would never use "
            "the result of an exchange");
    }
    if (lac_algorithm_takes_update(w->inner)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "outer: inner is %.60s, whose state follows a model that only its "
            "own rounds change, expected another algorithm",
            settings->inner);
    }
    laci_inner_set_step(
        w, (laci_outer_step){
               settings->lr, settings->momentum, settings->nesterov,
               settings->alpha});
    return averages(w) || settings->alpha > 0 ? LAC_OK
                                              : check_step(settings, w);
}

static void outer_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    const size_t n = laci_tensor_values(w, tensor);
    laci_plan_own(plan, "anchor", n);
    laci_plan_own(plan, "momentum", n);
    if (outer_holds(state)) {
        laci_plan_own(plan, "arrived", n);
    } else {
        laci_plan_working(plan, 0);
    }
    if (!averages(w)) {
        laci_plan_working(plan, n);
    }
}

// A gradient algorithm averages in the memory of the sum, and compares hashes
// there at the start.
static size_t outer_sum_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    (void)state;
    const size_t n = laci_tensor_values(w, tensor);
    return !averages(w) ? 0 : n < HASH_NOTES ? HASH_NOTES : n;
}

// Points the slices of the inner algorithm's round at working memory, which
// they replace.
static void outer_set_slices(laci_round *round)
{
    float *next = round->sums;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        float *const x =
            averages(round->worker) ? next : item->fields[MIXED].values;
        round->slices[i] = (lac_slice){item->tensor, LAC_F32, x, x};
        next += averages(round->worker) ? item->n : 0;
    }
}

static size_t values_of(const laci_round *round)
{
    size_t n = 0;
    for (size_t i = 0; i < round->count; i++) {
        n += round->items[i].n;
    }
    return n;
}

// Whether all workers start from the same values.
static lac_status compare_start(const laci_round *round, bool *equal_out)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        const uint64_t pair[] = {
            hash, laci_hash(item->in, item->n * sizeof(*item->in))};
        hash = laci_hash(pair, sizeof(pair));
    }
    float *const notes = round->sums;
    for (size_t i = 0; i < HASH_DIGITS; i++) {
        const uint32_t digit = (uint32_t)(hash >> (DIGIT_BITS * i)) & digit_max;
        notes[2 * i] = (float)digit;
        notes[2 * i + 1] = (float)(digit_max - digit);
    }
    LAC_TRY(laci_group_max(round->group, 0, PHASE_HASH, notes, 0, HASH_NOTES));
    *equal_out = true;
    for (size_t i = 0; i < HASH_DIGITS; i++) {
        *equal_out &= notes[2 * i] + notes[2 * i + 1] == (float)digit_max;
    }
    return LAC_OK;
}

// Replaces the values in the slices by their exact mean over all workers.
static lac_status average_start(laci_round *round)
{
    const laci_worker *const w = round->worker;
    const size_t n = values_of(round);
    LAC_TRY(laci_group_sum(round->group, 0, PHASE_MEAN, round->sums, n, 0));
    w->kernels->gossip->scale(
        (float)(1.0 / w->world), round->sums, round->sums, n);
    return laci_all_finite(w->kernels, round->sums, n)
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_INVALID,
                     "outer: the sum of the values of all workers overflows");
}

static lac_status outer_start(void *state, laci_round *round)
{
    (void)state;
    const laci_worker *const w = round->worker;
    bool equal = false;
    if (averages(w)) {
        LAC_TRY(compare_start(round, &equal));
    }
    outer_set_slices(round);
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        w->kernels->gossip->apply(
            item->in, NULL, round->slices[i].out, item->n);
    }
    if (!averages(w)) {
        LAC_TRY(lac_algorithm_start(w->inner, round->slices, round->count));
    } else if (!equal) {
        LAC_TRY(average_start(round));
    }
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        float *const momentum = item->fields[MOMENTUM].values;
        w->kernels->gossip->apply(
            round->slices[i].out, NULL, item->fields[ANCHOR].values, item->n);
        memset(momentum, 0, item->n * sizeof(*momentum));
    }
    return LAC_OK;
}

// Writes what the inner algorithm averages to its slice: x, or phi - x, with
// the local step unless it comes after the round.
static lac_status outer_put_values(laci_round *round, size_t i, bool late)
{
    const laci_worker *const w = round->worker;
    const laci_item *const item = &round->items[i];
    float *const x = round->slices[i].out;
    w->kernels->gossip->apply(item->in, late ? NULL : item->update, x, item->n);
    if (averages(w)) {
        w->kernels->gossip->subtract(
            item->fields[ANCHOR].values, x, x, item->n);
    }
    return laci_all_finite(w->kernels, x, item->n)
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_INVALID,
                     "%s: worker %u has values in %s that overflow in this "
                     "round",
                     w->algorithm, w->rank, item->name);
}

// Averages x, or phi - x, by the inner algorithm. The results are in the
// slices.
static lac_status outer_exchange(const outer *s, laci_round *round)
{
    const laci_worker *const w = round->worker;
    outer_set_slices(round);
    for (size_t i = 0; i < round->count; i++) {
        LAC_TRY(laci_group_abort_on_failure(
            round->group, outer_put_values(round, i, outer_holds(s))));
    }
    return averages(w)
               ? lac_algorithm_reduce(
                     w->inner, round->number, round->slices, round->count)
               : lac_algorithm_mix(
                     w->inner, round->number, round->slices, NULL,
                     round->count);
}

static lac_status outer_begin(void *state, laci_round *round)
{
    if (!outer_holds(state)) {
        return LAC_OK;
    }
    LAC_TRY(outer_exchange(state, round));
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        round->worker->kernels->gossip->apply(
            round->slices[i].out, NULL, item->fields[ARRIVED].values, item->n);
    }
    return LAC_OK;
}

// The outer step of one tensor. `x` holds D, or the gossip of x.
static void step_tensor(
    const outer *s, bool averaged, const float *x, const laci_item *item)
{
    const float lr = (float)s->lr, a = (float)s->momentum;
    float *const anchor = item->fields[ANCHOR].values;
    float *const momentum = item->fields[MOMENTUM].values;
    for (size_t i = 0; i < item->n; i++) {
        const float d = averaged ? x[i] : anchor[i] - x[i];
        const float m = a * momentum[i] + d;
        momentum[i] = m;
        anchor[i] -= lr * (s->nesterov ? d + a * m : m);
    }
}

// The new values of a tensor. The update is part of y only without a delay.
static void keep_part(const outer *s, const laci_item *item)
{
    const float alpha = (float)s->alpha;
    const float *const anchor = item->fields[ANCHOR].values;
    const bool late = outer_holds(s);
    for (size_t i = 0; i < item->n; i++) {
        const float update = item->update == NULL ? 0 : item->update[i];
        const float y = late ? item->in[i] : item->in[i] + update;
        const float x =
            alpha > 0 ? anchor[i] + alpha * (y - anchor[i]) : anchor[i];
        item->out[i] = late && item->update != NULL ? x + update : x;
    }
}

static lac_status outer_end(void *state, laci_round *round)
{
    const bool averaged = averages(round->worker);
    if (!outer_holds(state)) {
        LAC_TRY(outer_exchange(state, round));
    }
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        const float *const x = outer_holds(state) ? item->fields[ARRIVED].values
                                                  : round->slices[i].out;
        step_tensor(state, averaged, x, item);
        keep_part(state, item);
    }
    return LAC_OK;
}

static void outer_cost(const void *state, const laci_worker *w, lac_cost *out)
{
    const outer *const settings = state;
    laci_inner_cost(state, w, out);
    out->fragments = settings->fragments;
    out->delay = settings->delay;
}

const laci_algorithm_ops laci_outer_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "outer",
    .plugin.summary = "local steps, averaged by an outer optimiser (DiLoCo)",
    .plugin.example = "outer",
    .plugin.params = outer_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(outer),
    .family = LAC_FAMILY_MODEL,
    .takes_update = true,
    .inexact = true,
    .rescales = true,
    .groups = "fragments",
    .inner = outer_inner,
    .configure = outer_configure,
    .plan = outer_plan,
    .sum_bound = outer_sum_bound,
    .start = outer_start,
    .holds = outer_holds,
    .begin = outer_begin,
    .end = outer_end,
    .cost = outer_cost,
    .exchanges = laci_inner_exchanges,
};
