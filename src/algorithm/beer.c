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
//
// That holds but for roundings, and these stay: an error in the sum of all d_i'
// is added to the trackers in every round, and one in xhat_i keeps x_i apart
// from the models of others. Where slices are double, x is therefore not
// rounded to floats, and xhat and d' have a second float each for what their
// first one rounds off. The other fields, the change of x and all payloads stay
// floats: all but the gradient vanish at the minimum, and their roundings with
// them.
#include "algorithm/shared/gamma.h"
#include "algorithm/shared/gossip.h"
#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/vector.h"

// The fields of a tensor.
enum {
    XHAT,
    XAWAY,
    VHAT,
    VAWAY,
    TRACKER,
    GRADIENT,
    NEXT_TRACKER,
    XHAT_LOW,
    VAWAY_LOW
};

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
    laci_plan_low(plan, "xhat-low", n);
    laci_plan_low(plan, "vaway-low", n);
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

// Returns the low field of an item in double, else NULL.
static float *low_of(const laci_item *item, int field)
{
    return item->dtype == LAC_F64 ? item->fields[field].values : NULL;
}

// Writes the change of x in this round to `out`.
static void beer_change(
    float gamma, const laci_round *round, size_t i, float *out)
{
    const laci_field *const fields = round->items[i].fields;
    round->worker->kernels->gossip->combine(
        gamma, fields[XAWAY].values, -(float)round->rate,
        fields[NEXT_TRACKER].values, NULL, out, round->items[i].n);
}

// Writes x after this round, less its public copy, to round->scratch.
static void subtract_copy(float gamma, const laci_round *round, size_t i)
{
    const laci_item *const item = &round->items[i];
    const float *const copy = item->fields[XHAT].values;
    const float *const low = low_of(item, XHAT_LOW);
    if (low == NULL) {
        beer_next_values(gamma, round, i, round->scratch);
        round->worker->kernels->gossip->subtract(
            round->scratch, copy, round->scratch, item->n);
        return;
    }
    const double *const x = item->source;
    beer_change(gamma, round, i, round->scratch);
    for (size_t j = 0; j < item->n; j++) {
        const double next = x[j] + (double)round->scratch[j];
        round->scratch[j] = (float)(next - ((double)copy[j] + (double)low[j]));
    }
}

// Encodes round->scratch.
static lac_status put_part(
    const laci_round *round, int part, size_t i, laci_writer *message)
{
    const laci_worker *const w = round->worker;
    const laci_item *const item = &round->items[i];
    laci_view *const view = sent_part(round, part, i);
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
    round->worker->kernels->gossip->subtract(
        item->fields[NEXT_TRACKER].values, item->fields[VHAT].values,
        round->scratch, item->n);
    LAC_TRY(put_part(round, PART_V, i, message));
    subtract_copy(gamma, round, i);
    return put_part(round, PART_X, i, message);
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

// A field, and its low field where it has one.
typedef struct sum {
    float *values;
    float *low;
} sum;

// Adds `a` times the values of a payload. The product is exact in double.
static void add_view(
    const laci_round *round, const laci_view *view, float a, sum to, size_t n)
{
    if (to.low == NULL) {
        laci_view_add(view, a, to.values);
        return;
    }
    laci_view_read(view, round->scratch);
    for (size_t j = 0; j < n; j++) {
        const double all = (double)to.values[j] + (double)to.low[j] +
                           (double)a * (double)round->scratch[j];
        to.values[j] = (float)all;
        to.low[j] = (float)(all - (double)to.values[j]);
    }
}

// Moves a public copy, and the distance to those of the neighbours.
static void move_copies(
    const laci_round *round, int part, size_t i, sum copy, sum away)
{
    const size_t n = round->items[i].n;
    float own = 0; // exactly the negative sum of the neighbours' weights
    for (uint32_t k = 0; k < round->edge_count; k++) {
        own -= (float)round->edges[k].weight;
    }
    add_view(round, sent_part(round, part, i), 1, copy, n);
    add_view(round, sent_part(round, part, i), own, away, n);
    for (uint32_t k = 0; k < round->edge_count; k++) {
        add_view(
            round, received_part(round, part, k, i),
            (float)round->edges[k].weight, away, n);
    }
}

// Writes x after this round to the caller, or to `out`.
static void move_values(float gamma, const laci_round *round, size_t i)
{
    const laci_item *const item = &round->items[i];
    if (item->dtype != LAC_F64) {
        beer_next_values(gamma, round, i, item->out);
        return;
    }
    const double *const x = item->source;
    double *const out = item->target;
    beer_change(gamma, round, i, round->scratch);
    for (size_t j = 0; j < item->n; j++) {
        out[j] = x[j] + (double)round->scratch[j];
    }
}

static void finish_item(float gamma, const laci_round *round, size_t i)
{
    const laci_item *const item = &round->items[i];
    const laci_field *const fields = item->fields;
    const laci_gossip_kernels *const gossip = round->worker->kernels->gossip;
    move_values(gamma, round, i);
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
    move_copies(
        round, PART_V, i, (sum){fields[VHAT].values, NULL},
        (sum){fields[VAWAY].values, low_of(item, VAWAY_LOW)});
    move_copies(
        round, PART_X, i, (sum){fields[XHAT].values, low_of(item, XHAT_LOW)},
        (sum){fields[XAWAY].values, NULL});
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
    .keeps_doubles = true,
    .configure = laci_gamma_configure,
    .plan = beer_plan,
    .message_bound = beer_message_bound,
    .start = beer_start,
    .end = beer_end,
    .cost = beer_cost,
    .exchanges = beer_exchanges,
    .step = laci_gamma_step,
};
