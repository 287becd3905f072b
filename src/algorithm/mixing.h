// SPDX-License-Identifier: MIT
// Plain gossip, exact or of compressed values: what dpsgd and naive share.
//
//     mixed = (1 - rate (1 - w_ii)) x_i + rate * sum_j w_ij C(x_j)
#ifndef LACONIC_ALGORITHM_MIXING_H
#define LACONIC_ALGORITHM_MIXING_H

#include "algorithm/gossip.h"

// laci_mixing_plan, a plan, asks for the field that holds `mixed` between begin
// and end.
void laci_mixing_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan);

lac_status laci_mixing_begin(
    laci_worker *w, lac_compressor *c, float rate, const laci_round *round);

// laci_mixing_end, an end, adds the update.
lac_status laci_mixing_end(
    void *state, laci_worker *w, const laci_round *round);

#endif
