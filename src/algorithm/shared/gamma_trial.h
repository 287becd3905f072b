// SPDX-License-Identifier: MIT
// One trial of a step size: choco or deepsqueeze averages one small tensor with
// a given gamma, alone or as the inner algorithm of outer. All workers run one
// after the other in the calling thread and start from standard normal values.
// The trial measures how fast the squared distance to the mean falls.
#ifndef LACONIC_ALGORITHM_SHARED_GAMMA_TRIAL_H
#define LACONIC_ALGORITHM_SHARED_GAMMA_TRIAL_H

#include <laconic/compress.h>
#include <laconic/topology.h>

#include "algorithm/shared/gamma.h"

typedef struct laci_gamma_trial laci_gamma_trial;

// The result of a run. Errors are relative to the initial error.
typedef struct laci_gamma_result {
    double done;   // rounds that were run
    double error;  // after these rounds; INFINITY if the run diverged
    double rounds; // until the target is reached; INFINITY if it never is
} laci_gamma_result;

// laci_gamma_trial_open allocates the workers of `topology`, with a tensor of
// `shape` each. The topology must outlive the trial. `outer` is the step that
// uses the rounds, or NULL. Fails like
// lac_compressor_open and lac_compressor_reserve, or with LAC_ERR_NOMEM;
// `*out` is then NULL.
lac_status laci_gamma_trial_open(
    laci_gamma_trial **out, laci_gamma_kind kind, const char *compressor,
    const lac_topology *topology, lac_shape shape,
    const laci_outer_step *outer);
void laci_gamma_trial_close(laci_gamma_trial *t);

// laci_gamma_trial_run starts from the initial values and runs until the error
// is at most `target`, or for `limit` rounds. After `limit` rounds it estimates
// `rounds` from the rate of the second half. The same arguments always give the
// same result.
laci_gamma_result laci_gamma_trial_run(
    laci_gamma_trial *t, double gamma, double target, double limit);

#endif
