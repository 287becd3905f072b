// SPDX-License-Identifier: MIT
#include "algorithm/framework/shards.h"

#include <stdlib.h>

#include "algorithm/framework/algorithm.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "collective/group.h"

enum {
    // The least loaded worker gets the next shard, so that loads differ by one
    // shard at most: by 1/32 of the mean.
    SHARDS_OF_A_WORKER = 32,
    // A length of 8 bytes is then less than 1 % of a shard of 9 bits a value.
    LEAST_VALUES = 1024,
};

// The values that both compressors can take as a group: the least common
// multiple of theirs. 0 if one of them needs whole tensors.
static size_t common_group(const laci_worker *w)
{
    const size_t up = lac_compressor_group(w->compressor);
    const size_t back = lac_compressor_group(w->server);
    size_t a = up, b = back, product;
    while (b != 0) {
        const size_t rest = a % b;
        a = b;
        b = rest;
    }
    return up > 0 && back > 0 && laci_mul(up / a, back, &product) ? product : 0;
}

// The values of a part of a tensor: a power of two, or the next multiple of a
// group.
static size_t part_values(const laci_worker *w)
{
    const size_t group = common_group(w);
    const size_t most =
        lac_layout_values(w->layout) / w->world / SHARDS_OF_A_WORKER;
    size_t n = LEAST_VALUES;
    while (n <= most / 2) {
        n *= 2;
    }
    if (group == 0 || group > SIZE_MAX - n) {
        return SIZE_MAX;
    }
    const size_t over = n % group;
    return over == 0 ? n : n + (group - over);
}

static size_t parts_of(size_t n, size_t part)
{
    return n / part + (n % part != 0);
}

static laci_shard make_shard(
    const laci_worker *w, size_t tensor, size_t part, size_t index)
{
    const lac_tensor *const t = lac_layout_tensor(w->layout, tensor);
    const size_t n = lac_shape_values(t->shape);
    const size_t start = index * part;
    const size_t left = n - start;
    const lac_shape shape =
        n <= part ? t->shape : (lac_shape){left < part ? left : part, 1};
    return (laci_shard){
        .tensor = tensor,
        .start = start,
        .shape = shape,
        .name_hash = t->name_hash + index,
        .up = lac_compressor_bound(w->compressor, shape, LAC_SCOPE_WORKER),
        .back = lac_compressor_bound(w->server, shape, LAC_SCOPE_SHARED),
    };
}

static lac_status split(laci_shards *shards, const laci_worker *w, size_t part)
{
    const size_t tensors = lac_layout_count(w->layout);
    laci_shard *next = shards->list;
    for (size_t t = 0; t < tensors; t++) {
        const size_t parts = parts_of(laci_tensor_values(w, t), part);
        shards->first[t] = (size_t)(next - shards->list);
        for (size_t i = 0; i < parts; i++) {
            *next = make_shard(w, t, part, i);
            LAC_TRY(lac_compressor_reserve(w->compressor, next->shape));
            LAC_TRY(lac_compressor_reserve(w->server, next->shape));
            next++;
        }
    }
    shards->first[tensors] = shards->count;
    return LAC_OK;
}

// The bytes of a shard in messages, both ways.
static size_t shard_bytes(const laci_shard *shard)
{
    return shard->up + shard->back + (size_t)2 * LACI_LENGTH_SIZE;
}

// Orders pointers to shards: the largest first, then as in the layout.
static int compare_sizes(const void *a, const void *b)
{
    const laci_shard *const *const x = a;
    const laci_shard *const *const y = b;
    const size_t x_size = shard_bytes(*x), y_size = shard_bytes(*y);
    if (x_size != y_size) {
        return x_size > y_size ? -1 : 1;
    }
    return *x < *y ? -1 : *x > *y;
}

// The bytes that a worker serves so far.
typedef struct load {
    size_t bytes;
    uint32_t rank;
} load;

static bool is_less(const load *a, const load *b)
{
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->rank < b->rank;
}

// Restores the order of a binary heap whose first load has grown: none is less
// than its parent.
static void sink_first(load *heap, size_t count)
{
    const load moved = heap[0];
    size_t at = 0;
    for (size_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && is_less(&heap[child + 1], &heap[child])) {
            child++;
        }
        if (!is_less(&heap[child], &moved)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

// Gives each shard, in this order, to the least loaded worker, of several to
// the one with the lowest rank.
static void assign_in_order(
    laci_shards *shards, laci_shard *const *order, load *heap, uint32_t world)
{
    for (uint32_t rank = 0; rank < world; rank++) {
        heap[rank] = (load){.rank = rank};
    }
    for (size_t i = 0; i < shards->count; i++) {
        laci_shard *const shard = order[i];
        laci_served *const served = &shards->served[heap[0].rank];
        shard->owner = heap[0].rank;
        served->count++;
        served->up += shard->up;
        served->back += shard->back;
        heap[0].bytes += shard_bytes(shard);
        sink_first(heap, world);
    }
}

static lac_status shards_no_memory(const laci_worker *w, size_t count)
{
    return lac_fail(
        LAC_ERR_NOMEM, "%s: no memory for %zu shards of %u workers",
        w->algorithm, count, w->world);
}

static lac_status assign_owners(laci_shards *shards, const laci_worker *w)
{
    laci_shard **const order =
        laci_zalloc((shards->count + 1) * sizeof(*order));
    load *const heap = laci_zalloc(w->world * sizeof(*heap));
    const bool complete = order != NULL && heap != NULL;
    if (complete) {
        for (size_t i = 0; i < shards->count; i++) {
            order[i] = &shards->list[i];
        }
        if (common_group(w) == 0) {
            qsort(order, shards->count, sizeof(*order), compare_sizes);
        }
        assign_in_order(shards, order, heap, w->world);
    }
    laci_free(heap);
    laci_free(order);
    return complete ? LAC_OK : shards_no_memory(w, shards->count);
}

lac_status laci_shards_open(laci_shards *shards, const laci_worker *w)
{
    const size_t tensors = lac_layout_count(w->layout);
    const size_t part = part_values(w);
    for (size_t t = 0; t < tensors; t++) {
        shards->count += parts_of(laci_tensor_values(w, t), part);
    }
    shards->list = laci_zalloc((shards->count + 1) * sizeof(*shards->list));
    shards->first = laci_zalloc((tensors + 1) * sizeof(*shards->first));
    shards->served = laci_zalloc(w->world * sizeof(*shards->served));
    if (shards->list == NULL || shards->first == NULL ||
        shards->served == NULL) {
        return shards_no_memory(w, shards->count);
    }
    LAC_TRY(split(shards, w, part));
    return assign_owners(shards, w);
}

void laci_shards_fini(laci_shards *shards)
{
    laci_free(shards->served);
    laci_free(shards->first);
    laci_free(shards->list);
}
