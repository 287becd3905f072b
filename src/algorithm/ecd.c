// SPDX-License-Identifier: MIT
// ECD-PSGD, extrapolation compression (Tang et al., arXiv:1803.06443): workers
// send a compressed extrapolation of their last step and keep estimates of the
// neighbours and of themselves, whose error falls like 1/t if the noise of C
// does not grow with its argument.
//
//     xn = sum_j w_ij y_j + update                 (with its own y_i)
//     z  = (1 - t/2) x_i + (t/2) xn,  C(z) is sent
//     y_j = (1 - 2/t) y_j + (2/t) C(z_j), its own included;  x_i = xn
//
// t counts from 1.
#include "algorithm/replicas.h"
#include "base/fail.h"
#include "kernels/gossip.h"

// After the peers' estimates come one's own and room for xn.
static laci_field *own_field(const laci_worker *w, size_t tensor)
{
    return &laci_fields(w, tensor)[w->peer_count];
}

static laci_field *next_field(const laci_worker *w, size_t tensor)
{
    return &laci_fields(w, tensor)[w->peer_count + 1];
}

static void ecd_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state;
    const lac_shape shape = lac_layout_tensor(w->layout, tensor)->shape;
    laci_replicas_plan(w, "estimate", tensor, plan);
    laci_plan_field(plan, "own", LAC_RANK_ANY, shape.rows * shape.cols);
    laci_plan_field(plan, NULL, LAC_RANK_ANY, shape.rows * shape.cols);
}

static lac_status ecd_start(
    void *state, laci_worker *w, const laci_round *round)
{
    LAC_TRY(laci_replicas_start(state, w, round));
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        w->kernels->gossip->apply(
            item->in, NULL, own_field(w, item->tensor)->values, item->n);
    }
    return LAC_OK;
}

static lac_status ecd_end(void *state, laci_worker *w, const laci_round *round)
{
    (void)state;
    const double t = (double)round->number + 1;
    const float keep = (float)(1 - 2 / t), take = (float)(2 / t);
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        float *const next = next_field(w, item->tensor)->values;
        laci_replicas_mix(
            w, round, i, own_field(w, item->tensor)->values, next);
        w->kernels->gossip->combine(
            (float)(1 - t / 2), item->in, (float)(t / 2), next, w->scratch,
            item->n);
        laci_gossip_put(w, w->compressor, round, i, w->scratch);
    }
    LAC_TRY(laci_gossip_exchange(w, w->compressor, round, 0));
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        const laci_field *const fields = laci_fields(w, item->tensor);
        for (uint32_t k = 0; k <= w->peer_count; k++) {
            float *const y = fields[k].values;
            w->kernels->gossip->scale(keep, y, y, item->n);
            if (k < w->peer_count) {
                laci_gossip_add(w, w->compressor, round, i, k, take, y);
            } else {
                laci_gossip_add_own(w, w->compressor, round, i, take, y);
            }
        }
        w->kernels->gossip->apply(
            next_field(w, item->tensor)->values, NULL, item->out, item->n);
    }
    return LAC_OK;
}

const laci_algorithm_ops laci_ecd_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "ecd",
    .plugin.summary = "extrapolation compression with estimates of neighbours",
    .family = LAC_FAMILY_MODEL,
    .takes_compressor = true,
    .form = LAC_FORM_UNBIASED,
    .fixed_graph = true,
    .takes_update = true,
    .plan = ecd_plan,
    .message_bound = laci_replicas_bound,
    .start = ecd_start,
    .end = ecd_end,
    .cost = laci_gossip_cost,
};
