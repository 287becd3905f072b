// SPDX-License-Identifier: MIT
#include "algorithm/framework/sizes.h"

#include <xxhash.h>

#include "algorithm/framework/fold.h"
#include "algorithm/framework/inner.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "compress/compressor.h"
#include "transport/transport.h"

// The group: what its workers must have in common, and the room that the
// largest messages and sums of all tensors take.

static uint64_t identity_of(const lac_algorithm_options *o)
{
    uint8_t source[48];
    const char *const compressor = o->compressor == NULL ? "" : o->compressor;
    laci_put_u64(source, lac_layout_hash(o->layout));
    laci_put_u64(source + 8, lac_name_hash(o->spec));
    laci_put_u64(source + 16, lac_name_hash(compressor));
    laci_put_u64(source + 24, o->seed);
    laci_put_u64(source + 32, (uint64_t)o->nonfinite);
    laci_put_u64(
        source + 40, o->topology == NULL ? 0 : lac_topology_hash(o->topology));
    return XXH3_64bits(source, sizeof(source));
}

// The most payload bytes in a message of a round to worker `owner`, or from it
// to all.
static size_t message_to(const lac_algorithm *a, uint32_t owner)
{
    const laci_worker *const w = &a->worker;
    if (a->ops->sharded) {
        const laci_served *const served = &w->shards.served[owner];
        return served->up > served->back ? served->up : served->back;
    }
    size_t sum = 0;
    for (size_t t = 0; t < lac_layout_count(w->layout); t++) {
        sum += a->ops->message_bound == NULL
                   ? 0
                   : a->ops->message_bound(a->state, w, t);
    }
    return sum;
}

// The payload bytes of the start's message.
static size_t start_message(const lac_algorithm *a)
{
    size_t sum = 0;
    for (size_t t = 0; t < lac_layout_count(a->worker.layout); t++) {
        sum += a->ops->start_bound == NULL
                   ? 0
                   : a->ops->start_bound(a->state, &a->worker, t);
    }
    return sum;
}

static size_t message_max(const lac_algorithm *a)
{
    size_t most = message_to(a, 0);
    for (uint32_t k = 1; a->ops->sharded && k < a->worker.world; k++) {
        const size_t size = message_to(a, k);
        most = size > most ? size : most;
    }
    const size_t start = start_message(a);
    return start > most ? start : most;
}

static uint32_t messages_max(const lac_algorithm *a)
{
    return a->ops->sharded            ? a->worker.world
           : a->ops->message_per_peer ? a->worker.peer_count
                                      : 1;
}

// The payloads of a tensor in a message.
static size_t tensor_payloads(const lac_algorithm *a)
{
    return a->ops->payloads == 0 ? 1 : a->ops->payloads;
}

size_t laci_sent_max(const lac_algorithm *a)
{
    return tensor_payloads(a) * lac_layout_count(a->worker.layout);
}

// The most payloads in a message.
static size_t payloads_max(const lac_algorithm *a)
{
    const laci_worker *const w = &a->worker;
    size_t most = a->ops->sharded ? 0 : laci_sent_max(a);
    for (uint32_t k = 0; a->ops->sharded && k < w->world; k++) {
        const size_t count = w->shards.served[k].count;
        most = count > most ? count : most;
    }
    return most;
}

// The most floats of a sum, without notes.
static size_t sum_max(const lac_algorithm *a)
{
    size_t sum = 0;
    for (size_t t = 0; t < lac_layout_count(a->worker.layout); t++) {
        sum += a->ops->sum_bound == NULL
                   ? 0
                   : a->ops->sum_bound(a->state, &a->worker, t);
    }
    return sum;
}

// The floats of round->sums, of which `options` has the rest set.
static size_t sums_room(
    const lac_algorithm *a, const laci_group_options *options)
{
    if (!a->ops->streams_sums) {
        return options->sum_max;
    }
    const size_t n = laci_group_copied(options, a->worker.world);
    return n < options->sum_max ? n + LACI_SUM_NOTES : n;
}

