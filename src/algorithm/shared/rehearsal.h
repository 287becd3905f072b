// SPDX-License-Identifier: MIT
// A rehearsal: choco or deepsqueeze on one tensor, all workers one after the
// other in this thread, to see how fast they agree with a step size. It starts
// from normal values and counts rounds until the squared disagreement has
// fallen to LACI_REHEARSAL_RATIO of what it was.
#ifndef LACONIC_ALGORITHM_SHARED_REHEARSAL_H
#define LACONIC_ALGORITHM_SHARED_REHEARSAL_H

#include <laconic/compress.h>
#include <laconic/topology.h>

#include "algorithm/shared/gamma.h"

#define LACI_REHEARSAL_RATIO 1e-4

typedef struct laci_rehearsal laci_rehearsal;

// laci_rehearsal_open fails like lac_compressor_open and _reserve, or with
// LAC_ERR_NOMEM; `*out` is then NULL. The topology must outlive it.
lac_status laci_rehearsal_open(
    laci_rehearsal **out, laci_gamma_kind kind, const char *compressor,
    const lac_topology *topology, lac_shape shape);
void laci_rehearsal_close(laci_rehearsal *r);

// laci_rehearsal_rounds returns how many rounds it takes with `gamma`. After
// `limit` of them the rest is estimated from the rate of the later half.
// INFINITY when workers do not come closer. How many it ran is in `*done_out`.
double laci_rehearsal_rounds(
    laci_rehearsal *r, double gamma, double limit, double *done_out);

#endif
