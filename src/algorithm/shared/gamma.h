// SPDX-License-Identifier: MIT
// The step size gamma of choco, deepsqueeze and beer: the setting and, for
// gamma=auto, the search for a value.
#ifndef LACONIC_ALGORITHM_SHARED_GAMMA_H
#define LACONIC_ALGORITHM_SHARED_GAMMA_H

#include <stddef.h>

#include "algorithm/framework/round.h"

// The algorithm that gamma is for.
typedef enum laci_gamma_kind {
    laci_gamma_choco,
    laci_gamma_deepsqueeze,
} laci_gamma_kind;

// The setting and the operations of an algorithm whose state is, or begins
// with, a laci_step_size.
#define LACI_GAMMA_PARAM                                                       \
    {                                                                          \
        .name = "gamma", .aliases = "consensus_stepsize",                      \
        .type = LAC_PARAM_F64_OR_WORD,                                         \
        .offset = offsetof(laci_step_size, setting), .default_value = "auto",  \
        .min = 0, .max = 2, .above_min = true, .choices = "auto",              \
        .help = "step towards the neighbours' values",                         \
    }
lac_status laci_gamma_configure(void *state, const laci_worker *w);
laci_step_size *laci_gamma_step(void *state);

// What gamma is for.
typedef struct laci_gamma_problem {
    laci_gamma_kind kind;
    const char *compressor;
    const lac_topology *topology;
    const lac_layout *layout;
    laci_outer_step outer; // which uses the rounds
    bool training;
} laci_gamma_problem;

// laci_gamma_search writes a good gamma for tensors like the largest of the
// layout. For pure gossip choco gets the fastest, and deepsqueeze the one
// with the smallest error after 2,000 rounds. For training both get half of the
// fastest. The work is bounded, and the same arguments always give the same
// value. Fails like lac_compressor_open and lac_compressor_reserve, or with
// LAC_ERR_NOMEM.
lac_status laci_gamma_search(const laci_gamma_problem *p, double *gamma_out);

// laci_gamma_bound writes the largest gamma, up to `gamma`, with which the
// workers agree in a trial. It fails like laci_gamma_search.
lac_status laci_gamma_bound(
    const laci_gamma_problem *p, double gamma, double *bound_out);

// laci_gamma_find sets a gamma that is not known yet, and checks one that an
// outer step may amplify. All workers call it: worker 0 makes the trials and
// broadcasts the value. Fails with LAC_ERR_INVALID if the gamma is too large
// for the outer step, LAC_ERR_NOMEM, LAC_ERR_PEER or LAC_ERR_CORRUPT.
lac_status laci_gamma_find(
    laci_step_size *gamma, const laci_round *round, laci_gamma_kind kind);

#endif
