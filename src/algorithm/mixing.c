// SPDX-License-Identifier: MIT
#include "algorithm/mixing.h"

#include "base/fail.h"
#include "kernels/gossip.h"

void laci_mixing_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state;
    const lac_shape shape = lac_layout_tensor(w->layout, tensor)->shape;
    laci_plan_field(plan, NULL, LAC_RANK_ANY, shape.rows * shape.cols);
}

lac_status laci_mixing_begin(
    laci_worker *w, lac_compressor *c, float rate, const laci_round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        laci_gossip_put(w, c, round, i, round->items[i].in);
    }
    LAC_TRY(laci_gossip_exchange(w, c, round, 0));
    const lac_edge *edges;
    const uint32_t count = laci_worker_edges(w, round->number, &edges);
    const double self =
        lac_topology_self_weight(w->topology, w->rank, round->number);
    const float own = (float)(1 - (1 - self) * (double)rate);
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        float *const mixed = laci_fields(w, item->tensor)[0].values;
        w->kernels->gossip->scale(own, item->in, mixed, item->n);
        for (uint32_t k = 0; k < count; k++) {
            const float weight = (float)((double)rate * edges[k].weight);
            laci_gossip_add(w, c, round, i, k, weight, mixed);
        }
    }
    return LAC_OK;
}

lac_status laci_mixing_end(void *state, laci_worker *w, const laci_round *round)
{
    (void)state;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        const float *const mixed = laci_fields(w, item->tensor)[0].values;
        w->kernels->gossip->apply(mixed, item->update, item->out, item->n);
    }
    return LAC_OK;
}
