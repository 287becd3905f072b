// SPDX-License-Identifier: MIT
// PowerGossip (Vogels et al., arXiv:2008.01425): the two ends of an edge apply
// the power method to the difference of their matrices, D = X_high - X_low by
// their ranks, and each half step also brings them closer. Neither end knows D.
// The product of D with a vector that both know is the difference of two
// products, each computed at one end.
//
//     use u of an edge, odd:   in = orthonormal q,  out = p = D q
//                      even:   in = orthonormal p,  out = q = D^T p
//     X_low += rate w p q^T,   X_high -= rate w p q^T
//
// Each end sends its own product. From the two products both ends compute
// `out` with the same bits, and the next use takes its `in` from it: an edge
// stores nothing else. The first `in`, and every one without warm start, is
// drawn from a key of the edge, and so is one that became zero because the
// ends were equal.
//
// A round uses an edge `iterations` times, with an exchange each. A message
// holds for each matrix r columns of `out`, all floats. Tensors of one row or
// column, unless they are folded, are in the first message of a round
// uncompressed, and gossip exactly.
//
// X itself is read once an iteration and written once a round, by end: products
// with the corrections so far are computed from their factors.
#include "algorithm/powergossip_step.h"
#include "algorithm/shared/gossip.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/vector.h"

enum { RANK_MAX = 32, ITERATIONS_MAX = 64 };

enum { MIXED }; // the field of a tensor that is not a matrix

static const lac_param powergossip_params[] = {
    {.name = "rank",
     .type = LAC_PARAM_U32,
     .offset = offsetof(laci_powergossip, rank),
     .default_value = "1",
     .min = 1,
     .max = RANK_MAX,
     .help = "columns of each factor"},
    {.name = "iterations",
     .type = LAC_PARAM_U32,
     .offset = offsetof(laci_powergossip, iterations),
     .default_value = "1",
     .min = 1,
     .max = ITERATIONS_MAX,
     .help = "half steps of the power method a round, with a message each"},
    {.name = "warm-start",
     .aliases = "warm_start",
     .type = LAC_PARAM_BOOL,
     .offset = offsetof(laci_powergossip, warm_start),
     .default_value = "yes",
     .help = "start from the last factors; no: from random ones"},
    {.name = "rate",
     .aliases = "diffusion_rate",
     .type = LAC_PARAM_F64,
     .offset = offsetof(laci_powergossip, rate),
     .default_value = "1",
     .min = 0,
     .max = 2,
     .above_min = true,
     .help = "how far matrices go to the neighbours' mean"},
    {.name = "fold",
     .type = LAC_PARAM_BOOL,
     .offset = offsetof(laci_powergossip, fold),
     .default_value = "no",
     .help = "view a long vector as a matrix, which can be compressed"},
    {0},
};

// Uses of an edge send the columns of one side and of the other in turn.
static bool powergossip_folds(const void *state, size_t n, lac_shape folded)
{
    const laci_powergossip *const s = state;
    const size_t rank = laci_powergossip_rank(s, folded);
    return s->fold && laci_powergossip_is_matrix(folded) &&
           rank * (folded.rows + folded.cols) < 2 * n;
}

static void powergossip_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    if (laci_powergossip_is_matrix(laci_tensor_shape(w, tensor))) {
        laci_powergossip_plan(state, w, tensor, plan);
    } else {
        laci_mixing_plan(state, w, tensor, plan);
    }
}

static size_t powergossip_message_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    const lac_shape shape = laci_tensor_shape(w, tensor);
    const size_t larger = shape.rows > shape.cols ? shape.rows : shape.cols;
    const size_t columns = laci_powergossip_is_matrix(shape)
                               ? laci_powergossip_rank(state, shape)
                               : 1;
    return columns * larger * sizeof(float);
}

static bool has_matrices(const laci_round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        if (laci_powergossip_is_matrix(round->items[i].shape)) {
            return true;
        }
    }
    return false;
}

static bool in_message(const laci_powergossip_step *t, const laci_item *item)
{
    return t->iteration == 0 || laci_powergossip_is_matrix(item->shape);
}

