// SPDX-License-Identifier: MIT
// A finished run of `laconic train` on another network's clock. The path of a
// synchronous algorithm does not depend on the network, so its epochs are the
// same and only the seconds differ:
//
//     seconds = steps * (computation + compression + exchanges that show)
//
// Computation and compression are means over the steps of the run, as its
// workers recorded them. If the user names the time of a step's computation, on
// other machines, the recorded compression does not apply there either, and is
// estimated as for a plan.
#ifndef LACONIC_CLI_PLAN_RUN_H
#define LACONIC_CLI_PLAN_RUN_H

#include "cli/files/run.h"
#include "cli/plan/plan.h"

// What is asked for. All pointers are borrowed.
typedef struct plan_run_options {
    const char *folder; // of the run
    plan_network network;
    const char *transport; // the name of one, as in plan_task
    double compute;        // seconds of a step; 0: as recorded
    bool measure;          // the compression, if it is not the recorded one
} plan_run_options;

// A run and its times.
typedef struct plan_run {
    const plan_run_options *options;
    cli_run trained;
    // Seconds of a step, and the origin of the compression.
    double compute, compress, network, hidden, step;
    char source[PLAN_SOURCE_SIZE];
} plan_run;

// plan_run_open reads the folder of a run and computes its times.
// Fails with LAC_ERR_INVALID, LAC_ERR_NOTFOUND, LAC_ERR_CORRUPT or
// LAC_ERR_NOMEM; the message names the file. Close it in either case.
lac_status plan_run_open(plan_run *run, const plan_run_options *options);
void plan_run_close(plan_run *run);

// plan_run_seconds returns the time until the end of an epoch on the network's
// clock.
static inline double plan_run_seconds(
    const plan_run *run, const cli_run_epoch *e)
{
    return (double)e->step * run->step;
}

#endif
