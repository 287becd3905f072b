// SPDX-License-Identifier: MIT
// What gradient algorithms that gather payloads share.
#ifndef LACONIC_ALGORITHM_GRADIENT_H
#define LACONIC_ALGORITHM_GRADIENT_H

#include "algorithm/algorithm.h"

// laci_gradient_put encodes values of item `i` with `c` and this key into a
// message.
void laci_gradient_put(
    lac_compressor *c, const lac_key *key, const laci_item *item,
    const float *values, laci_writer *message);

// laci_gradient_view is where the payload of worker `k` for item `i` lies, once
// it was taken.
static inline laci_view *laci_gradient_view(
    const laci_worker *w, const laci_round *round, uint32_t k, size_t i)
{
    return &w->views[k * round->count + i];
}

// laci_gradient_take points the view of item `i` at the next payload of
// w->readers[k] and checks it. Fails with LAC_ERR_CORRUPT.
LACI_CHECKED lac_status laci_gradient_take(
    laci_worker *w, lac_compressor *c, const lac_key *key,
    const laci_round *round, uint32_t k, size_t i);

// laci_gradient_bound is the most bytes of a payload of `c` for a tensor.
size_t laci_gradient_bound(
    const laci_worker *w, const lac_compressor *c, size_t tensor,
    lac_scope_kind scope);

#endif