// Returns the values of an item for neighbour k, n floats.
static const float *values_for(
    const laci_powergossip_step *t, const laci_item *item, uint32_t k,
    size_t *n_out)
{
    if (laci_powergossip_is_matrix(item->shape)) {
        return laci_powergossip_product(t, item, k, n_out);
    }
    *n_out = item->n;
    return item->in;
}

static void write_message(const laci_powergossip_step *t, uint32_t k)
{
    const laci_round *const round = t->round;
    laci_writer *const message = laci_group_message(round->group, k);
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        if (in_message(t, item)) {
            size_t n;
            const float *const values = values_for(t, item, k, &n);
            const size_t len = n * sizeof(*values);
            uint8_t *const out = laci_writer_room(message, len);
            if (n > 0) {
                laci_put_floats(out, values, n);
            }
            laci_writer_commit(message, len);
        }
    }
}

// Takes the payloads of neighbour k's message: floats, as the identity has
// them.
static lac_status take_message(const laci_powergossip_step *t, uint32_t k)
{
    const laci_round *const round = t->round;
    const lac_scope scope = lac_scope_worker(round->readers[k].peer);
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        if (in_message(t, item)) {
            size_t n;
            (void)values_for(t, item, k, &n);
            laci_view *const view = laci_received(round, k, i);
            *view = laci_view_make(round, round->worker->identity, i, scope);
            view->call.shape = (lac_shape){n, 1};
            LAC_TRY(laci_view_take(round, view, k, i));
        }
    }
    return laci_reader_done(&round->readers[k]);
}

// Takes all messages, then applies them to the matrices.
static lac_status receive_all(const laci_powergossip_step *t)
{
    const laci_round *const round = t->round;
    for (uint32_t k = 0; k < round->edge_count; k++) {
        LAC_TRY(take_message(t, k));
    }
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        for (uint32_t k = 0;
             laci_powergossip_is_matrix(item->shape) && k < round->edge_count;
             k++) {
            const laci_view *const view = laci_received(round, k, i);
            LAC_TRY(laci_powergossip_receive(t, item, k, view->bytes));
        }
    }
    return LAC_OK;
}

static void mix_vectors(const laci_round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        if (!laci_powergossip_is_matrix(item->shape)) {
            laci_mixing_mix(
                round, i, (float)round->self_weight, 1,
                item->fields[MIXED].values);
        }
    }
}

// A product of finite values may overflow.
static lac_status check_products(const laci_powergossip_step *t)
{
    const laci_round *const round = t->round;
    const laci_worker *const w = round->worker;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        for (uint32_t k = 0;
             laci_powergossip_is_matrix(item->shape) && k < round->edge_count;
             k++) {
            size_t n;
            const float *const x = laci_powergossip_product(t, item, k, &n);
            if (!laci_all_finite(w->kernels, x, n)) {
                return lac_fail(
                    LAC_ERR_INVALID,
                    "powergossip: worker %u has values in %s that overflow in "
                    "this round",
                    w->rank, item->name);
            }
        }
    }
    return LAC_OK;
}

static lac_status exchange(const laci_powergossip_step *t)
{
    const laci_round *const round = t->round;
    LAC_TRY(laci_group_abort_on_failure(round->group, check_products(t)));
    for (uint32_t k = 0; k < round->edge_count; k++) {
        write_message(t, k);
    }
    LAC_TRY(laci_group_exchange(
        round->group, round->number, t->iteration, round->edges,
        round->edge_count, false, round->readers));
    return laci_group_abort_on_failure(round->group, receive_all(t));
}

static lac_status powergossip_begin(void *state, laci_round *round)
{
    const laci_powergossip *const s = state;
    const uint32_t iterations = has_matrices(round) ? s->iterations : 1;
    for (uint32_t i = 0; i < iterations; i++) {
        const laci_powergossip_step t = laci_powergossip_step_make(s, round, i);
        for (size_t j = 0; j < round->count; j++) {
            if (laci_powergossip_is_matrix(round->items[j].shape)) {
                laci_powergossip_multiply(&t, &round->items[j]);
            }
        }
        LAC_TRY(exchange(&t));
        if (i == 0) {
            mix_vectors(round);
        }
    }
    return LAC_OK;
}

