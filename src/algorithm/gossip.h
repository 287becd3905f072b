// SPDX-License-Identifier: MIT
// What the model algorithms share: one message to all neighbours with a payload
// for each tensor, one message from each, all of them checked before any is
// applied.
//
//     for each item i: laci_gossip_put(w, c, round, i, values);
//     LAC_TRY(laci_gossip_exchange(w, c, round, phase));
//     for each item i, for each neighbour k: laci_gossip_add(...);
#ifndef LACONIC_ALGORITHM_GOSSIP_H
#define LACONIC_ALGORITHM_GOSSIP_H

#include "algorithm/algorithm.h"

// laci_gossip_put encodes the values of item `i` with `c` into the message, to
// be called for every item from 0 on.
void laci_gossip_put(
    laci_worker *w, lac_compressor *c, const laci_round *round, size_t i,
    const float *values);

// laci_gossip_exchange sends the message to the neighbours of the round and
// checks every payload that arrives. Fails with LAC_ERR_PEER or
// LAC_ERR_CORRUPT; nothing was applied then.
lac_status laci_gossip_exchange(
    laci_worker *w, lac_compressor *c, const laci_round *round, uint32_t phase);

// laci_gossip_add adds `a` times what neighbour `k` of the round sent for item
// `i` to y; laci_gossip_add_own what this worker sent.
void laci_gossip_add(
    laci_worker *w, lac_compressor *c, const laci_round *round, size_t i,
    uint32_t k, float a, float *y);
void laci_gossip_add_own(
    laci_worker *w, lac_compressor *c, const laci_round *round, size_t i,
    float a, float *y);

// laci_gossip_read writes what neighbour `k` sent for item `i` to x, bit for
// bit.
void laci_gossip_read(
    laci_worker *w, lac_compressor *c, const laci_round *round, size_t i,
    uint32_t k, float *x);

// laci_gossip_bound and laci_gossip_cost are the message_bound and cost of
// algorithms that send one payload for each tensor, in one exchange a round: of
// their compressor, or of the values as they are.
size_t laci_gossip_bound(
    const void *state, const laci_worker *w, size_t tensor);
void laci_gossip_cost(const void *state, const laci_worker *w, lac_cost *out);

#endif
