// SPDX-License-Identifier: MIT
// CHOCO-SGD (Koloskova et al., arXiv:1902.00340 and 1907.09356): every worker
// has a public copy of its model. It sends compressed differences to that copy
// and moves towards the copies of its neighbours. This converges for every
// contraction, however coarse, if gamma is small enough.
//
// A worker has three vectors: x, its copy xhat, and the distance to the
// neighbours' copies, d = sum_j w_ij xhat_j - xhat_i, which replaces the copies
// themselves:
//
//     begin  q_i = C(x_i - xhat_i), sent to all neighbours
//            xhat_i += q_i;  d_i += sum_j w_ij (q_j - q_i)
//     end    x_i += gamma d_i + update
//
// d shrinks with the disagreement, and so does its rounding error. The papers
// store the sum of copies instead, which is as large as x: its rounding error
// would enter x in every round and move the mean for ever.
//
// Valid for a fixed W only. The mean of the workers is preserved by any C.
//
// With a trigger, as in SPARQ-SGD (Singh et al., arXiv:1910.14280), a worker
// sends q_i of a tensor only if |x_i - xhat_i|^2 > trigger rate^2, where rate
// is that of the local steps; otherwise its payload is empty and q_i is 0.
// Workers decide alone, and the mean is preserved whoever sends.
#include "algorithm/shared/gamma.h"
#include "algorithm/shared/gossip.h"
#include "kernels/gossip.h"
#include "kernels/vector.h"

#define TRIGGER_MAX 1e12

typedef struct choco {
    laci_step_size gamma; // must be first: the operations of gamma use it
    double trigger;
} choco;

enum { XHAT, DISTANCE }; // the fields of a tensor

static const lac_param choco_params[] = {
    LACI_GAMMA_PARAM,
    {.name = "trigger",
     .type = LAC_PARAM_F64,
     .offset = offsetof(choco, trigger),
     .default_value = "0",
     .min = 0,
     .max = TRIGGER_MAX,
     .help = "send a tensor if its squared change exceeds this x rate^2"},
    {0},
};

static void choco_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state;
    const size_t n = laci_tensor_values(w, tensor);
    laci_plan_own(plan, "xhat", n);
    laci_plan_own(plan, "away", n);
}

static lac_status choco_start(void *state, laci_round *round)
{
    return laci_gamma_find(state, round, laci_gamma_choco);
}

// Writes x - xhat to the scratch.
static void choco_subtract(laci_loop *loop, size_t i, size_t first, size_t n)
{
    const laci_round *const round = loop->round;
    const laci_kernels *const kernels = round->worker->kernels;
    const laci_item *const item = &round->items[i];
    float *const difference = round->scratch + first;
    kernels->gossip->subtract(
        item->in + first, item->fields[XHAT].values + first, difference, n);
    if (!laci_all_finite(kernels, difference, n)) {
        laci_loop_fail(loop, i);
    }
}

// Encodes x - xhat of an item, or nothing if it is small.
static lac_status choco_put(const choco *settings, laci_round *round, size_t i)
{
    const laci_worker *const w = round->worker;
    const laci_item *const item = &round->items[i];
    const double limit = settings->trigger * round->rate * round->rate;
    const bool finite =
        laci_split(NULL, round, i, i + 1, LAC_PART, choco_subtract) != i;
    if (settings->trigger > 0 && item->n > 0 &&
        w->kernels->vector->sum_squares(round->scratch, item->n) <= limit) {
        laci_gossip_omit(round, w->compressor, i);
    } else {
        laci_gossip_put(round, w->compressor, i, round->scratch);
    }
    return finite ? LAC_OK : laci_nonfinite_find(round, i);
}

static lac_status choco_exchange(const choco *settings, laci_round *round)
{
    const lac_compressor *const c = round->worker->compressor;
    for (size_t i = 0; i < round->count; i++) {
        LAC_TRY(choco_put(settings, round, i));
    }
    return settings->trigger > 0 ? laci_gossip_exchange_some(round, c, 0)
                                 : laci_gossip_exchange(round, c, 0);
}

