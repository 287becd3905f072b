// SPDX-License-Identifier: MIT
#include "algorithm/shared/gossip.h"

#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/vector.h"

// The phase of the exact exchange of replicas; rounds use phase 0.
enum { PHASE_REPLICAS = 1 };

enum { MIX_BLOCK = 1 << 13 }; // values, which stay in the first cache

// Returns the message that item `i` is appended to.
static laci_writer *message_for(laci_round *round, size_t i)
{
    if (i == 0) {
        round->message = laci_group_message(round->group, 0); // empties it
    }
    return round->message;
}

void laci_gossip_put(
    laci_round *round, const lac_compressor *c, size_t i, const float *values)
{
    const lac_scope scope = lac_scope_worker(round->worker->rank);
    laci_put(round, c, scope, i, values, message_for(round, i));
}

void laci_gossip_omit(laci_round *round, const lac_compressor *c, size_t i)
{
    const lac_scope scope = lac_scope_worker(round->worker->rank);
    laci_put_nothing(round, c, scope, i, message_for(round, i));
}

// Differences and sums of finite values may overflow. The framework has
// scanned what is sent uncompressed.
static lac_status check_sent(const laci_round *round, const lac_compressor *c)
{
    const laci_worker *const w = round->worker;
    for (size_t i = 0; c != w->identity && i < round->count; i++) {
        if (!laci_view_finite(laci_sent(round, i))) {
            return lac_fail(
                LAC_ERR_INVALID,
                "%s: worker %u has values in %s that overflow in this round",
                w->algorithm, w->rank, round->items[i].name);
        }
    }
    return LAC_OK;
}

static lac_status gossip_exchange(
    laci_round *round, const lac_compressor *c, uint32_t phase, bool scan)
{
    LAC_TRY(laci_group_exchange(
        round->group, round->number, phase, round->edges, round->edge_count,
        true, round->readers));
    return laci_take_all(round, c, round->edge_count, scan);
}

lac_status laci_gossip_exchange(
    laci_round *round, const lac_compressor *c, uint32_t phase)
{
    LAC_TRY(laci_group_abort_on_failure(round->group, check_sent(round, c)));
    return gossip_exchange(round, c, phase, true);
}

lac_status laci_gossip_exchange_some(
    laci_round *round, const lac_compressor *c, uint32_t phase)
{
    LAC_TRY(laci_group_abort_on_failure(round->group, check_sent(round, c)));
    LAC_TRY(laci_group_exchange(
        round->group, round->number, phase, round->edges, round->edge_count,
        true, round->readers));
    return laci_take_some(round, c, round->edge_count);
}

lac_status laci_gossip_exchange_any(
    laci_round *round, const lac_compressor *c, uint32_t phase)
{
    return gossip_exchange(round, c, phase, false);
}

size_t laci_gossip_bound(const void *state, const laci_worker *w, size_t tensor)
{
    (void)state;
    return laci_tensor_bound(
        w, w->compressor != NULL ? w->compressor : w->identity, tensor,
        LAC_SCOPE_WORKER);
}

double laci_gossip_degree(const laci_worker *w)
{
    const uint32_t period = lac_topology_period(w->topology);
    double edges = 0;
    for (uint32_t round = 0; round < period; round++) {
        const lac_edge *ignored;
        edges += lac_topology_edges(w->topology, w->rank, round, &ignored);
    }
    return edges / period;
}

void laci_gossip_cost(const void *state, const laci_worker *w, lac_cost *out)
{
    for (size_t t = 0; t < lac_layout_count(w->layout); t++) {
        out->payload_bytes += (double)laci_gossip_bound(state, w, t);
    }
    out->messages = laci_gossip_degree(w);
    out->phases = 1;
}

static size_t same_body(const void *context, uint32_t worker, uint32_t peer)
{
    const size_t *const body = context;
    (void)worker, (void)peer;
    return *body;
}

void laci_gossip_list(laci_listing *out, const laci_worker *w, size_t body)
{
    laci_list_exchange(out, w->topology, same_body, &body);
}

void laci_gossip_exchanges(
    const void *state, const laci_worker *w, laci_listing *out)
{
    (void)state;
    const lac_compressor *const c =
        w->compressor != NULL ? w->compressor : w->identity;
    laci_list_compressor(out, c, LAC_SCOPE_WORKER);
    laci_gossip_list(out, w, laci_body_size(w, c, LAC_SCOPE_WORKER));
}

enum { MIXED }; // the field of a tensor that is mixed

