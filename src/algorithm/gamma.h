// SPDX-License-Identifier: MIT
// gamma=auto: the step size of choco or deepsqueeze, found by gossiping a
// small copy of the problem: the same graph and compressor, fewer values.
#ifndef LACONIC_ALGORITHM_GAMMA_H
#define LACONIC_ALGORITHM_GAMMA_H

#include "algorithm/algorithm.h"

// Which algorithm the copy runs.
typedef enum laci_gamma_kind {
    laci_gamma_choco,
    laci_gamma_deepsqueeze,
} laci_gamma_kind;

// laci_gamma_find is called by all workers together. Worker 0 searches, with a
// fixed budget of work, and tells the others; training takes half of it.
// Fails with LAC_ERR_NOMEM, LAC_ERR_PEER or LAC_ERR_CORRUPT.
lac_status laci_gamma_find(
    laci_worker *w, laci_gamma_kind kind, double *gamma_out);

#endif
