// SPDX-License-Identifier: MIT
// DCD-PSGD, difference compression (Tang et al., arXiv:1803.06443): a worker
// mixes replicas of its neighbours and follows the *compressed* change of
// itself, so that replicas stay equal to their owners bit for bit.
//
//     z_i = sum_j w_ij xhat_j + update - x_i      (xhat_i = x_i)
//     x_i += C(z_i), sent;  xhat_j += C(z_j)
//
// C must be unbiased; its variance must stay below a limit of the graph, or
// the values diverge. The mean drifts by the mean of the noise.
#include "algorithm/replicas.h"
#include "base/fail.h"
#include "kernels/gossip.h"

static void dcd_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state;
    laci_replicas_plan(w, "replica", tensor, plan);
}

static lac_status dcd_end(void *state, laci_worker *w, const laci_round *round)
{
    (void)state;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        laci_replicas_mix(w, round, i, item->in, w->scratch);
        w->kernels->gossip->subtract(w->scratch, item->in, w->scratch, item->n);
        laci_gossip_put(w, w->compressor, round, i, w->scratch);
    }
    LAC_TRY(laci_gossip_exchange(w, w->compressor, round, 0));
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        const laci_field *const fields = laci_fields(w, item->tensor);
        w->kernels->gossip->apply(item->in, NULL, item->out, item->n);
        laci_gossip_add_own(w, w->compressor, round, i, 1, item->out);
        for (uint32_t k = 0; k < w->peer_count; k++) {
            laci_gossip_add(w, w->compressor, round, i, k, 1, fields[k].values);
        }
    }
    return LAC_OK;
}

const laci_algorithm_ops laci_dcd_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "dcd",
    .plugin.summary = "difference compression with replicas of neighbours",
    .family = LAC_FAMILY_MODEL,
    .takes_compressor = true,
    .form = LAC_FORM_UNBIASED,
    .fixed_graph = true,
    .takes_update = true,
    .plan = dcd_plan,
    .message_bound = laci_replicas_bound,
    .start = laci_replicas_start,
    .end = dcd_end,
    .cost = laci_gossip_cost,
};
