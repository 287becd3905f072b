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

// Encodes x - xhat of an item, or nothing if it is small.
static void choco_put(const choco *settings, laci_round *round, size_t i)
{
    const laci_worker *const w = round->worker;
    const laci_item *const item = &round->items[i];
    const double limit = settings->trigger * round->rate * round->rate;
    w->kernels->gossip->subtract(
        item->in, item->fields[XHAT].values, round->scratch, item->n);
    if (settings->trigger > 0 && item->n > 0 &&
        w->kernels->vector->sum_squares(round->scratch, item->n) <= limit) {
        laci_gossip_omit(round, w->compressor, i);
    } else {
        laci_gossip_put(round, w->compressor, i, round->scratch);
    }
}

static lac_status choco_begin(void *state, laci_round *round)
{
    const choco *const settings = state;
    const laci_worker *const w = round->worker;
    for (size_t i = 0; i < round->count; i++) {
        choco_put(settings, round, i);
    }
    LAC_TRY(
        settings->trigger > 0
            ? laci_gossip_exchange_some(round, w->compressor, 0)
            : laci_gossip_exchange(round, w->compressor, 0));
    float own = 0; // exactly the negative sum of the neighbours' weights
    for (uint32_t k = 0; k < round->edge_count; k++) {
        own -= (float)round->edges[k].weight;
    }
    for (size_t i = 0; i < round->count; i++) {
        const laci_field *const fields = round->items[i].fields;
        laci_view_add(laci_sent(round, i), 1, fields[XHAT].values);
        laci_view_add(laci_sent(round, i), own, fields[DISTANCE].values);
        for (uint32_t k = 0; k < round->edge_count; k++) {
            laci_view_add(
                laci_received(round, k, i), (float)round->edges[k].weight,
                fields[DISTANCE].values);
        }
    }
    return LAC_OK;
}

static lac_status choco_end(void *state, laci_round *round)
{
    const laci_step_size *const gamma = state;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        round->worker->kernels->gossip->pull(
            (float)gamma->value, item->fields[DISTANCE].values, item->in,
            item->update, item->out, item->n);
    }
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
    .configure = laci_gamma_configure,
    .plan = choco_plan,
    .message_bound = laci_gossip_bound,
    .start = choco_start,
    .begin = choco_begin,
    .end = choco_end,
    .cost = laci_gossip_cost,
    .exchanges = choco_exchanges,
    .step = laci_gamma_step,
};
