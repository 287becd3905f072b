// SPDX-License-Identifier: MIT
// Shards: what the workers of a sharded algorithm serve. A shard is a tensor or
// a part of one; every worker sends its payload to the owner of the shard,
// which sends the payload of the mean back to all.
//
// If the compressors of both ways take values one by one or in groups, tensors
// are split at a fixed number of values. Shards then go, in the order of the
// layout, each to the worker with the fewest bytes so far, so that tensors that
// are next to each other in the layout, such as a bucket of gradients, are
// balanced as well. Other compressors need whole tensors, and the largest are
// assigned first.
//
// Shards depend on layout, compressors and number of workers only, not on the
// tensors of a call.
#ifndef LACONIC_ALGORITHM_FRAMEWORK_SHARDS_H
#define LACONIC_ALGORITHM_FRAMEWORK_SHARDS_H

#include <laconic/layout.h>
#include <laconic/random.h>

struct laci_worker;

typedef struct laci_shard {
    size_t tensor;
    size_t start;       // its first value in the tensor
    lac_shape shape;    // of the tensor, or n x 1 for a part
    uint64_t name_hash; // for its key, different for each part of a tensor
    uint32_t owner;     // the worker that serves it
    size_t up;          // the most payload bytes from each worker to the owner
    size_t back;        // and from the owner to each worker
} laci_shard;

// The shards of one worker together.
typedef struct laci_served {
    size_t count;
    size_t up;
    size_t back;
} laci_served;

typedef struct laci_shards {
    laci_shard *list; // in the order of the layout; none is empty
    size_t count;
    size_t *first;       // of each tensor, and `count`
    laci_served *served; // by each worker
} laci_shards;

// laci_shards_open splits and assigns the tensors of a worker whose layout,
// compressors and world are set, and reserves the shapes of parts. On failure
// laci_shards_fini releases what there is.
// Fails with LAC_ERR_NOMEM.
lac_status laci_shards_open(laci_shards *shards, const struct laci_worker *w);
void laci_shards_fini(laci_shards *shards);

// laci_shards_of returns the first shard of a tensor; those of a tensor end
// where those of the next begin.
static inline const laci_shard *laci_shards_of(
    const laci_shards *shards, size_t tensor)
{
    return shards->list + shards->first[tensor];
}

#endif
