// SPDX-License-Identifier: MIT
// The tensors of the model of a run.
#ifndef LACONIC_CLI_PLAN_RUN_LAYOUT_H
#define LACONIC_CLI_PLAN_RUN_LAYOUT_H

#include "cli/files/run.h"

// plan_run_layout opens the layout of the model that was trained. If the data
// gave it other shapes than usual, they are those of model.safetensors.
// Fails like nn_layout_open or train_file_open.
lac_status plan_run_layout(const cli_run *run, lac_layout **out);

#endif
