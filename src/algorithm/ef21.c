// SPDX-License-Identifier: MIT
// EF21 (Richtárik, Sokolov, Fatkhullin, arXiv:2106.05203) and, with momentum,
// EF21-SGDM (Fatkhullin, Tyurin, Richtárik, arXiv:2305.15155): every worker
// sends the compressed difference between its gradient and the estimate that
// the others have of it.
//
//     v_i = momentum v_i + (1 - momentum) g_i
//     c_i = C(v_i - G_i), sent;  G_i += c_i;  result = G += mean of all c_k
//
// so that G is always the mean of the estimates G_i. If gradients settle, the
// differences and with them the error vanish, also where the workers' gradients
// differ; error feedback stops at a distance in proportion to the step. With
// noise in the gradients that is turned around, unless the momentum averages
// it. Any compressor works, in its contractive form.
//
// A tensor starts with v_i = G_i = g_i, and G is their mean, by an exact sum. A
// worker without estimate, in the first round or after it has loaded the state
// of another worker, sends an empty payload, and all workers then start again.
//
// An estimate may exceed the gradients that it follows, so that those above
// 2^64 count as an overflow.
#include <string.h>

#include "algorithm/framework/round.h"
#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/vector.h"

// The fields of a tensor: G_i, G, whether they are valid, and v_i where there
// is a momentum.
enum { ESTIMATE, MEAN, STARTED, MOMENTUM };

enum { PHASE_START = 1 };

#define LARGEST 0x1p64f

typedef struct ef21 {
    double momentum;
} ef21;

static const lac_param ef21_params[] = {
    {.name = "momentum",
     .type = LAC_PARAM_F64,
     .offset = offsetof(ef21, momentum),
     .default_value = "0",
     .min = 0,
     .max = 1,
     .help = "the part of the momentum that stays in a round; below 1"},
    {0},
};

static lac_status ef21_configure(void *state, const laci_worker *w)
{
    const ef21 *const settings = state;
    (void)w;
    if (settings->momentum >= 1) {
        return lac_fail(LAC_ERR_INVALID, "ef21: momentum is 1, expected less");
    }
    return LAC_OK;
}

static void ef21_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    const ef21 *const settings = state;
    const size_t n = laci_tensor_values(w, tensor);
    laci_plan_own(plan, "estimate", n);
    laci_plan_shared(plan, "mean-estimate", n);
    laci_plan_own(plan, "started", n > 0);
    if (settings->momentum > 0) {
        laci_plan_own(plan, "momentum", n);
    }
}

static size_t ef21_message_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    (void)state;
    return laci_tensor_bound(w, w->compressor, tensor, LAC_SCOPE_WORKER);
}

static size_t ef21_sum_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    (void)state;
    return laci_tensor_values(w, tensor);
}

static bool ef21_accepts(const void *state, const laci_round *round, size_t i)
{
    (void)state;
    return round->items[i].max_magnitude <= LARGEST;
}

static bool has_started(const laci_item *item)
{
    return item->n == 0 || item->fields[STARTED].values[0] != 0;
}

// Writes v after this round to `out`, which may be the field itself.
static void ef21_move_momentum(
    const ef21 *settings, const laci_round *round, size_t i, float *out)
{
    const laci_item *const item = &round->items[i];
    round->worker->kernels->gossip->combine(
        (float)settings->momentum, item->fields[MOMENTUM].values,
        (float)(1 - settings->momentum), item->in, NULL, out, item->n);
}

// Encodes v - G_i of an item.
static void ef21_put(
    const ef21 *settings, laci_round *round, size_t i, laci_writer *message)
{
    const laci_worker *const w = round->worker;
    const laci_item *const item = &round->items[i];
    const lac_scope scope = lac_scope_worker(w->rank);
    const float *v = item->in;
    if (!has_started(item)) {
        laci_put_nothing(round, w->compressor, scope, i, message);
        return;
    }
    if (settings->momentum > 0) {
        ef21_move_momentum(settings, round, i, round->scratch);
        v = round->scratch;
    }
    w->kernels->gossip->subtract(
        v, item->fields[ESTIMATE].values, round->scratch, item->n);
    laci_put(round, w->compressor, scope, i, round->scratch, message);
}

// Returns whether some worker has no estimate.
static bool must_start(const laci_round *round, size_t i)
{
    for (uint32_t k = 0; k < round->worker->world; k++) {
        if (laci_view_omitted(round, laci_received(round, k, i), i)) {
            return true;
        }
    }
    return false;
}