static lac_status powergossip_end(void *state, laci_round *round)
{
    const laci_powergossip *const s = state;
    const laci_powergossip_step last =
        laci_powergossip_step_make(s, round, s->iterations - 1);
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        if (laci_powergossip_is_matrix(item->shape)) {
            laci_powergossip_finish(&last, item);
        } else {
            round->worker->kernels->gossip->apply(
                item->fields[MIXED].values, item->update, item->out, item->n);
        }
    }
    return LAC_OK;
}

// Odd and even uses take turns, so a matrix costs half of both factors each.
static void powergossip_cost(
    const void *state, const laci_worker *w, lac_cost *out)
{
    const laci_powergossip *const s = state;
    double factors = 0, vectors = 0;
    for (size_t i = 0; i < lac_layout_count(w->layout); i++) {
        const lac_shape shape = laci_tensor_shape(w, i);
        if (laci_powergossip_is_matrix(shape)) {
            factors += (double)laci_powergossip_rank(s, shape) *
                       (double)(shape.rows + shape.cols);
        } else {
            vectors += (double)lac_shape_values(shape);
        }
    }
    out->phases = factors > 0 ? s->iterations : 1;
    out->messages = out->phases * laci_gossip_degree(w);
    out->payload_bytes = sizeof(float) * (out->phases * factors / 2 + vectors);
}

// The messages of an iteration: of odd and of even uses of an edge.
typedef struct bodies {
    const laci_powergossip *settings;
    const laci_worker *worker;
    uint32_t round;
    uint32_t iteration;
    size_t even;
    size_t odd;
} bodies;

static bodies bodies_of(
    const laci_powergossip *s, const laci_worker *w, uint32_t round,
    uint32_t iteration)
{
    bodies b = {.settings = s, .worker = w, .round = round};
    b.iteration = iteration;
    for (size_t i = 0; i < lac_layout_count(w->layout); i++) {
        const lac_shape shape = laci_tensor_shape(w, i);
        size_t even = lac_shape_values(shape), odd = even;
        if (laci_powergossip_is_matrix(shape)) {
            even = laci_powergossip_out(s, shape, 0);
            odd = laci_powergossip_out(s, shape, 1);
        } else if (iteration > 0) {
            continue;
        }
        b.even += LACI_LENGTH_SIZE + even * sizeof(float);
        b.odd += LACI_LENGTH_SIZE + odd * sizeof(float);
    }
    return b;
}

static size_t body_of(const void *context, uint32_t worker, uint32_t peer)
{
    const bodies *const b = context;
    laci_worker w = *b->worker;
    w.rank = worker;
    const uint64_t use =
        laci_powergossip_use(b->settings, &w, b->round, b->iteration, peer);
    return use % 2 == 1 ? b->odd : b->even;
}

static void powergossip_exchanges(
    const void *state, const laci_worker *w, laci_listing *out)
{
    const laci_powergossip *const s = state;
    bool matrices = false;
    for (size_t i = 0; i < lac_layout_count(w->layout); i++) {
        matrices =
            matrices || laci_powergossip_is_matrix(laci_tensor_shape(w, i));
    }
    for (uint32_t i = 0; i < (matrices ? s->iterations : 1); i++) {
        const bodies b = bodies_of(s, w, out->round, i);
        laci_list_exchange(out, w->topology, body_of, &b);
    }
}

// The uses of an edge in two periods of the topology are an even number.
static uint32_t powergossip_period(const void *state, const laci_worker *w)
{
    const laci_powergossip *const s = state;
    const uint32_t rounds = lac_topology_period(w->topology);
    return s->iterations % 2 == 0 ? rounds : 2 * rounds;
}

const laci_algorithm_ops laci_powergossip_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "powergossip",
    .plugin.summary = "the power method on differences between neighbours",
    .plugin.example = "powergossip",
    .plugin.params = powergossip_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(laci_powergossip),
    .family = LAC_FAMILY_MODEL,
    .message_per_peer = true,
    .folds = powergossip_folds,
    .plan = powergossip_plan,
    .message_bound = powergossip_message_bound,
    .begin = powergossip_begin,
    .end = powergossip_end,
    .cost = powergossip_cost,
    .exchanges = powergossip_exchanges,
    .period = powergossip_period,
};
