// SPDX-License-Identifier: MIT
// gamma=auto: the step size of choco or deepsqueeze, found by gossiping a
// small copy of the problem: the same graph and compressor, fewer values.
#ifndef LACONIC_ALGORITHM_SHARED_GAMMA_H
#define LACONIC_ALGORITHM_SHARED_GAMMA_H

#include "algorithm/framework/round.h"

// Which algorithm the copy runs.
typedef enum laci_gamma_kind {
    laci_gamma_choco,
    laci_gamma_deepsqueeze,
} laci_gamma_kind;

// For algorithms whose state is a laci_step_size with the setting gamma: their
// configure and step.
lac_status laci_gamma_configure(void *state, const laci_worker *w);
laci_step_size *laci_gamma_step(void *state);

// laci_gamma_find sets a gamma that is not known yet. All workers call it:
// worker 0 searches, with a fixed budget of work, and broadcasts the result;
// training takes half of it.
// Fails with LAC_ERR_NOMEM, LAC_ERR_PEER or LAC_ERR_CORRUPT.
lac_status laci_gamma_find(
    laci_step_size *gamma, const laci_round *round, laci_gamma_kind kind);

#endif
