// SPDX-License-Identifier: MIT
// The exact mean over all workers, the baseline of the gradient family: one sum
// of all tensors of a call, divided by the number of workers.
//
// Calls of more than 16 KiB use the transport's own all-reduce if it has one,
// which is up to twice as fast. All workers still get the same bits, but the
// last of them may depend on the grouping of tensors into calls.
#include <string.h>

#include "algorithm/framework/round.h"
#include "kernels/gossip.h"

static void allreduce_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state, (void)w, (void)tensor, (void)plan;
}

static size_t allreduce_sum_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    (void)state;
    return laci_tensor_values(w, tensor);
}

// A place in the values of all items, one item after the other.
typedef struct cursor {
    size_t item;
    size_t start; // of this item
} cursor;

// The items of a round as a stream.
typedef struct stream_state {
    const laci_round *round;
    cursor loads;
    cursor stores;
} stream_state;

// Moves the cursor to the item of value `at`. `*n` values follow there, at most
// as many as before.
static const laci_item *seek(
    const laci_round *round, cursor *c, size_t at, size_t *n)
{
    while (at < c->start) {
        c->item--;
        c->start -= round->items[c->item].n;
    }
    while (at - c->start >= round->items[c->item].n) {
        c->start += round->items[c->item].n;
        c->item++;
    }
    const laci_item *const item = &round->items[c->item];
    const size_t left = c->start + item->n - at;
    *n = *n < left ? *n : left;
    return item;
}

static void load_items(void *context, size_t at, size_t n, void *x_out)
{
    stream_state *const s = context;
    float *x = x_out;
    while (n > 0) {
        size_t now = n;
        const laci_item *const item = seek(s->round, &s->loads, at, &now);
        memcpy(x, item->in + (at - s->loads.start), now * sizeof(float));
        x += now;
        at += now;
        n -= now;
    }
}

static void store_items(void *context, size_t at, size_t n, const void *sums)
{
    stream_state *const s = context;
    const float *x = sums;
    const laci_worker *const w = s->round->worker;
    while (n > 0) {
        size_t now = n;
        const laci_item *const item = seek(s->round, &s->stores, at, &now);
        w->kernels->gossip->scale(
            (float)(1.0 / w->world), x, item->out + (at - s->stores.start),
            now);
        x += now;
        at += now;
        n -= now;
    }
}

static size_t round_values(const laci_round *round)
{
    size_t n = 0;
    for (size_t i = 0; i < round->count; i++) {
        n += round->items[i].n;
    }
    return n;
}

// A sum that is streamed has no copy of the values. The others are summed in
// round->sums.
static lac_status allreduce_reduce(void *state, laci_round *round)
{
    (void)state;
    const size_t n = round_values(round);
    stream_state s = {.round = round};
    if (laci_group_streams(round->group, &laci_number_f32, n)) {
        const laci_stream stream = {
            &laci_number_f32, &s, load_items, store_items};
        return laci_nonfinite_stream(round, &stream, n);
    }
    load_items(&s, 0, n, round->sums);
    LAC_TRY(laci_nonfinite_sum(round, round->sums, n));
    store_items(&s, 0, n, round->sums);
    return LAC_OK;
}

static void allreduce_cost(
    const void *state, const laci_worker *w, lac_cost *out)
{
    (void)state;
    out->payload_bytes =
        (double)lac_layout_values(w->layout) * (double)sizeof(float);
    out->messages = 1;
    out->phases = 1;
}

const laci_algorithm_ops laci_allreduce_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "allreduce",
    .plugin.summary = "the exact mean over all workers",
    .plugin.param_size = sizeof(lac_param),
    .family = LAC_FAMILY_GRADIENT,
    .baseline = true,
    .native_sums = true,
    .streams_sums = true,
    .plan = allreduce_plan,
    .sum_bound = allreduce_sum_bound,
    .reduce = allreduce_reduce,
    .cost = allreduce_cost,
};