void laci_mixing_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state;
    laci_plan_working(plan, laci_tensor_values(w, tensor));
}

void laci_mixing_mix(
    const laci_round *round, size_t i, float own, double rate, float *out)
{
    const laci_item *const item = &round->items[i];
    round->worker->kernels->gossip->scale(own, item->in, out, item->n);
    for (uint32_t k = 0; k < round->edge_count; k++) {
        const float weight = (float)(rate * round->edges[k].weight);
        laci_view_add(laci_received(round, k, i), weight, out);
    }
}

// Mixes uncompressed values in blocks that stay in the cache. Fails if the
// result is not finite; a non-finite value of a neighbour always shows in it.
static lac_status mix_exactly(
    const laci_round *round, size_t i, float own, double rate, float *out)
{
    const laci_item *const item = &round->items[i];
    const laci_kernels *const kernels = round->worker->kernels;
    bool finite = true;
    for (size_t start = 0; start < item->n; start += MIX_BLOCK) {
        const size_t left = item->n - start;
        const size_t n = left < MIX_BLOCK ? left : MIX_BLOCK;
        float *const y = out + start;
        kernels->gossip->scale(own, item->in + start, y, n);
        for (uint32_t k = 0; k < round->edge_count; k++) {
            kernels->vector->add_payload(
                (float)(rate * round->edges[k].weight),
                laci_received(round, k, i)->bytes + start * sizeof(*y), y, n);
        }
        finite = finite && laci_all_finite(kernels, y, n);
    }
    for (uint32_t k = 0; !finite && k < round->edge_count; k++) {
        LAC_TRY(
            laci_view_expect_finite(round, laci_received(round, k, i), k, i));
    }
    return finite
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_INVALID,
                     "%s: worker %u has values in %s that overflow in "
                     "this round",
                     round->worker->algorithm, round->worker->rank, item->name);
}

lac_status laci_mixing_begin(
    laci_round *round, const lac_compressor *c, double rate)
{
    const bool exact = c == round->worker->identity;
    for (size_t i = 0; i < round->count; i++) {
        laci_gossip_put(round, c, i, round->items[i].in);
    }
    LAC_TRY(
        exact ? gossip_exchange(round, c, 0, false)
              : laci_gossip_exchange(round, c, 0));
    const float own = (float)(1 - (1 - round->self_weight) * rate);
    for (size_t i = 0; i < round->count; i++) {
        float *const mixed = round->items[i].fields[MIXED].values;
        if (exact) {
            LAC_TRY(laci_group_abort_on_failure(
                round->group, mix_exactly(round, i, own, rate, mixed)));
        } else {
            laci_mixing_mix(round, i, own, rate, mixed);
        }
    }
    return LAC_OK;
}

lac_status laci_mixing_end(void *state, laci_round *round)
{
    (void)state;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        round->worker->kernels->gossip->apply(
            item->fields[MIXED].values, item->update, item->out, item->n);
    }
    return LAC_OK;
}

void laci_replicas_plan(
    const laci_worker *w, const char *name, size_t tensor, laci_plan *plan)
{
    for (uint32_t k = 0; k < w->peer_count; k++) {
        laci_plan_peer(plan, name, w->peers[k], laci_tensor_values(w, tensor));
    }
}

lac_status laci_replicas_start(void *state, laci_round *round)
{
    (void)state;
    const lac_compressor *const c = round->worker->identity;
    for (size_t i = 0; i < round->count; i++) {
        laci_gossip_put(round, c, i, round->items[i].in);
    }
    LAC_TRY(laci_gossip_exchange(round, c, PHASE_REPLICAS));
    for (size_t i = 0; i < round->count; i++) {
        for (uint32_t k = 0; k < round->edge_count; k++) {
            laci_view_read(
                laci_received(round, k, i), round->items[i].fields[k].values);
        }
    }
    return LAC_OK;
}

void laci_replicas_mix(
    const laci_round *round, size_t i, const float *own, float *out)
{
    const laci_item *const item = &round->items[i];
    const laci_kernels *const kernels = round->worker->kernels;
    kernels->gossip->scale((float)round->self_weight, own, out, item->n);
    for (uint32_t k = 0; k < round->edge_count; k++) {
        kernels->vector->add_scaled(
            (float)round->edges[k].weight, item->fields[k].values, out,
            item->n);
    }
    if (item->update != NULL) {
        kernels->vector->add(item->update, out, item->n);
    }
}

size_t laci_replicas_start_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    (void)state;
    return laci_tensor_bound(w, w->identity, tensor, LAC_SCOPE_WORKER);
}
