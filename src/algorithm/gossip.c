// SPDX-License-Identifier: MIT
#include "algorithm/gossip.h"

#include "base/fail.h"

static lac_key own_key(const laci_worker *w, const laci_round *round, size_t i)
{
    return laci_tensor_key(
        w, round->items[i].tensor, round->number, lac_scope_worker(w->rank));
}

void laci_gossip_put(
    laci_worker *w, lac_compressor *c, const laci_round *round, size_t i,
    const float *values)
{
    const lac_key key = own_key(w, round, i);
    const lac_shape shape = round->items[i].shape;
    const size_t bound = lac_compressor_bound(c, shape, LAC_SCOPE_WORKER);
    if (i == 0) {
        w->message = laci_group_message(w->group, 0); // empties it
    }
    uint8_t *const out = laci_writer_room(w->message, bound);
    size_t len = 0;
    // Sizes were reserved at open: encoding cannot fail.
    (void)!lac_compressor_encode(c, &key, shape, values, out, bound, &len);
    laci_writer_commit(w->message, len);
    w->own[i] = (laci_view){out, len};
}

// Takes the payloads of one neighbour's message apart and checks them.
static lac_status check_message(
    laci_worker *w, lac_compressor *c, const laci_round *round, uint32_t k)
{
    laci_reader *const reader = &w->readers[k];
    for (size_t i = 0; i < round->count; i++) {
        laci_view *const view = &w->views[k * round->count + i];
        const lac_key key = laci_tensor_key(
            w, round->items[i].tensor, round->number,
            lac_scope_worker(reader->peer));
        LAC_TRY(laci_reader_next(reader, &view->bytes, &view->len));
        LAC_TRY(lac_compressor_check(
            c, &key, round->items[i].shape, view->bytes, view->len));
    }
    return laci_reader_done(reader);
}

lac_status laci_gossip_exchange(
    laci_worker *w, lac_compressor *c, const laci_round *round, uint32_t phase)
{
    const lac_edge *edges;
    const uint32_t count = laci_worker_edges(w, round->number, &edges);
    LAC_TRY(laci_group_exchange(
        w->group, round->number, phase, edges, count, true, w->readers));
    for (uint32_t k = 0; k < count; k++) {
        const lac_status status = check_message(w, c, round, k);
        if (status != LAC_OK) {
            laci_group_abort(w->group, lac_error_message());
            return status;
        }
    }
    return LAC_OK;
}

static void add_view(
    lac_compressor *c, const lac_key *key, const laci_item *item,
    laci_view view, float a, float *y)
{
    // The payload was checked when it arrived: adding cannot fail.
    (void)!lac_compressor_decode_add(
        c, key, item->shape, view.bytes, view.len, a, y);
}

void laci_gossip_add(
    laci_worker *w, lac_compressor *c, const laci_round *round, size_t i,
    uint32_t k, float a, float *y)
{
    const lac_key key = laci_tensor_key(
        w, round->items[i].tensor, round->number,
        lac_scope_worker(w->readers[k].peer));
    add_view(c, &key, &round->items[i], w->views[k * round->count + i], a, y);
}

void laci_gossip_read(
    laci_worker *w, lac_compressor *c, const laci_round *round, size_t i,
    uint32_t k, float *x)
{
    const lac_key key = laci_tensor_key(
        w, round->items[i].tensor, round->number,
        lac_scope_worker(w->readers[k].peer));
    const laci_view view = w->views[k * round->count + i];
    // The payload was checked when it arrived: decoding cannot fail.
    (void)!lac_compressor_decode(
        c, &key, round->items[i].shape, view.bytes, view.len, x);
}

void laci_gossip_add_own(
    laci_worker *w, lac_compressor *c, const laci_round *round, size_t i,
    float a, float *y)
{
    const lac_key key = own_key(w, round, i);
    add_view(c, &key, &round->items[i], w->own[i], a, y);
}

size_t laci_gossip_bound(const void *state, const laci_worker *w, size_t tensor)
{
    (void)state;
    return lac_compressor_bound(
        w->compressor != NULL ? w->compressor : w->raw,
        lac_layout_tensor(w->layout, tensor)->shape, LAC_SCOPE_WORKER);
}

void laci_gossip_cost(const void *state, const laci_worker *w, lac_cost *out)
{
    for (size_t t = 0; t < lac_layout_count(w->layout); t++) {
        out->payload_bytes += (double)laci_gossip_bound(state, w, t);
    }
    double edges = 0;
    for (uint32_t round = 0; round < lac_topology_period(w->topology);
         round++) {
        const lac_edge *ignored;
        edges += lac_topology_edges(w->topology, w->rank, round, &ignored);
    }
    out->messages = edges / lac_topology_period(w->topology);
    out->phases = 1;
}