// Adds the payloads of a part to xhat and d.
static void choco_apply(
    const laci_round *round, size_t i, size_t first, size_t n)
{
    const laci_field *const fields = round->items[i].fields;
    float *const away = fields[DISTANCE].values + first;
    float own = 0; // exactly the negative sum of the neighbours' weights
    for (uint32_t k = 0; k < round->edge_count; k++) {
        own -= (float)round->edges[k].weight;
    }
    const laci_view *const sent = laci_sent(round, i);
    laci_view_add_part(sent, first, n, 1, fields[XHAT].values + first);
    laci_view_add_part(sent, first, n, own, away);
    for (uint32_t k = 0; k < round->edge_count; k++) {
        laci_view_add_part(
            laci_received(round, k, i), first, n, (float)round->edges[k].weight,
            away);
    }
}

// x += gamma d + update, for a part.
static void choco_pull(
    const laci_step_size *gamma, const laci_round *round, size_t i,
    size_t first, size_t n)
{
    const laci_item *const item = &round->items[i];
    const float *const update = item->update;
    round->worker->kernels->gossip->pull(
        (float)gamma->value, item->fields[DISTANCE].values + first,
        item->in + first, update == NULL ? NULL : update + first,
        item->out + first, n);
}

// What a loop does with each part.
typedef struct choco_loop {
    const laci_step_size *gamma; // NULL: does not pull
    bool applies;
} choco_loop;

static void choco_do_parts(laci_loop *loop, size_t i, size_t first, size_t n)
{
    const choco_loop *const what = loop->context;
    const laci_round *const round = loop->round;
    if (what->applies) {
        choco_apply(round, i, first, n);
    }
    if (what->gamma != NULL) {
        choco_pull(what->gamma, round, i, first, n);
    }
}

static void choco_do_items(const laci_round *round, choco_loop what)
{
    (void)laci_split(
        &what, round, 0, round->count,
        laci_part_size(round->worker->compressor), choco_do_parts);
}

static lac_status choco_begin(void *state, laci_round *round)
{
    LAC_TRY(choco_exchange(state, round));
    choco_do_items(round, (choco_loop){.applies = true});
    return LAC_OK;
}

static lac_status choco_end(void *state, laci_round *round)
{
    choco_do_items(round, (choco_loop){.gamma = state});
    return LAC_OK;
}

static lac_status choco_mix(void *state, laci_round *round)
{
    LAC_TRY(choco_exchange(state, round));
    choco_do_items(round, (choco_loop){.gamma = state, .applies = true});
    return LAC_OK;
}

// A message may then be shorter.
static void choco_exchanges(
    const void *state, const laci_worker *w, laci_listing *out)
{
    const choco *const settings = state;
    if (settings->trigger > 0) {
        out->flags |= LAC_EXCHANGE_BOUND;
    }
    laci_gossip_exchanges(state, w, out);
}

const laci_algorithm_ops laci_choco_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "choco",
    .plugin.summary = "compressed differences to public copies",
    .plugin.example = "choco sign",
    .plugin.params = choco_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(choco),
    .family = LAC_FAMILY_MODEL,
    .keeps_mean = true,
    .converges = true,
    .coarsens = "trigger",
    .takes_compressor = true,
    .form = LAC_FORM_CONTRACTIVE,
    .fixed_graph = true,
    .begin_saves = true,
    .scratch = true,
    .scans = true,
    .configure = laci_gamma_configure,
    .plan = choco_plan,
    .message_bound = laci_gossip_bound,
    .start = choco_start,
    .begin = choco_begin,
    .end = choco_end,
    .mix = choco_mix,
    .cost = laci_gossip_cost,
    .exchanges = choco_exchanges,
    .step = laci_gamma_step,
};
