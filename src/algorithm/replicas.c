// SPDX-License-Identifier: MIT
#include "algorithm/replicas.h"

#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/vector.h"

// The phase of the exact exchange; rounds use phase 0.
enum { PHASE_START = 1 };

void laci_replicas_plan(
    const laci_worker *w, const char *name, size_t tensor, laci_plan *plan)
{
    const lac_shape shape = lac_layout_tensor(w->layout, tensor)->shape;
    for (uint32_t k = 0; k < w->peer_count; k++) {
        laci_plan_field(plan, name, w->peers[k], shape.rows * shape.cols);
    }
}

lac_status laci_replicas_start(
    void *state, laci_worker *w, const laci_round *round)
{
    (void)state;
    for (size_t i = 0; i < round->count; i++) {
        laci_gossip_put(w, w->raw, round, i, round->items[i].in);
    }
    LAC_TRY(laci_gossip_exchange(w, w->raw, round, PHASE_START));
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        const laci_field *const fields = laci_fields(w, item->tensor);
        for (uint32_t k = 0; k < w->peer_count; k++) {
            laci_gossip_read(w, w->raw, round, i, k, fields[k].values);
        }
    }
    return LAC_OK;
}

void laci_replicas_mix(
    const laci_worker *w, const laci_round *round, size_t i, const float *own,
    float *out)
{
    const laci_item *const item = &round->items[i];
    const laci_field *const fields = laci_fields(w, item->tensor);
    const lac_edge *edges;
    const uint32_t count = laci_worker_edges(w, round->number, &edges);
    const double self =
        lac_topology_self_weight(w->topology, w->rank, round->number);
    w->kernels->gossip->scale((float)self, own, out, item->n);
    for (uint32_t k = 0; k < count; k++) {
        w->kernels->vector->add_scaled(
            (float)edges[k].weight, fields[k].values, out, item->n);
    }
    if (item->update != NULL) {
        w->kernels->vector->add(item->update, out, item->n);
    }
}

size_t laci_replicas_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    const lac_shape shape = lac_layout_tensor(w->layout, tensor)->shape;
    const size_t payload = laci_gossip_bound(state, w, tensor);
    const size_t whole = lac_compressor_bound(w->raw, shape, LAC_SCOPE_WORKER);
    return payload > whole ? payload : whole;
}
