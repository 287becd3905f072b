// SPDX-License-Identifier: MIT
// The exact mean over all workers, the baseline of the gradient family: one sum
// of all tensors of a call, divided by the number of workers. Doubles are
// summed in double, in a second sum; values of all other dtypes in float.
//
// Calls of more than 16 KiB use the transport's own all-reduce if it has one,
// which is up to twice as fast. All workers still get the same bits, but the
// last of them may depend on the grouping of tensors into calls.
#include <string.h>

#include "algorithm/framework/dtype.h"
#include "algorithm/framework/round.h"
#include "kernels/gossip.h"

enum {
    PHASE_DOUBLES = 1,
    MEAN_BLOCK = 1024, // floats that are rounded at once
};

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

// A place in the values of a stream, one item after the other.
typedef struct cursor {
    size_t item;
    size_t start; // of this item
} cursor;

// The items of a round that are summed as numbers of one type, as a stream.
typedef struct stream_state {
    const laci_round *round;
    const laci_number *type;
    size_t n;
    bool streams; // otherwise they are summed in `sums`
    void *sums;
    cursor loads;
    cursor stores;
} stream_state;

// The values of an item in this stream. Those of the other one have none here.
static size_t stream_values(const stream_state *s, size_t item)
{
    const laci_item *const it = &s->round->items[item];
    const bool is_double = it->dtype == LAC_F64;
    return is_double == (s->type == &laci_number_f64) ? it->n : 0;
}

static stream_state allreduce_stream(
    const laci_round *round, const laci_number *type)
{
    stream_state s = {.round = round, .type = type};
    for (size_t i = 0; i < round->count; i++) {
        s.n += stream_values(&s, i);
    }
    s.streams = laci_group_streams(round->group, type, s.n);
    return s;
}

// Moves the cursor to the item of value `at`. `*n` values follow there, at most
// as many as before.
static const laci_item *seek(
    const stream_state *s, cursor *c, size_t at, size_t *n)
{
    while (at < c->start) {
        c->item--;
        c->start -= stream_values(s, c->item);
    }
    while (at - c->start >= stream_values(s, c->item)) {
        c->start += stream_values(s, c->item);
        c->item++;
    }
    const size_t left = c->start + stream_values(s, c->item) - at;
    *n = *n < left ? *n : left;
    return &s->round->items[c->item];
}

// Loads n values of the item, from `at` on: zeros if it is not finite.
static void load_values(
    const laci_worker *w, const laci_item *item, size_t at, void *x_out,
    size_t n)
{
    const bool is_double = item->dtype == LAC_F64;
    if (item->in != item->given) {
        memset(x_out, 0, n * (is_double ? sizeof(double) : sizeof(float)));
    } else if (is_double) {
        memcpy(x_out, (const double *)item->source + at, n * sizeof(double));
    } else {
        laci_dtype_load(w->kernels, item->dtype, item->source, at, x_out, n);
    }
}

static void load_items(void *context, size_t at, size_t n, void *x_out)
{
    stream_state *const s = context;
    uint8_t *x = x_out;
    while (n > 0) {
        size_t now = n;
        const laci_item *const item = seek(s, &s->loads, at, &now);
        load_values(s->round->worker, item, at - s->loads.start, x, now);
        x += now * s->type->size;
        at += now;
        n -= now;
    }
}

static void store_double_means(
    uint32_t world, const double *sums, double *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = sums[i] / world;
    }
}

static void store_float_means(
    const laci_worker *w, const laci_item *item, size_t at, const float *sums,
    size_t n)
{
    for (size_t done = 0; done < n;) {
        float means[MEAN_BLOCK];
        const size_t now = n - done < MEAN_BLOCK ? n - done : MEAN_BLOCK;
        w->kernels->gossip->scale(
            (float)(1.0 / w->world), sums + done, means, now);
        laci_dtype_store(
            w->kernels, item->dtype, means, item->target, at + done, now);
        done += now;
    }
}

