// SPDX-License-Identifier: MIT
// BEER (Zhao, Li, Li, Richtárik, Chi, arXiv:2201.13320): gossip of models with
// gradient tracking, both by compressed differences to public copies, as in
// choco. Every worker moves along V, its estimate of the mean gradient of all
// workers, not along its own gradient g. It therefore converges to the common
// minimum, also where workers have different data and the rate is constant.
//
//     V_i += gamma d_i' + g_i - g_i of the last round
//     x_i += gamma d_i - rate V_i
//     p_i = C(V_i - vhat_i) and q_i = C(x_i - xhat_i), sent to all neighbours
//     vhat_i += p_i;  d_i' += sum_j w_ij (p_j - p_i)
//     xhat_i += q_i;  d_i  += sum_j w_ij (q_j - q_i)
//
// d_i' = sum_j w_ij vhat_j - vhat_i and d_i = sum_j w_ij xhat_j - xhat_i stand
// for the copies of the neighbours, as in choco. All fields begin with 0.
//
// The gradient is update / -rate, so updates must be those of plain SGD:
// without momentum, and with the rate of lac_algorithm_set_rate. A tensor
// without update has gradient 0. With a rate of 0 the gradient is unknown, and
// V only mixes.
//
// The mean of V is that of the gradients, and the mean of x moves by -rate
// times it, whatever C does: by the mean of the updates. Valid for a fixed W
// only.
#include "algorithm/shared/gamma.h"
#include "algorithm/shared/gossip.h"
#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/vector.h"

// The fields of a tensor.
enum { XHAT, XAWAY, VHAT, VAWAY, TRACKER, GRADIENT, NEXT_TRACKER };

// The payloads of a tensor.
enum { PART_V, PART_X, PARTS };

static const lac_param beer_params[] = {
    LACI_GAMMA_PARAM,
    {0},
};

static void beer_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state;
    const size_t n = laci_tensor_values(w, tensor);
    laci_plan_own(plan, "xhat", n);
    laci_plan_own(plan, "xaway", n);
    laci_plan_own(plan, "vhat", n);
    laci_plan_own(plan, "vaway", n);
    laci_plan_own(plan, "tracker", n);
    laci_plan_own(plan, "gradient", n);
    laci_plan_working(plan, n);
}

static size_t beer_message_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    return PARTS * laci_gossip_bound(state, w, tensor);
}

// The search is that of choco, for the gossip of x alone. That of V has the
// same graph and compressor.
static lac_status beer_start(void *state, laci_round *round)
{
    return laci_gamma_find(state, round, laci_gamma_choco);
}

static laci_view *sent_part(const laci_round *round, int part, size_t i)
{
    return laci_sent(round, (size_t)part * round->count + i);
}

static laci_view *received_part(
    const laci_round *round, int part, uint32_t k, size_t i)
{
    return laci_received(round, (uint32_t)part * round->edge_count + k, i);
}

// A view of a payload from worker `from`. The parts of a tensor have different
// keys, so that their random draws are independent.
static laci_view part_view(
    const laci_round *round, int part, uint32_t from, size_t i)
{
    const laci_worker *const w = round->worker;
    laci_view view =
        laci_view_make(round, w->compressor, i, lac_scope_worker(from));
    view.call.key = lac_key_make(
        w->seed, LAC_PURPOSE_COMPRESS, round->number, lac_scope_worker(from),
        round->items[i].name_hash + (uint64_t)part);
    return view;
}

// Writes the tracker after this round to its working field.
static void next_tracker(float gamma, const laci_round *round, size_t i)
{
    const laci_item *const item = &round->items[i];
    const laci_gossip_kernels *const gossip = round->worker->kernels->gossip;
    const float *const gradient = item->fields[GRADIENT].values;
    const float *change = NULL;
    if (round->rate > 0 && item->update != NULL) {
        gossip->combine(
            (float)(-1 / round->rate), item->update, -1, gradient, NULL,
            round->scratch, item->n);
        change = round->scratch;
    } else if (round->rate > 0) {
        gossip->scale(-1, gradient, round->scratch, item->n);
        change = round->scratch;
    }
    gossip->pull(
        gamma, item->fields[VAWAY].values, item->fields[TRACKER].values, change,
        item->fields[NEXT_TRACKER].values, item->n);
}

// Writes x after this round to `out`, which may be the values themselves.
static void beer_next_values(
    float gamma, const laci_round *round, size_t i, float *out)
{
    const laci_item *const item = &round->items[i];
    const laci_kernels *const kernels = round->worker->kernels;
    kernels->gossip->pull(
        gamma, item->fields[XAWAY].values, item->in, NULL, out, item->n);
    kernels->vector->add_scaled(
        -(float)round->rate, item->fields[NEXT_TRACKER].values, out, item->n);
}

// Encodes round->scratch less a public copy.
static lac_status put_part(
    const laci_round *round, int part, size_t i, const float *copy,
    laci_writer *message)
{
    const laci_worker *const w = round->worker;
    const laci_item *const item = &round->items[i];
    laci_view *const view = sent_part(round, part, i);
    w->kernels->gossip->subtract(round->scratch, copy, round->scratch, item->n);
    *view = part_view(round, part, w->rank, i);
    laci_view_put(view, round->scratch, message);
    return laci_view_finite(view)
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_INVALID,
                     "beer: worker %u has values in %s that overflow in this "
                     "round",
                     w->rank, item->name);
}

