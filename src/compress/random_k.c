// SPDX-License-Identifier: MIT
// Random k: k different values, chosen at random (Stich, Cordonnier, Jaggi,
// arXiv:1809.07599). The unbiased form scales them by n/k.
//
// Index j of the choice is the image of j under a random permutation of
// [0, 2^b), applied repeatedly until it is below n. b is the number of bits of
// n - 1, at least 8, because with fewer bits the permutations are not equally
// likely. kernels/select.h defines them; the high half has b/2 bits, rounded
// down. So the indices are all different without a table, and in no order. When
// k = n they are 0 to n - 1.
//
// Payload: the nonce of the choice, 8 bytes, only when the receiver cannot
// derive the key and k < n; then the values in the order of the choice.
#include <laconic/compress.h>

#include "base/bytes.h"
#include "base/fail.h"
#include "compress/choice.h"
#include "compress/compressor.h"
#include "kernels/select.h"

enum { NONCE_SIZE = 8, BLOCK = 256, BITS_MIN = 8 };

static laci_permutation permutation_of(uint64_t nonce, size_t n)
{
    unsigned bits = BITS_MIN;
    while ((n - 1) >> bits != 0) {
        bits++;
    }
    return (laci_permutation){
        .stream = laci_choice_stream(nonce),
        .low_bits = bits - bits / 2,
        .high_bits = bits / 2,
    };
}

// Permutes a block of indices until all are below n. Those that are not are
// gathered after each pass.
static void permute_block(
    const laci_select_kernels *select, const laci_permutation *p, size_t n,
    uint32_t *indices, size_t count)
{
    uint32_t values[BLOCK], places[BLOCK];
    for (uint32_t j = 0; j < count; j++) {
        values[j] = indices[j];
        places[j] = j;
    }
    while (count > 0) {
        select->permute(p, values, count);
        size_t left = 0;
        for (size_t j = 0; j < count; j++) {
            const uint32_t value = values[j], place = places[j];
            indices[place] = value;
            values[left] = value;
            places[left] = place;
            left += value >= n;
        }
        count = left;
    }
}

static void derive(
    const lac_call *call, uint64_t nonce, size_t k, uint32_t *indices_out)
{
    const size_t n = lac_shape_values(call->shape);
    for (size_t j = 0; j < k; j++) {
        indices_out[j] = (uint32_t)j;
    }
    if (k == n) {
        return;
    }
    const laci_permutation p = permutation_of(nonce, n);
    for (size_t start = 0; start < k; start += BLOCK) {
        const size_t count = k - start < BLOCK ? k - start : BLOCK;
        permute_block(call->kernels->select, &p, n, indices_out + start, count);
    }
}

static void random_k_choose(
    const void *state, const lac_call *call, const float *x,
    uint32_t *indices_out)
{
    (void)x;
    derive(
        call, call->key.low, laci_choice_keep(state, call->shape), indices_out);
}

static size_t random_k_indices_bound(
    const void *state, lac_shape shape, lac_scope_kind scope)
{
    return laci_choice_is_sent(state, shape, scope) ? NONCE_SIZE : 0;
}

static size_t random_k_put_indices(
    const void *state, const lac_call *call, const uint32_t *indices,
    uint8_t *out)
{
    (void)indices;
    if (!laci_choice_is_sent(state, call->shape, call->key.scope)) {
        return 0;
    }
    laci_put_u64(out, call->key.low);
    return NONCE_SIZE;
}

static lac_status random_k_get_indices(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    uint32_t *indices_out, size_t *used_out)
{
    uint64_t nonce = call->key.low;
    size_t used = 0;
    if (laci_choice_is_sent(state, call->shape, call->key.scope)) {
        if (len < NONCE_SIZE) {
            return lac_fail(
                LAC_ERR_CORRUPT,
                "random-k: payload has %zu bytes, expected at least %d", len,
                NONCE_SIZE);
        }
        nonce = laci_get_u64(in);
        used = NONCE_SIZE;
    }
    derive(call, nonce, laci_choice_keep(state, call->shape), indices_out);
    *used_out = used;
    return LAC_OK;
}

static const lac_sparsifier_ops sparsifier = {
    .size = sizeof(lac_sparsifier_ops),
    .keep = laci_choice_keep,
    .choose = random_k_choose,
    .indices_bound = random_k_indices_bound,
    .put_indices = random_k_put_indices,
    .get_indices = random_k_get_indices,
    .random = true,
};

const lac_compressor_ops laci_random_k_ops = {
    .plugin.size = sizeof(lac_compressor_ops),
    .plugin.name = "random-k",
    .plugin.summary = "values chosen at random; no indices for a shared key",
    .plugin.params = laci_choice_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(laci_choice),
    .max_values = UINT32_MAX,
    .guarantee = laci_choice_guarantee,
    .sparsifier = &sparsifier,
};
