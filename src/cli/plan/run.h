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

#include <cjson/cJSON.h>

#include "cli/plan/plan.h"

// What is asked for. All pointers are borrowed.
typedef struct plan_run_options {
    const char *folder; // of the run
    plan_network network;
    const char *transport; // the name of one, as in plan_task
    double compute;        // seconds of a step; 0: as recorded
    bool measure;          // the compression, if it is not the recorded one
} plan_run_options;

// The state of the run after an epoch. A number that is not known is NaN.
typedef struct plan_run_epoch {
    double epoch; // epochs done
    uint64_t step;
    double accuracy;   // a fraction
    double perplexity; // of a text
    double payload;    // bytes that all workers have sent
    double seconds;    // on the network's clock
} plan_run_epoch;

// A run and its times.
typedef struct plan_run {
    const plan_run_options *options;
    cJSON *manifest; // owns the texts below
    const char *model, *data, *algorithm, *compressor, *topology;
    uint32_t workers;
    uint64_t seed;
    bool overlap;
    bool text; // the epochs have a perplexity
    plan_run_epoch *epochs;
    size_t count;
    uint64_t planned; // epochs that the run was to have
    // Seconds of a step, and the origin of the compression.
    double compute, compress, network, hidden, step;
    char source[PLAN_SOURCE_SIZE];
} plan_run;

// plan_run_open reads the folder of a run and computes its times.
// Fails with LAC_ERR_INVALID, LAC_ERR_NOTFOUND, LAC_ERR_CORRUPT or
// LAC_ERR_NOMEM; the message names the file. Close it in either case.
lac_status plan_run_open(plan_run *run, const plan_run_options *options);
void plan_run_close(plan_run *run);

#endif