// Writes to round->sums the gradients of the items that start, `*first_out`
// floats, and after them the mean difference of each other item. Payloads that
// arrived are gone after the next exchange.
static void ef21_collect(const laci_round *round, size_t *first_out)
{
    const float share = (float)(1.0 / round->worker->world);
    float *next = round->sums;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        if (must_start(round, i)) {
            memcpy(next, item->in, item->n * sizeof(*next));
            next += item->n;
        }
    }
    *first_out = (size_t)(next - round->sums);
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        if (!must_start(round, i)) {
            memset(next, 0, item->n * sizeof(*next));
            for (uint32_t k = 0; k < round->worker->world; k++) {
                laci_view_add(laci_received(round, k, i), share, next);
            }
            next += item->n;
        }
    }
}

static void start_item(
    const ef21 *settings, const laci_round *round, size_t i, const float *sum)
{
    const laci_item *const item = &round->items[i];
    const size_t size = item->n * sizeof(float);
    memcpy(item->fields[ESTIMATE].values, item->in, size);
    if (settings->momentum > 0) {
        memcpy(item->fields[MOMENTUM].values, item->in, size);
    }
    item->fields[STARTED].values[0] = 1;
    round->worker->kernels->gossip->scale(
        (float)(1.0 / round->worker->world), sum, item->fields[MEAN].values,
        item->n);
}

static void move_item(
    const ef21 *settings, const laci_round *round, size_t i,
    const float *difference)
{
    const laci_item *const item = &round->items[i];
    if (settings->momentum > 0) {
        ef21_move_momentum(settings, round, i, item->fields[MOMENTUM].values);
    }
    laci_view_add(laci_sent(round, i), 1, item->fields[ESTIMATE].values);
    round->worker->kernels->vector->add(
        difference, item->fields[MEAN].values, item->n);
}

// Updates the state from round->sums and writes the results.
static void ef21_finish(
    const ef21 *settings, const laci_round *round, size_t first_n)
{
    const float *sum = round->sums, *difference = round->sums + first_n;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        if (must_start(round, i)) {
            start_item(settings, round, i, sum);
            sum += item->n;
        } else {
            move_item(settings, round, i, difference);
            difference += item->n;
        }
        round->worker->kernels->gossip->apply(
            item->fields[MEAN].values, NULL, item->out, item->n);
    }
}

static lac_status ef21_reduce(void *state, laci_round *round)
{
    const laci_worker *const w = round->worker;
    laci_writer *const message = laci_nonfinite_message(round, 0);
    size_t first_n;
    for (size_t i = 0; i < round->count; i++) {
        ef21_put(state, round, i, message);
    }
    LAC_TRY(laci_nonfinite_gather(round));
    LAC_TRY(laci_take_some(round, w->compressor, w->world));
    ef21_collect(round, &first_n);
    if (first_n > 0) {
        LAC_TRY(laci_group_sum(
            round->group, round->number, PHASE_START, round->sums, first_n, 0));
        LAC_TRY(laci_nonfinite_later(round));
    }
    ef21_finish(state, round, first_n);
    return LAC_OK;
}

static void ef21_cost(const void *state, const laci_worker *w, lac_cost *out)
{
    for (size_t t = 0; t < lac_layout_count(w->layout); t++) {
        out->payload_bytes += (double)ef21_message_bound(state, w, t);
    }
    out->messages = 1;
    out->phases = 1;
}

static void ef21_exchanges(
    const void *state, const laci_worker *w, laci_listing *out)
{
    (void)state;
    laci_list_compressor(out, w->compressor, LAC_SCOPE_WORKER);
    laci_nonfinite_list_gather(
        out, laci_body_size(w, w->compressor, LAC_SCOPE_WORKER));
}

const laci_algorithm_ops laci_ef21_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "ef21",
    .plugin.summary = "compressed differences to estimates of the gradients",
    .plugin.example = "ef21:momentum=0.9 natural",
    .plugin.params = ef21_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(ef21),
    .family = LAC_FAMILY_GRADIENT,
    .takes_compressor = true,
    .form = LAC_FORM_CONTRACTIVE,
    .scratch = true,
    .accepts = ef21_accepts,
    .configure = ef21_configure,
    .plan = ef21_plan,
    .message_bound = ef21_message_bound,
    .sum_bound = ef21_sum_bound,
    .reduce = ef21_reduce,
    .cost = ef21_cost,
    .exchanges = ef21_exchanges,
};
