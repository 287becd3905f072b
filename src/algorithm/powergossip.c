// SPDX-License-Identifier: MIT
// PowerGossip (Vogels et al., arXiv:2008.01425): the two ends of an edge apply
// the power method to the difference of their matrices, D = X_high - X_low by
// their ranks, and each half step also brings them closer. Neither knows D; the
// product of D with a vector both know is the difference of two products, each
// computed at one end.
//
//     use u of an edge, odd:   in = orthonormal q,  out = p = D q
//                      even:   in = orthonormal p,  out = q = D^T p
//     X_low += rate w p q^T,   X_high -= rate w p q^T
//
// `out` is sent as one's own product with X. What both ends compute from the
// two products has the same bits, and next time `out` is where `in` comes from:
// it is all that an edge remembers. The first `in`, and all of them without
// warm start, are drawn from a key of the edge, and so is one that became zero
// because the ends agreed.
//
// A round uses an edge `iterations` times, with an exchange each. A message
// holds for each matrix r columns of `out`, all floats. Tensors of one row or
// column are in the first message of a round as they are, and gossip exactly.
//
// X itself is read once an iteration and written once a round, by end: products
// with the corrections so far are made from their factors.
#include "algorithm/gossip.h"
#include "algorithm/power_step.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "kernels/gossip.h"

enum { RANK_MAX = 32, ITERATIONS_MAX = 64 };

static const lac_param powergossip_params[] = {
    {.name = "rank",
     .type = LAC_PARAM_U32,
     .offset = offsetof(laci_power_settings, rank),
     .default_value = "1",
     .min = 1,
     .max = RANK_MAX,
     .help = "columns of each factor"},
    {.name = "iterations",
     .type = LAC_PARAM_U32,
     .offset = offsetof(laci_power_settings, iterations),
     .default_value = "1",
     .min = 1,
     .max = ITERATIONS_MAX,
     .help = "half steps of the power method a round, with a message each"},
    {.name = "warm-start",
     .aliases = "warm_start",
     .type = LAC_PARAM_BOOL,
     .offset = offsetof(laci_power_settings, warm_start),
     .default_value = "yes",
     .help = "go on from the last factors; no: from random ones"},
    {.name = "rate",
     .aliases = "diffusion_rate",
     .type = LAC_PARAM_F64,
     .offset = offsetof(laci_power_settings, rate),
     .default_value = "1",
     .min = 0,
     .max = 2,
     .above_min = true,
     .help = "how far matrices go to the neighbours' mean"},
    {0},
};

static void powergossip_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    const lac_shape shape = lac_layout_tensor(w->layout, tensor)->shape;
    if (laci_power_is_matrix(shape)) {
        laci_power_plan(state, w, tensor, plan);
    } else {
        laci_plan_field(plan, NULL, LAC_RANK_ANY, shape.rows * shape.cols);
    }
}

static size_t powergossip_message_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    const lac_shape shape = lac_layout_tensor(w->layout, tensor)->shape;
    const size_t larger = shape.rows > shape.cols ? shape.rows : shape.cols;
    const size_t columns =
        laci_power_is_matrix(shape) ? laci_power_rank(state, shape) : 1;
    return columns * larger * sizeof(float);
}

static bool has_matrices(const laci_round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        if (laci_power_is_matrix(round->items[i].shape)) {
            return true;
        }
    }
    return false;
}

static bool in_message(const laci_power_step *t, const laci_item *item)
{
    return t->iteration == 0 || laci_power_is_matrix(item->shape);
}

// What neighbour k is sent of an item: n floats.
static const float *values_of(
    const laci_power_step *t, const laci_item *item, uint32_t k, size_t *n_out)
{
    if (laci_power_is_matrix(item->shape)) {
        return laci_power_product(t, item, k, n_out);
    }
    *n_out = item->n;
    return item->in;
}

static void write_message(
    laci_worker *w, const laci_power_step *t, const laci_round *round,
    uint32_t k)
{
    laci_writer *const message = laci_group_message(w->group, k);
    for (size_t i = 0; i < round->count; i++) {
        if (in_message(t, &round->items[i])) {
            size_t n;
            const float *const values = values_of(t, &round->items[i], k, &n);
            const size_t len = n * sizeof(*values);
            uint8_t *const out = laci_writer_room(message, len);
            if (n > 0) {
                laci_put_floats(out, values, n);
            }
            laci_writer_commit(message, len);
        }
    }
}

// Takes the payloads of neighbour k's message apart.
static lac_status read_message(
    laci_worker *w, const laci_power_step *t, const laci_round *round,
    uint32_t k)
{
    laci_reader *const reader = &w->readers[k];
    for (size_t i = 0; i < round->count; i++) {
        laci_view *const view = &w->views[k * round->count + i];
        size_t n;
        if (!in_message(t, &round->items[i])) {
            continue;
        }
        LAC_TRY(laci_reader_next(reader, &view->bytes, &view->len));
        (void)values_of(t, &round->items[i], k, &n);
        if (view->len != n * sizeof(float)) {
            return lac_fail(
                LAC_ERR_CORRUPT,
                "powergossip: worker %u sent %zu bytes for %s, expected %zu",
                reader->peer, view->len,
                lac_layout_tensor(w->layout, round->items[i].tensor)->name,
                n * sizeof(float));
        }
    }
    return laci_reader_done(reader);
}

