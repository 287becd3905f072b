// SPDX-License-Identifier: MIT
// DCD-PSGD, difference compression (Tang et al., arXiv:1803.06443): a worker
// mixes replicas of its neighbours and applies the *compressed* change to its
// own values too, so that replicas equal their owners bit for bit.
//
//     z_i = sum_j w_ij xhat_j + update - x_i      (xhat_i = x_i)
//     x_i += C(z_i), sent;  xhat_j += C(z_j)
//
// C must be unbiased; its variance must stay below a limit of the graph, or
// the values diverge. The mean drifts by the mean of the noise.
#include "algorithm/shared/gossip.h"
#include "kernels/gossip.h"

static void dcd_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state;
    laci_replicas_plan(w, "replica", tensor, plan);
}

static lac_status dcd_end(void *state, laci_round *round)
{
    (void)state;
    const laci_worker *const w = round->worker;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        float *const z = round->scratch;
        laci_replicas_mix(round, i, item->in, z);
        w->kernels->gossip->subtract(z, item->in, z, item->n);
        laci_gossip_put(round, w->compressor, i, z);
    }
    LAC_TRY(laci_gossip_exchange(round, w->compressor, 0));
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        w->kernels->gossip->apply(item->in, NULL, item->out, item->n);
        laci_view_add(laci_sent(round, i), 1, item->out);
        for (uint32_t k = 0; k < round->edge_count; k++) {
            laci_view_add(
                laci_received(round, k, i), 1, item->fields[k].values);
        }
    }
    return LAC_OK;
}

const laci_algorithm_ops laci_dcd_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "dcd",
    .plugin.summary = "difference compression with replicas of neighbours",
    .plugin.example = "dcd qsgd:bucket=512",
    .family = LAC_FAMILY_MODEL,
    .takes_compressor = true,
    .form = LAC_FORM_UNBIASED,
    .fixed_graph = true,
    .takes_update = true,
    .scratch = true,
    .plan = dcd_plan,
    .message_bound = laci_gossip_bound,
    .start_bound = laci_replicas_start_bound,
    .start = laci_replicas_start,
    .end = dcd_end,
    .cost = laci_gossip_cost,
    .exchanges = laci_gossip_exchanges,
};
