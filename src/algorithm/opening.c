// SPDX-License-Identifier: MIT
// The group of an algorithm: who must agree on what, and how much room the
// largest messages and sums of all tensors take.
#include <xxhash.h>

#include "algorithm/containment.h"
#include "base/bytes.h"

// What all workers of a group must have in common.
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

// The most payload bytes in the message to worker `owner`.
static size_t message_to(const lac_algorithm *a, uint32_t owner)
{
    const laci_worker *const w = &a->worker;
    size_t sum = 0;
    for (size_t t = 0; t < lac_layout_count(w->layout); t++) {
        if (!a->ops->sharded || laci_owner(w, t) == owner) {
            sum += a->ops->message_bound(a->state, w, t);
        }
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
    return most;
}

static uint32_t messages_max(const lac_algorithm *a)
{
    if (a->ops->family == LAC_FAMILY_MODEL) {
        return a->worker.peer_count;
    }
    return a->ops->sharded ? a->worker.world : 1;
}

size_t laci_algorithm_sum_max(const lac_algorithm *a)
{
    size_t sum = 0;
    for (size_t t = 0; t < lac_layout_count(a->worker.layout); t++) {
        sum += a->ops->sum_bound == NULL
                   ? 0
                   : a->ops->sum_bound(a->state, &a->worker, t);
    }
    return sum;
}

lac_status laci_algorithm_open_group(
    lac_algorithm *a, const lac_algorithm_options *o)
{
    const bool gradient = a->ops->family == LAC_FAMILY_GRADIENT;
    const laci_group_options options = {
        .transport = o->transport,
        .session = o->session,
        .identity = identity_of(o),
        .timeout = o->timeout,
        .peers_max = gradient ? a->worker.world - 1 : a->worker.peer_count,
        .messages_max = messages_max(a),
        .message_max =
            message_max(a) + (gradient ? laci_containment_room(a) : 0),
        .tensors_max = lac_layout_count(o->layout) + gradient,
        .native_sums = a->ops->native_sums,
        .timing = o->timing,
        .sum_max = laci_algorithm_sum_max(a) + LACI_SUM_NOTES,
    };
    return laci_group_open(&a->worker.group, &options);
}