// Applies what all neighbours sent for the matrices.
static lac_status meet_all(
    const laci_worker *w, const laci_power_step *t, const laci_round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        for (uint32_t k = 0;
             laci_power_is_matrix(item->shape) && k < t->edge_count; k++) {
            const laci_view *const view = &w->views[k * round->count + i];
            LAC_TRY(laci_power_meet(t, item, k, view->bytes));
        }
    }
    return LAC_OK;
}

static void mix_vectors(
    laci_worker *w, const laci_power_step *t, const laci_round *round)
{
    const double self =
        lac_topology_self_weight(w->topology, w->rank, round->number);
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        if (laci_power_is_matrix(item->shape)) {
            continue;
        }
        float *const mixed = laci_fields(w, item->tensor)[0].values;
        w->kernels->gossip->scale((float)self, item->in, mixed, item->n);
        for (uint32_t k = 0; k < t->edge_count; k++) {
            laci_gossip_add(
                w, w->raw, round, i, k, (float)t->edges[k].weight, mixed);
        }
    }
}

static lac_status talk(
    laci_worker *w, const laci_power_step *t, const laci_round *round)
{
    for (uint32_t k = 0; k < t->edge_count; k++) {
        write_message(w, t, round, k);
    }
    LAC_TRY(laci_group_exchange(
        w->group, round->number, t->iteration, t->edges, t->edge_count, false,
        w->readers));
    lac_status status = LAC_OK;
    for (uint32_t k = 0; status == LAC_OK && k < t->edge_count; k++) {
        status = read_message(w, t, round, k);
    }
    if (status == LAC_OK) {
        status = meet_all(w, t, round);
    }
    return laci_group_abort_on_failure(w->group, status);
}

static lac_status powergossip_begin(
    void *state, laci_worker *w, const laci_round *round)
{
    const laci_power_settings *const s = state;
    const uint32_t iterations = has_matrices(round) ? s->iterations : 1;
    for (uint32_t i = 0; i < iterations; i++) {
        const laci_power_step t = laci_power_step_of(s, w, round->number, i);
        for (size_t j = 0; j < round->count; j++) {
            if (laci_power_is_matrix(round->items[j].shape)) {
                laci_power_multiply(&t, &round->items[j]);
            }
        }
        LAC_TRY(talk(w, &t, round));
        if (i == 0) {
            mix_vectors(w, &t, round);
        }
    }
    return LAC_OK;
}

static lac_status powergossip_end(
    void *state, laci_worker *w, const laci_round *round)
{
    const laci_power_settings *const s = state;
    const laci_power_step last =
        laci_power_step_of(s, w, round->number, s->iterations - 1);
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        if (laci_power_is_matrix(item->shape)) {
            laci_power_finish(&last, item);
        } else {
            const float *const mixed = laci_fields(w, item->tensor)[0].values;
            w->kernels->gossip->apply(mixed, item->update, item->out, item->n);
        }
    }
    return LAC_OK;
}

// Odd and even uses take turns, so a matrix costs half of both factors each.
static void powergossip_cost(
    const void *state, const laci_worker *w, lac_cost *out)
{
    const laci_power_settings *const s = state;
    double factors = 0, vectors = 0, edges = 0;
    for (size_t i = 0; i < lac_layout_count(w->layout); i++) {
        const lac_shape shape = lac_layout_tensor(w->layout, i)->shape;
        if (laci_power_is_matrix(shape)) {
            factors += (double)laci_power_rank(s, shape) *
                       (double)(shape.rows + shape.cols);
        } else {
            vectors += (double)(shape.rows * shape.cols);
        }
    }
    const uint32_t period = lac_topology_period(w->topology);
    for (uint32_t i = 0; i < period; i++) {
        const lac_edge *ignored;
        edges += laci_worker_edges(w, i, &ignored);
    }
    out->phases = factors > 0 ? s->iterations : 1;
    out->messages = out->phases * edges / period;
    out->payload_bytes = sizeof(float) * (out->phases * factors / 2 + vectors);
}

const laci_algorithm_ops laci_powergossip_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "powergossip",
    .plugin.summary = "the power method on differences between neighbours",
    .plugin.params = powergossip_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(laci_power_settings),
    .family = LAC_FAMILY_MODEL,
    .plan = powergossip_plan,
    .message_bound = powergossip_message_bound,
    .begin = powergossip_begin,
    .end = powergossip_end,
    .cost = powergossip_cost,
};
