// SPDX-License-Identifier: MIT
// The output of `laconic train --dry-run`: what a run would take.
#ifndef LACONIC_CLI_TRAIN_DRY_RUN_H
#define LACONIC_CLI_TRAIN_DRY_RUN_H

#include <stdbool.h>

#include <cjson/cJSON.h>

#include "train/run.h"

// cli_dry_run prints steps, time, bytes, memory and settings of a run that was
// planned, as a table or as one JSON object. `settings` are those of
// cli_manifest_settings. With `threads` the workers share the processors of
// this machine; else each has one such processor.
// Fails like the parts of a worker that it opens.
lac_status cli_dry_run(
    const train_run *run, const cJSON *settings, bool threads, bool json);

#endif
