// SPDX-License-Identifier: MIT
// Random block: k consecutive values from a random start, wrapping around at
// the end of the tensor (the "random block" of Vogels, Karimireddy, Jaggi,
// arXiv:1905.13727). As good as random-k for values in no particular order, and
// faster, because neighbours are read and written together. The unbiased form
// scales them by n/k.
//
// The start is (draw 0 of the choice) * n / 2^32, rounded down; 0 when k = n.
//
// Payload: the start, 4 bytes, only when the receiver cannot derive the key
// and k < n; then the values from the start on.
#include <laconic/compress.h>

#include "base/bytes.h"
#include "base/fail.h"
#include "compress/choice.h"
#include "compress/compressor.h"

enum { START_SIZE = 4 };

static uint32_t start_of(const void *state, const lac_call *call)
{
    const size_t n = lac_shape_values(call->shape);
    if (laci_choice_keep(state, call->shape) == n) {
        return 0;
    }
    const laci_stream stream = laci_choice_stream(call->key.low);
    return (uint32_t)((uint64_t)laci_draw(&stream, 0) * n >> 32);
}

static void fill_block(
    const void *state, const lac_call *call, uint32_t start,
    uint32_t *indices_out)
{
    const size_t n = lac_shape_values(call->shape);
    const size_t k = laci_choice_keep(state, call->shape);
    const size_t straight = n - start < k ? n - start : k;
    for (size_t j = 0; j < straight; j++) {
        indices_out[j] = start + (uint32_t)j;
    }
    for (size_t j = straight; j < k; j++) {
        indices_out[j] = (uint32_t)(j - straight);
    }
}

static void random_block_choose(
    const void *state, const lac_call *call, const float *x,
    uint32_t *indices_out)
{
    (void)x;
    fill_block(state, call, start_of(state, call), indices_out);
}

static size_t random_block_indices_bound(
    const void *state, lac_shape shape, lac_scope_kind scope)
{
    return laci_choice_is_sent(state, shape, scope) ? START_SIZE : 0;
}

static size_t random_block_put_indices(
    const void *state, const lac_call *call, const uint32_t *indices,
    uint8_t *out)
{
    if (!laci_choice_is_sent(state, call->shape, call->key.scope)) {
        return 0;
    }
    laci_put_u32(out, indices[0]);
    return START_SIZE;
}

static lac_status random_block_get_indices(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    uint32_t *indices_out, size_t *used_out)
{
    if (!laci_choice_is_sent(state, call->shape, call->key.scope)) {
        fill_block(state, call, start_of(state, call), indices_out);
        *used_out = 0;
        return LAC_OK;
    }
    if (len < START_SIZE) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "random-block: payload has %zu bytes, expected at least %d", len,
            START_SIZE);
    }
    const uint32_t start = laci_get_u32(in);
    if (start >= lac_shape_values(call->shape)) {
        return lac_fail(
            LAC_ERR_CORRUPT, "random-block: start is %u, expected below %zu",
            (unsigned)start, lac_shape_values(call->shape));
    }
    fill_block(state, call, start, indices_out);
    *used_out = START_SIZE;
    return LAC_OK;
}

static const lac_sparsifier_ops sparsifier = {
    .size = sizeof(lac_sparsifier_ops),
    .keep = laci_choice_keep,
    .choose = random_block_choose,
    .indices_bound = random_block_indices_bound,
    .put_indices = random_block_put_indices,
    .get_indices = random_block_get_indices,
    .random = true,
};

const lac_compressor_ops laci_random_block_ops = {
    .plugin.size = sizeof(lac_compressor_ops),
    .plugin.name = "random-block",
    .plugin.summary = "values in a row from a random start",
    .plugin.params = laci_choice_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(laci_choice),
    .max_values = UINT32_MAX,
    .guarantee = laci_choice_guarantee,
    .sparsifier = &sparsifier,
};
