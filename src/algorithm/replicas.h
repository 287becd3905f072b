// SPDX-License-Identifier: MIT
// Copies of the neighbours' values, field k of a tensor being that of peer k:
// what dcd and ecd share. They begin with one exact exchange, so that workers
// need not start from equal values.
#ifndef LACONIC_ALGORITHM_REPLICAS_H
#define LACONIC_ALGORITHM_REPLICAS_H

#include "algorithm/gossip.h"

// laci_replicas_plan asks for one field a peer, saved under `name`.
void laci_replicas_plan(
    const laci_worker *w, const char *name, size_t tensor, laci_plan *plan);

// laci_replicas_start, a start, fills them with the neighbours' values.
lac_status laci_replicas_start(
    void *state, laci_worker *w, const laci_round *round);

// laci_replicas_mix writes w_ii own + sum_j w_ij replica_j + update to `out`.
void laci_replicas_mix(
    const laci_worker *w, const laci_round *round, size_t i, const float *own,
    float *out);

// laci_replicas_bound, a message_bound, is the larger of a payload and of the
// exact exchange.
size_t laci_replicas_bound(
    const void *state, const laci_worker *w, size_t tensor);

#endif