lac_status laci_algorithm_group_options(
    const lac_algorithm *a, const lac_algorithm_options *o,
    laci_group_options *out)
{
    const bool gradient = a->ops->family == LAC_FAMILY_GRADIENT;
    const laci_transport_ops *like = NULL;
    if (o->transport == NULL && o->transport_name != NULL) {
        LAC_TRY(laci_transport_find(o->transport_name, &like));
    }
    laci_group_options options = {
        .transport = o->transport,
        .like = like,
        .session = o->session,
        .identity = identity_of(o),
        .timeout = o->timeout,
        .peers_max = gradient ? a->worker.world - 1 : a->worker.peer_count,
        .messages_max = messages_max(a),
        .message_max = message_max(a) + (gradient ? laci_nonfinite_room(a) : 0),
        .tensors_max = payloads_max(a) + gradient,
        .native_sums = a->ops->native_sums,
        .timing = o->timing,
        .sum_max = sum_max(a) + LACI_SUM_NOTES,
    };
    const size_t sums = sums_room(a, &options) * sizeof(float);
    options.floats = laci_aligned(sums) / sizeof(float) + a->nonfinite.raw_n;
    *out = options;
    return LAC_OK;
}

// The working memory of a round.

static size_t largest_shard(const laci_shards *shards)
{
    size_t most = 0;
    for (size_t i = 0; i < shards->count; i++) {
        const size_t n = lac_shape_values(shards->list[i].shape);
        most = n > most ? n : most;
    }
    return most;
}

size_t laci_scratch_max(const lac_algorithm *a)
{
    return !a->ops->scratch  ? 0
           : a->ops->sharded ? largest_shard(&a->worker.shards)
                             : laci_largest_tensor(&a->worker);
}

size_t laci_views_max(const lac_algorithm *a)
{
    const laci_worker *const w = &a->worker;
    if (a->ops->sharded) {
        return w->shards.count;
    }
    const size_t peers = w->topology == NULL ? w->world : w->peer_count;
    return peers * laci_sent_max(a);
}

static size_t compressor_scratch(const lac_compressor *c)
{
    size_t size = 0;
    for (; c != NULL; c = c->inner) {
        size += c->scratch_size;
    }
    return size;
}

// The bytes of messages that rounds touch, in two sets of buffers: both hold
// the messages of a round, and one that of the start; a sharded algorithm sends
// to all owners from one set, and its own shard from the other.
static size_t message_bytes(const lac_algorithm *a)
{
    size_t round = 0;
    for (uint32_t k = 0; k < messages_max(a); k++) {
        round += message_to(a, k);
    }
    if (a->ops->sharded) {
        return round + message_to(a, a->worker.rank);
    }
    const size_t start = start_message(a);
    return round + (start > round ? start : round);
}

// The bytes of a handle that rounds touch. Those of nonfinite.raw are touched
// only when a value is not finite.
lac_status laci_memory_bytes(
    const lac_algorithm *a, const lac_algorithm_options *o, size_t *out)
{
    laci_group_options options;
    size_t inner = 0;
    LAC_TRY(laci_algorithm_group_options(a, o, &options));
    if (a->worker.inner != NULL) {
        const lac_algorithm_options inner_options = laci_inner_options(a, o);
        LAC_TRY(laci_memory_bytes(a->worker.inner, &inner_options, &inner));
    }
    const size_t floats = a->fields.values + a->nonfinite.saved_n +
                          laci_scratch_max(a) + sums_room(a, &options) -
                          LACI_SUM_NOTES;
    const size_t views = laci_views_max(a) * sizeof(laci_view);
    *out = inner + floats * sizeof(float) + views + a->fields.errors +
           compressor_scratch(a->worker.compressor) +
           compressor_scratch(a->worker.server) + message_bytes(a) +
           laci_group_sum_bytes(&options, a->worker.world) + laci_fold_room(a);
    return LAC_OK;
}
