// SPDX-License-Identifier: MIT
// The way of a payload: encoded into a message, checked once when it arrives,
// and applied.
#include <stdio.h>

#include "algorithm/framework/round.h"
#include "base/fail.h"
#include "compress/compressor.h"

enum { MESSAGE_SIZE = 256 };

static laci_view make_view(
    const laci_round *round, const lac_compressor *c, lac_shape shape,
    uint64_t name_hash, lac_scope scope)
{
    const lac_key key = lac_key_make(
        round->worker->seed, LAC_PURPOSE_COMPRESS, round->number, scope,
        name_hash);
    return (laci_view){
        .compressor = c,
        .call = laci_call_make(c, &key, shape),
    };
}

laci_view laci_view_make(
    const laci_round *round, const lac_compressor *c, size_t i, lac_scope scope)
{
    const laci_item *const item = &round->items[i];
    return make_view(round, c, item->shape, item->name_hash, scope);
}

laci_view laci_view_shard(
    const laci_round *round, const lac_compressor *c, const laci_shard *shard,
    lac_scope scope)
{
    return make_view(round, c, shard->shape, shard->name_hash, scope);
}

void laci_view_put(laci_view *view, const float *values, laci_writer *message)
{
    const lac_call *const call = &view->call;
    const size_t bound =
        lac_compressor_bound(view->compressor, call->shape, call->key.scope);
    uint8_t *const out = laci_writer_room(message, bound);
    view->bytes = out;
    view->len = 0;
    if (lac_shape_values(call->shape) > 0) {
        view->len = laci_payload_encode(view->compressor, call, values, out);
    }
    laci_writer_commit(message, view->len);
}

void laci_put(
    laci_round *round, const lac_compressor *c, lac_scope scope, size_t i,
    const float *values, laci_writer *message)
{
    round->sent[i] = laci_view_make(round, c, i, scope);
    laci_view_put(&round->sent[i], values, message);
}

static const lac_shape no_values = {0, 0};

void laci_put_nothing(
    laci_round *round, const lac_compressor *c, lac_scope scope, size_t i,
    laci_writer *message)
{
    laci_view *const view = &round->sent[i];
    *view = laci_view_make(round, c, i, scope);
    view->call.shape = no_values;
    view->bytes = laci_writer_room(message, 0);
    laci_writer_commit(message, 0);
}

bool laci_view_omitted(const laci_round *round, const laci_view *view, size_t i)
{
    return round->items[i].n > 0 && lac_shape_values(view->call.shape) == 0;
}

static lac_status check_view(const laci_view *view)
{
    if (lac_shape_values(view->call.shape) > 0) {
        return laci_payload_check(
            view->compressor, &view->call, view->bytes, view->len);
    }
    return laci_check_length(view->compressor->name, view->len, 0);
}

lac_status laci_view_take_bytes(
    const laci_round *round, laci_view *view, uint32_t k, size_t i)
{
    laci_reader *const reader = &round->readers[k];
    LAC_TRY(laci_reader_next(reader, &view->bytes, &view->len));
    const lac_status status = check_view(view);
    if (status != LAC_OK) {
        char why[MESSAGE_SIZE];
        (void)snprintf(why, sizeof(why), "%s", lac_error_message());
        return lac_fail(
            status, "%s: worker %u sent for %s: %s", round->worker->algorithm,
            reader->peer, round->items[i].name, why);
    }
    return LAC_OK;
}

lac_status laci_view_expect_finite(
    const laci_round *round, const laci_view *view, uint32_t k, size_t i)
{
    if (!laci_view_finite(view)) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: worker %u sent a value for %s that is not finite",
            round->worker->algorithm, round->readers[k].peer,
            round->items[i].name);
    }
    return LAC_OK;
}

lac_status laci_view_take(
    const laci_round *round, laci_view *view, uint32_t k, size_t i)
{
    LAC_TRY(laci_view_take_bytes(round, view, k, i));
    return laci_view_expect_finite(round, view, k, i);
}

lac_status laci_take(
    laci_round *round, const lac_compressor *c, lac_scope scope, uint32_t k,
    size_t i)
{
    laci_view *const view = laci_received(round, k, i);
    *view = laci_view_make(round, c, i, scope);
    return laci_view_take(round, view, k, i);
}

// How the payloads of a message are taken.
typedef enum take_how { TAKE_BYTES, TAKE_ALL, TAKE_SOME } take_how;

static lac_status take_payload(
    laci_round *round, uint32_t k, size_t i, take_how how)
{
    laci_view *const view = laci_received(round, k, i);
    if (how == TAKE_SOME && laci_reader_at_empty(&round->readers[k])) {
        view->call.shape = no_values;
    }
    return how == TAKE_BYTES ? laci_view_take_bytes(round, view, k, i)
                             : laci_view_take(round, view, k, i);
}

static lac_status take_messages(
    laci_round *round, const lac_compressor *c, uint32_t count, take_how how)
{
    for (uint32_t k = 0; k < count; k++) {
        const lac_scope scope = lac_scope_worker(round->readers[k].peer);
        for (size_t i = 0; i < round->count; i++) {
            *laci_received(round, k, i) = laci_view_make(round, c, i, scope);
            LAC_TRY(take_payload(round, k, i, how));
        }
        LAC_TRY(laci_reader_done(&round->readers[k]));
    }
    return LAC_OK;
}

lac_status laci_take_all(
    laci_round *round, const lac_compressor *c, uint32_t count, bool scan)
{
    return laci_group_abort_on_failure(
        round->group,
        take_messages(round, c, count, scan ? TAKE_ALL : TAKE_BYTES));
}

lac_status laci_take_some(
    laci_round *round, const lac_compressor *c, uint32_t count)
{
    return laci_group_abort_on_failure(
        round->group, take_messages(round, c, count, TAKE_SOME));
}

void laci_view_read(const laci_view *view, float *x)
{
    if (lac_shape_values(view->call.shape) > 0) {
        laci_payload_decode(
            view->compressor, &view->call, view->bytes, view->len, x);
    }
}

void laci_view_add(const laci_view *view, float a, float *y)
{
    if (lac_shape_values(view->call.shape) > 0) {
        laci_payload_decode_add(
            view->compressor, &view->call, view->bytes, view->len, a, y);
    }
}

size_t laci_part_size(const lac_compressor *c)
{
    return laci_payload_has_parts(c) ? LAC_PART : SIZE_MAX;
}

void laci_view_add_part(
    const laci_view *view, size_t first, size_t n, float a, float *y)
{
    const size_t values = lac_shape_values(view->call.shape);
    if (n == values) {
        laci_view_add(view, a, y);
    } else if (values > 0) {
        laci_payload_decode_add_part(
            view->compressor, &view->call, view->bytes, view->len,
            (lac_part){first, n}, a, y);
    }
}

bool laci_view_finite(const laci_view *view)
{
    return lac_shape_values(view->call.shape) == 0 ||
           laci_payload_finite(
               view->compressor, &view->call, view->bytes, view->len);
}

size_t laci_body_size(
    const laci_worker *w, const lac_compressor *c, lac_scope_kind scope)
{
    size_t size = 0;
    for (size_t t = 0; t < lac_layout_count(w->layout); t++) {
        size += LACI_LENGTH_SIZE + laci_tensor_bound(w, c, t, scope);
    }
    return size;
}

void laci_list_compressor(
    laci_listing *l, const lac_compressor *c, lac_scope_kind scope)
{
    if ((lac_compressor_traits(c, scope) & LAC_TRAIT_FIXED_SIZE) == 0) {
        l->flags |= LAC_EXCHANGE_BOUND;
    }
}