// Writes the means of n sums to values of the item, from `at` on.
static void store_means(
    const laci_worker *w, const laci_item *item, size_t at, const void *sums,
    size_t n)
{
    if (item->dtype == LAC_F64) {
        store_double_means(w->world, sums, (double *)item->target + at, n);
    } else if (item->dtype == LAC_F32) {
        w->kernels->gossip->scale(
            (float)(1.0 / w->world), sums, (float *)item->target + at, n);
    } else {
        store_float_means(w, item, at, sums, n);
    }
}

static void store_items(void *context, size_t at, size_t n, const void *sums)
{
    stream_state *const s = context;
    const uint8_t *x = sums;
    while (n > 0) {
        size_t now = n;
        const laci_item *const item = seek(s, &s->stores, at, &now);
        store_means(s->round->worker, item, at - s->stores.start, x, now);
        x += now * s->type->size;
        at += now;
        n -= now;
    }
}

// Names the tensor of a sum that overflowed.
static lac_status name_overflow(stream_state *s, lac_status status)
{
    const size_t at = laci_group_nonfinite(s->round->group);
    size_t n = 1;
    if (status != LACI_OVERFLOW || at >= s->n) {
        return status;
    }
    const laci_item *const item = seek(s, &s->loads, at, &n);
    return laci_nonfinite_overflows(s->round, (size_t)(item - s->round->items));
}

// The first sum, which carries the count of non-finite tensors of all dtypes.
static lac_status sum_floats(stream_state *s)
{
    if (s->streams) {
        const laci_number_stream stream = {s->type, s, load_items, store_items};
        return laci_nonfinite_stream(s->round, &stream, s->n);
    }
    load_items(s, 0, s->n, s->sums);
    return laci_nonfinite_sum(s->round, s->sums, s->n);
}

static lac_status sum_doubles(stream_state *s)
{
    const laci_round *const r = s->round;
    if (s->streams) {
        const laci_number_stream stream = {s->type, s, load_items, store_items};
        LAC_TRY(laci_group_sum_stream(
            r->group, r->number, PHASE_DOUBLES, &stream, s->n, NULL));
    } else {
        load_items(s, 0, s->n, s->sums);
        LAC_TRY(laci_group_sum_f64(
            r->group, r->number, PHASE_DOUBLES, s->sums, s->n));
    }
    return laci_nonfinite_later(r);
}

// A sum that is streamed has no copy of the values. The others are stored when
// both sums have succeeded.
static lac_status allreduce_reduce(void *state, laci_round *round)
{
    (void)state;
    stream_state floats = allreduce_stream(round, &laci_number_f32);
    stream_state doubles = allreduce_stream(round, &laci_number_f64);
    floats.sums = round->sums;
    if (!doubles.streams) {
        LAC_TRY(
            laci_round_room(round, doubles.n * sizeof(double), &doubles.sums));
    }
    LAC_TRY(name_overflow(&floats, sum_floats(&floats)));
    if (doubles.n > 0) {
        LAC_TRY(name_overflow(&doubles, sum_doubles(&doubles)));
    }
    if (!floats.streams) {
        store_items(&floats, 0, floats.n, floats.sums);
    }
    if (!doubles.streams) {
        store_items(&doubles, 0, doubles.n, doubles.sums);
    }
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

static void allreduce_exchanges(
    const void *state, const laci_worker *w, laci_listing *out)
{
    (void)state;
    const size_t n = lac_layout_values(w->layout);
    if (laci_list_streams(out, n)) {
        laci_list_sum_stream(out, n);
    } else {
        laci_nonfinite_list_sum(out, n);
    }
}

const laci_algorithm_ops laci_allreduce_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "allreduce",
    .plugin.summary = "the exact mean over all workers",
    .plugin.example = "allreduce",
    .plugin.param_size = sizeof(lac_param),
    .family = LAC_FAMILY_GRADIENT,
    .baseline = true,
    .native_sums = true,
    .streams_sums = true,
    .any_dtype = true,
    .infinite_sums = true,
    .plan = allreduce_plan,
    .sum_bound = allreduce_sum_bound,
    .reduce = allreduce_reduce,
    .cost = allreduce_cost,
    .exchanges = allreduce_exchanges,
};
