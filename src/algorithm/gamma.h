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

// The state of an algorithm with a setting gamma, and its configure and step.
typedef struct laci_gamma {
    lac_number_or_word gamma;
    double step; // the gamma in use, 0 until it is known
} laci_gamma;

lac_status laci_gamma_configure(void *state, const laci_worker *w);
double *laci_gamma_step(void *state);

// laci_gamma_find is called by all workers together. Worker 0 searches, with a
// fixed budget of work, and tells the others; training takes half of it.
// Fails with LAC_ERR_NOMEM, LAC_ERR_PEER or LAC_ERR_CORRUPT.
lac_status laci_gamma_find(
    laci_worker *w, laci_gamma_kind kind, double *gamma_out);

#endif