static lac_status put_item(
    float gamma, const laci_round *round, size_t i, laci_writer *message)
{
    const laci_item *const item = &round->items[i];
    next_tracker(gamma, round, i);
    round->worker->kernels->gossip->apply(
        item->fields[NEXT_TRACKER].values, NULL, round->scratch, item->n);
    LAC_TRY(put_part(round, PART_V, i, item->fields[VHAT].values, message));
    beer_next_values(gamma, round, i, round->scratch);
    return put_part(round, PART_X, i, item->fields[XHAT].values, message);
}

static lac_status put_items(float gamma, const laci_round *round)
{
    laci_writer *const message = laci_group_message(round->group, 0);
    for (size_t i = 0; i < round->count; i++) {
        LAC_TRY(put_item(gamma, round, i, message));
    }
    return LAC_OK;
}

// Takes the payloads of a neighbour.
static lac_status take_parts(const laci_round *round, uint32_t k)
{
    const uint32_t peer = round->readers[k].peer;
    for (size_t i = 0; i < round->count; i++) {
        for (int part = 0; part < PARTS; part++) {
            laci_view *const view = received_part(round, part, k, i);
            *view = part_view(round, part, peer, i);
            LAC_TRY(laci_view_take(round, view, k, i));
        }
    }
    return laci_reader_done(&round->readers[k]);
}

// Moves a public copy, and the distance to those of the neighbours.
static void move_copies(
    const laci_round *round, int part, size_t i, float *copy, float *away)
{
    float own = 0; // exactly the negative sum of the neighbours' weights
    for (uint32_t k = 0; k < round->edge_count; k++) {
        own -= (float)round->edges[k].weight;
    }
    laci_view_add(sent_part(round, part, i), 1, copy);
    laci_view_add(sent_part(round, part, i), own, away);
    for (uint32_t k = 0; k < round->edge_count; k++) {
        laci_view_add(
            received_part(round, part, k, i), (float)round->edges[k].weight,
            away);
    }
}

static void finish_item(float gamma, const laci_round *round, size_t i)
{
    const laci_item *const item = &round->items[i];
    const laci_field *const fields = item->fields;
    const laci_gossip_kernels *const gossip = round->worker->kernels->gossip;
    beer_next_values(gamma, round, i, item->out);
    gossip->apply(
        fields[NEXT_TRACKER].values, NULL, fields[TRACKER].values, item->n);
    if (round->rate > 0 && item->update != NULL) {
        gossip->scale(
            (float)(-1 / round->rate), item->update, fields[GRADIENT].values,
            item->n);
    } else if (round->rate > 0) {
        gossip->scale(
            0, fields[GRADIENT].values, fields[GRADIENT].values, item->n);
    }
    move_copies(round, PART_V, i, fields[VHAT].values, fields[VAWAY].values);
    move_copies(round, PART_X, i, fields[XHAT].values, fields[XAWAY].values);
}

static lac_status beer_end(void *state, laci_round *round)
{
    const laci_step_size *const step = state;
    const float gamma = (float)step->value;
    LAC_TRY(laci_group_abort_on_failure(round->group, put_items(gamma, round)));
    LAC_TRY(laci_group_exchange(
        round->group, round->number, 0, round->edges, round->edge_count, true,
        round->readers));
    for (uint32_t k = 0; k < round->edge_count; k++) {
        LAC_TRY(
            laci_group_abort_on_failure(round->group, take_parts(round, k)));
    }
    for (size_t i = 0; i < round->count; i++) {
        finish_item(gamma, round, i);
    }
    return LAC_OK;
}

static void beer_cost(const void *state, const laci_worker *w, lac_cost *out)
{
    laci_gossip_cost(state, w, out);
    out->payload_bytes *= PARTS;
}

static void beer_exchanges(
    const void *state, const laci_worker *w, laci_listing *out)
{
    (void)state;
    laci_list_compressor(out, w->compressor, LAC_SCOPE_WORKER);
    laci_gossip_list(
        out, w, PARTS * laci_body_size(w, w->compressor, LAC_SCOPE_WORKER));
}

const laci_algorithm_ops laci_beer_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "beer",
    .plugin.summary = "choco with gradient tracking, for different data",
    .plugin.example = "beer qsgd:bucket=512",
    .plugin.params = beer_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(laci_step_size),
    .family = LAC_FAMILY_MODEL,
    .keeps_mean = true,
    .converges = true,
    .inexact = true,
    .takes_compressor = true,
    .form = LAC_FORM_CONTRACTIVE,
    .fixed_graph = true,
    .takes_update = true,
    .plain_updates = true,
    .payloads = PARTS,
    .scratch = true,
    .configure = laci_gamma_configure,
    .plan = beer_plan,
    .message_bound = beer_message_bound,
    .start = beer_start,
    .end = beer_end,
    .cost = beer_cost,
    .exchanges = beer_exchanges,
    .step = laci_gamma_step,
};
