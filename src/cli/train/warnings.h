// SPDX-License-Identifier: MIT
// Warnings about options that have no effect on a run, or hardly the one that
// was meant, and about a resume with another oneDNN.
#ifndef LACONIC_CLI_TRAIN_WARNINGS_H
#define LACONIC_CLI_TRAIN_WARNINGS_H

#include <stdio.h>

#include "cli/train/settings.h"

// cli_train_warn prints a line for every option that was given and changes
// nothing in a run of `family` with this plan, and for a warm-up that is longer
// than the run.
void cli_train_warn(
    const cli_train_settings *s, const train_plan *plan, lac_family family,
    FILE *stream);

// cli_train_warn_onednn prints a line if the run in `folder` is resumed and its
// manifest, which is that of the steps before, has another oneDNN than this
// process. What the manifest of an older version lacks counts as equal.
void cli_train_warn_onednn(
    const char *folder, const train_facts *facts, FILE *stream);

#endif
