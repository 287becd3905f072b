// SPDX-License-Identifier: MIT
// What the model algorithms share: gossip of payloads, plain mixing (dpsgd,
// naive) and replicas of the neighbours (dcd, ecd).
#ifndef LACONIC_ALGORITHM_SHARED_GOSSIP_H
#define LACONIC_ALGORITHM_SHARED_GOSSIP_H

#include "algorithm/framework/round.h"

// Gossip: one message to all neighbours with a payload for each tensor, one
// message from each, all payloads checked before any is applied.
//
//     for each item i: laci_gossip_put(round, c, i, values);
//     LAC_TRY(laci_gossip_exchange(round, c, phase));
//     for each item i, for each neighbour k:
//         laci_view_add(laci_received(round, k, i), weight, y);

// laci_gossip_put encodes the values of item `i` with `c` into the message.
// Items are put in order, from 0.
void laci_gossip_put(
    laci_round *round, const lac_compressor *c, size_t i, const float *values);

// laci_gossip_put_exactly puts the values of all items uncompressed, and fails
// if one of them is not finite.
LACI_CHECKED lac_status laci_gossip_put_exactly(laci_round *round);

// laci_gossip_exchange sends the message to the neighbours of the round and
// takes every payload that arrives. Fails with LAC_ERR_PEER, LAC_ERR_CORRUPT,
// or LAC_ERR_INVALID if this worker's values have become infinite.
LACI_CHECKED lac_status laci_gossip_exchange(
    laci_round *round, const lac_compressor *c, uint32_t phase);

// laci_gossip_omit puts an empty payload for item `i` instead.
// laci_gossip_exchange_some does what laci_gossip_exchange does where
// neighbours may do so.
void laci_gossip_omit(laci_round *round, const lac_compressor *c, size_t i);
LACI_CHECKED lac_status laci_gossip_exchange_some(
    laci_round *round, const lac_compressor *c, uint32_t phase);

// laci_gossip_exchange_any does the same without looking at the values, which
// may be infinite or NaN.
LACI_CHECKED lac_status laci_gossip_exchange_any(
    laci_round *round, const lac_compressor *c, uint32_t phase);

// laci_gossip_bound is a message_bound, laci_gossip_cost a cost: of one payload
// of the compressor a tensor, or of the values if there is none.
size_t laci_gossip_bound(
    const void *state, const laci_worker *w, size_t tensor);
void laci_gossip_cost(const void *state, const laci_worker *w, lac_cost *out);

// laci_gossip_exchanges lists the exchange of a round: exchanges of the ops.
// laci_gossip_list lists one of messages that have `body` bytes.
void laci_gossip_exchanges(
    const void *state, const laci_worker *w, laci_listing *out);
void laci_gossip_list(laci_listing *out, const laci_worker *w, size_t body);

// laci_gossip_degree returns the mean number of neighbours in a round.
double laci_gossip_degree(const laci_worker *w);

// Plain gossip, exact or of compressed values:
//
//     mixed = (1 - rate (1 - w_ii)) x_i + rate * sum_j w_ij C(x_j)

// laci_mixing_plan, a plan, requests the field that holds `mixed` between begin
// and end.
void laci_mixing_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan);

// laci_mixing_begin mixes compressed values, at a rate of 1.
// laci_mixing_begin_exactly mixes the values themselves, and scans them.
LACI_CHECKED lac_status
laci_mixing_begin(laci_round *round, const lac_compressor *c);
LACI_CHECKED lac_status
laci_mixing_begin_exactly(laci_round *round, double rate);

// laci_mixing_mix_exactly does a whole round in place, for a mix of the ops.
LACI_CHECKED lac_status laci_mixing_mix_exactly(laci_round *round, double rate);

// laci_mixing_end, an end, adds the update.
lac_status laci_mixing_end(void *state, laci_round *round);

// laci_mixing_mix writes own x_i + rate * sum_j w_ij C(x_j) of item `i`, from
// the payloads that arrived, to `out`.
void laci_mixing_mix(
    const laci_round *round, size_t i, float own, double rate, float *out);

// Replicas of the neighbours' values: field k of a tensor is that of peer k.
// They begin with one exact exchange, so that workers may start from different
// values.

// laci_replicas_plan requests one field a peer, saved under `name`.
void laci_replicas_plan(
    const laci_worker *w, const char *name, size_t tensor, laci_plan *plan);

// laci_replicas_start, a start, fills them with the neighbours' values.
lac_status laci_replicas_start(void *state, laci_round *round);

// laci_replicas_mix writes w_ii own + sum_j w_ij replica_j + update, for the
// values [first, first + n) of item `i`, to out[0..n); own[0] is the first.
void laci_replicas_mix(
    const laci_round *round, size_t i, size_t first, size_t n, const float *own,
    float *out);

// laci_replicas_round is a round: `write_z` writes what is sent to the scratch
// and fails where it is not finite, `apply` applies the payloads.
LACI_CHECKED lac_status laci_replicas_round(
    laci_round *round, laci_loop_body *write_z, laci_loop_body *apply);

// laci_replicas_start_bound is the start_bound of laci_replicas_start.
size_t laci_replicas_start_bound(
    const void *state, const laci_worker *w, size_t tensor);

#endif
