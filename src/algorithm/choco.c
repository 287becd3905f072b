// SPDX-License-Identifier: MIT
// CHOCO-SGD (Koloskova et al., arXiv:1902.00340 and 1907.09356): workers keep
// public copies of themselves that everybody can follow, send compressed
// differences to them, and move towards what the copies of the neighbours say.
// Converges for every contraction, however coarse, if gamma is small enough.
//
// Three vectors a worker: x, its copy xhat, and how far the neighbours' copies
// are, d = sum_j w_ij xhat_j - xhat_i, so that they need not be kept:
//
//     begin  q_i = C(x_i - xhat_i), sent to all neighbours
//            xhat_i += q_i;  d_i += sum_j w_ij (q_j - q_i)
//     end    x_i += gamma d_i + update
//
// d shrinks with the disagreement and so does its rounding. The sum of copies
// that the papers keep is as large as x: what it loses would be pulled into x
// in every round, and move the mean for ever.
//
// Valid for a fixed W only. The mean of the workers is preserved by any C.
#include "algorithm/gamma.h"
#include "algorithm/gossip.h"
#include "base/fail.h"
#include "kernels/gossip.h"

enum { XHAT, AWAY }; // the fields of a tensor

static const lac_param choco_params[] = {
    {.name = "gamma",
     .aliases = "consensus_stepsize",
     .type = LAC_PARAM_F64_OR_WORD,
     .offset = offsetof(laci_gamma, gamma),
     .default_value = "auto",
     .min = 0,
     .max = 2,
     .above_min = true,
     .choices = "auto",
     .help = "step towards the neighbours' copies"},
    {0},
};

static void choco_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state;
    const lac_shape shape = lac_layout_tensor(w->layout, tensor)->shape;
    laci_plan_field(plan, "xhat", LAC_RANK_ANY, shape.rows * shape.cols);
    laci_plan_field(plan, "away", LAC_RANK_ANY, shape.rows * shape.cols);
}

static lac_status choco_start(
    void *state, laci_worker *w, const laci_round *round)
{
    laci_gamma *const g = state;
    (void)round;
    return g->step > 0 ? LAC_OK
                       : laci_gamma_find(w, laci_gamma_choco, &g->step);
}

static lac_status choco_begin(
    void *state, laci_worker *w, const laci_round *round)
{
    (void)state;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        const laci_field *const fields = laci_fields(w, item->tensor);
        w->kernels->gossip->subtract(
            item->in, fields[XHAT].values, w->scratch, item->n);
        laci_gossip_put(w, w->compressor, round, i, w->scratch);
    }
    LAC_TRY(laci_gossip_exchange(w, w->compressor, round, 0));
    const lac_edge *edges;
    const uint32_t count = laci_worker_edges(w, round->number, &edges);
    float own = 0; // exactly what the neighbours' weights add up to
    for (uint32_t k = 0; k < count; k++) {
        own -= (float)edges[k].weight;
    }
    for (size_t i = 0; i < round->count; i++) {
        const laci_field *const fields = laci_fields(w, round->items[i].tensor);
        float *const away = fields[AWAY].values;
        laci_gossip_add_own(w, w->compressor, round, i, 1, fields[XHAT].values);
        laci_gossip_add_own(w, w->compressor, round, i, own, away);
        for (uint32_t k = 0; k < count; k++) {
            laci_gossip_add(
                w, w->compressor, round, i, k, (float)edges[k].weight, away);
        }
    }
    return LAC_OK;
}

static lac_status choco_end(
    void *state, laci_worker *w, const laci_round *round)
{
    const laci_gamma *const g = state;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        const laci_field *const fields = laci_fields(w, item->tensor);
        w->kernels->gossip->pull(
            (float)g->step, fields[AWAY].values, item->in, item->update,
            item->out, item->n);
    }
    return LAC_OK;
}

const laci_algorithm_ops laci_choco_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "choco",
    .plugin.summary = "compressed differences to public copies",
    .plugin.params = choco_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(laci_gamma),
    .family = LAC_FAMILY_MODEL,
    .takes_compressor = true,
    .form = LAC_FORM_CONTRACTIVE,
    .fixed_graph = true,
    .begin_saves = true,
    .configure = laci_gamma_configure,
    .plan = choco_plan,
    .message_bound = laci_gossip_bound,
    .start = choco_start,
    .begin = choco_begin,
    .end = choco_end,
    .cost = laci_gossip_cost,
    .step = laci_gamma_step,
};
