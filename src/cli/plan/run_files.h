// SPDX-License-Identifier: MIT
// The files of a run that was trained: its manifest, metrics and model.
#ifndef LACONIC_CLI_PLAN_RUN_FILES_H
#define LACONIC_CLI_PLAN_RUN_FILES_H

#include "cli/plan/run.h"

// Seconds of a mean worker since the first step.
typedef struct plan_run_usage {
    double compute, compress;
} plan_run_usage;

// plan_run_read_manifest fills in the settings of a run.
// Fails with LAC_ERR_INVALID or LAC_ERR_CORRUPT.
lac_status plan_run_read_manifest(plan_run *run);

// plan_run_read_metrics fills in the epochs, without their seconds, and the
// usage up to the last. It ignores a last line that was not written to its end.
// Fails with LAC_ERR_INVALID, LAC_ERR_CORRUPT or LAC_ERR_NOMEM.
lac_status plan_run_read_metrics(plan_run *run, plan_run_usage *usage_out);

// plan_run_layout opens the layout of the model that was trained. If the data
// gave it other shapes than usual, they are those of model.safetensors.
// Fails like nn_layout_open or train_file_open.
lac_status plan_run_layout(const plan_run *run, lac_layout **out);

#endif
