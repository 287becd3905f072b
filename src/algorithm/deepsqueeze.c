// SPDX-License-Identifier: MIT
// DeepSqueeze (Tang et al., arXiv:1907.07346): gossip of compressed values with
// an error memory, and a small step towards what arrives. One vector of memory
// and no copies of anybody.
//
//     v_i = x_i + e_i;  m_i = C(v_i), sent;  e_i = v_i - m_i
//     x_i += gamma (sum_j w_ij m_j - (1 - w_ii) m_i) + update
#include <string.h>

#include "algorithm/gamma.h"
#include "algorithm/gossip.h"
#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/vector.h"

// The fields of a tensor: the error memory, what is sent and then what of it
// was not, which is the next error memory, and the step.
enum { ERROR, SENT, STEP };

static const lac_param deepsqueeze_params[] = {
    {.name = "gamma",
     .aliases = "consensus_stepsize",
     .type = LAC_PARAM_F64_OR_WORD,
     .offset = offsetof(laci_gamma, gamma),
     .default_value = "auto",
     .min = 0,
     .max = 2,
     .above_min = true,
     .choices = "auto",
     .help = "step towards what neighbours send"},
    {0},
};

static void deepsqueeze_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state;
    const lac_shape shape = lac_layout_tensor(w->layout, tensor)->shape;
    const size_t n = shape.rows * shape.cols;
    laci_plan_field(plan, "error", LAC_RANK_ANY, n);
    laci_plan_field(plan, NULL, LAC_RANK_ANY, n);
    laci_plan_field(plan, NULL, LAC_RANK_ANY, n);
}

static lac_status deepsqueeze_start(
    void *state, laci_worker *w, const laci_round *round)
{
    laci_gamma *const g = state;
    (void)round;
    return g->step > 0 ? LAC_OK
                       : laci_gamma_find(w, laci_gamma_deepsqueeze, &g->step);
}

static lac_status deepsqueeze_begin(
    void *state, laci_worker *w, const laci_round *round)
{
    const laci_gamma *const g = state;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        const laci_field *const fields = laci_fields(w, item->tensor);
        w->kernels->gossip->apply(
            item->in, fields[ERROR].values, fields[SENT].values, item->n);
        laci_gossip_put(w, w->compressor, round, i, fields[SENT].values);
    }
    LAC_TRY(laci_gossip_exchange(w, w->compressor, round, 0));
    const lac_edge *edges;
    const uint32_t count = laci_worker_edges(w, round->number, &edges);
    const double self =
        lac_topology_self_weight(w->topology, w->rank, round->number);
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        const laci_field *const fields = laci_fields(w, item->tensor);
        float *const step = fields[STEP].values;
        laci_gossip_add_own(
            w, w->compressor, round, i, -1, fields[SENT].values);
        memset(step, 0, item->n * sizeof(*step));
        laci_gossip_add_own(
            w, w->compressor, round, i, (float)(g->step * (self - 1)), step);
        for (uint32_t k = 0; k < count; k++) {
            laci_gossip_add(
                w, w->compressor, round, i, k,
                (float)(g->step * edges[k].weight), step);
        }
    }
    return LAC_OK;
}

static lac_status deepsqueeze_end(
    void *state, laci_worker *w, const laci_round *round)
{
    (void)state;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        laci_field *const fields = laci_fields(w, item->tensor);
        float *const error = fields[ERROR].values;
        fields[ERROR].values = fields[SENT].values;
        fields[SENT].values = error;
        w->kernels->gossip->apply(
            item->in, fields[STEP].values, item->out, item->n);
        if (item->update != NULL) {
            w->kernels->vector->add(item->update, item->out, item->n);
        }
    }
    return LAC_OK;
}

const laci_algorithm_ops laci_deepsqueeze_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "deepsqueeze",
    .plugin.summary = "gossip of compressed values with an error memory",
    .plugin.params = deepsqueeze_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(laci_gamma),
    .family = LAC_FAMILY_MODEL,
    .takes_compressor = true,
    .form = LAC_FORM_CONTRACTIVE,
    .configure = laci_gamma_configure,
    .plan = deepsqueeze_plan,
    .message_bound = laci_gossip_bound,
    .start = deepsqueeze_start,
    .begin = deepsqueeze_begin,
    .end = deepsqueeze_end,
    .cost = laci_gossip_cost,
    .step = laci_gamma_step,
};
