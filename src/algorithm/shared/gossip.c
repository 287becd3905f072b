// SPDX-License-Identifier: MIT
#include "algorithm/shared/gossip.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/vector.h"

// The phase of the exact exchange of replicas; rounds use phase 0.
enum { PHASE_REPLICAS = 1 };

// Values of a message that is not written through the caches, since receivers
// would not find it there, and of its parts: each begins and ends with a few
// writes that are slower.
enum { STREAMED = 1 << 22, STREAM_PART = 1 << 16 };

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

// Write values of an item to its payload, and find those that are not finite.
static void gossip_stream(laci_loop *loop, size_t i, size_t first, size_t n)
{
    const laci_round *const round = loop->round;
    const float *const x = round->items[i].in + first;
    uint8_t *const *const payloads = loop->context;
    const uint32_t most = round->worker->kernels->vector->stream_payload(
        x, *payloads + laci_sent_at(round, i) + first * sizeof(*x), n);
    if (most >= LACI_INFINITY_BITS) {
        laci_loop_fail(loop, i);
    }
}

static void gossip_copy(laci_loop *loop, size_t i, size_t first, size_t n)
{
    const laci_round *const round = loop->round;
    uint8_t *const *const payloads = loop->context;
    uint8_t *const bytes = *payloads + laci_sent_at(round, i);
    const float *const x = round->items[i].in + first;
    if (!laci_all_finite(round->worker->kernels, x, n)) {
        laci_loop_fail(loop, i);
    }
    laci_put_floats(bytes + first * sizeof(*x), x, n);
}

lac_status laci_gossip_put_exactly(laci_round *round)
{
    const laci_worker *const w = round->worker;
    const lac_scope scope = lac_scope_worker(w->rank);
    uint8_t *payloads = NULL; // the first of them
    size_t values = 0;
    for (size_t i = 0; i < round->count; i++) {
        const size_t len = round->items[i].n * sizeof(float);
        laci_writer *const message = message_for(round, i);
        laci_view *const view = laci_sent(round, i);
        uint8_t *const bytes = laci_writer_room(message, len);
        payloads = i == 0 ? bytes : payloads;
        *view = laci_view_make(round, w->identity, i, scope);
        view->bytes = bytes;
        view->len = len;
        laci_writer_commit(message, len);
        values += round->items[i].n;
    }
    const bool streams = values >= STREAMED;
    const size_t bad = laci_split(
        &payloads, round, 0, round->count, streams ? STREAM_PART : LAC_PART,
        streams ? gossip_stream : gossip_copy);
    return bad == round->count ? LAC_OK : laci_nonfinite_refuse(round, bad);
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

static float own_weight(const laci_round *round, double rate)
{
    return (float)(1 - (1 - round->self_weight) * rate);
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

// How to mix uncompressed values.
typedef struct exact_mix {
    double rate;
    bool whole; // with the update, to `out`; else to the field
} exact_mix;

// Mixes values in parts that stay in the cache. Those that are not finite
// before the update are found; a non-finite value of a neighbour always shows
// in them.
static void mix_values(laci_loop *loop, size_t i, size_t first, size_t n)
{
    const laci_round *const round = loop->round;
    const exact_mix *const how = loop->context;
    const laci_item *const item = &round->items[i];
    const laci_kernels *const kernels = round->worker->kernels;
    const float own = own_weight(round, how->rate);
    float *const out = how->whole ? item->out : item->fields[MIXED].values;
    float *const y = out + first;
    kernels->gossip->scale(own, item->in + first, y, n);
    for (uint32_t k = 0; k < round->edge_count; k++) {
        kernels->vector->add_payload(
            (float)(how->rate * round->edges[k].weight),
            laci_received(round, k, i)->bytes + first * sizeof(*y), y, n);
    }
    if (!laci_all_finite(kernels, y, n)) {
        laci_loop_fail(loop, i);
    }
    if (how->whole && item->update != NULL) {
        kernels->vector->add(item->update + first, y, n);
    }
}

// Sends the values and mixes them with those that arrive.
static lac_status mix_exactly(laci_round *round, exact_mix how)
{
    LAC_TRY(laci_gossip_put_exactly(round));
    LAC_TRY(laci_gossip_exchange_any(round, round->worker->identity, 0));
    const size_t bad =
        laci_split(&how, round, 0, round->count, LAC_PART, mix_values);
    if (bad == round->count) {
        return LAC_OK;
    }
    // The message that was sent has the old values.
    for (size_t i = 0; how.whole && i < round->count; i++) {
        laci_view_read(laci_sent(round, i), round->items[i].out);
    }
    for (uint32_t k = 0; k < round->edge_count; k++) {
        LAC_TRY(laci_group_abort_on_failure(
            round->group, laci_view_expect_finite(
                              round, laci_received(round, k, bad), k, bad)));
    }
    return laci_group_abort_on_failure(
        round->group,
        lac_fail(
            LAC_ERR_INVALID,
            "%s: worker %u has values in %s that overflow in this round",
            round->worker->algorithm, round->worker->rank,
            round->items[bad].name));
}

lac_status laci_mixing_begin(laci_round *round, const lac_compressor *c)
{
    for (size_t i = 0; i < round->count; i++) {
        laci_gossip_put(round, c, i, round->items[i].in);
    }
    LAC_TRY(laci_gossip_exchange(round, c, 0));
    for (size_t i = 0; i < round->count; i++) {
        laci_mixing_mix(
            round, i, own_weight(round, 1), 1,
            round->items[i].fields[MIXED].values);
    }
    return LAC_OK;
}

lac_status laci_mixing_begin_exactly(laci_round *round, double rate)
{
    return mix_exactly(round, (exact_mix){.rate = rate});
}

lac_status laci_mixing_mix_exactly(laci_round *round, double rate)
{
    return mix_exactly(round, (exact_mix){.rate = rate, .whole = true});
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
    const laci_round *round, size_t i, size_t first, size_t n, const float *own,
    float *out)
{
    const laci_item *const item = &round->items[i];
    const laci_kernels *const kernels = round->worker->kernels;
    const float *const update =
        item->update == NULL ? NULL : item->update + first;
    const float self = (float)round->self_weight;
    const uint32_t count = round->edge_count;
    if (count == 0) {
        kernels->gossip->scale(self, own, out, n);
    } else {
        kernels->gossip->combine(
            self, own, (float)round->edges[0].weight,
            item->fields[0].values + first, count == 1 ? update : NULL, out, n);
    }
    for (uint32_t k = 1; k < count; k++) {
        kernels->vector->add_scaled(
            (float)round->edges[k].weight, item->fields[k].values + first, out,
            n);
    }
    if (count != 1 && update != NULL) {
        kernels->vector->add(update, out, n);
    }
}

lac_status laci_replicas_round(
    laci_round *round, laci_loop_body *write_z, laci_loop_body *apply)
{
    const lac_compressor *const c = round->worker->compressor;
    for (size_t i = 0; i < round->count; i++) {
        const size_t bad = laci_split(NULL, round, i, i + 1, LAC_PART, write_z);
        laci_gossip_put(round, c, i, round->scratch);
        if (bad == i) {
            LAC_TRY(laci_nonfinite_find(round, i));
        }
    }
    LAC_TRY(laci_gossip_exchange(round, c, 0));
    (void)laci_split(NULL, round, 0, round->count, laci_part_size(c), apply);
    return LAC_OK;
}

size_t laci_replicas_start_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    (void)state;
    return laci_tensor_bound(w, w->identity, tensor, LAC_SCOPE_WORKER);
}
