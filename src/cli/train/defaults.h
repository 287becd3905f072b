// SPDX-License-Identifier: MIT
// The defaults of `laconic train` that depend on what is trained (see
// train/defaults.h): applied, and printed.
#ifndef LACONIC_CLI_TRAIN_DEFAULTS_H
#define LACONIC_CLI_TRAIN_DEFAULTS_H

#include <stdio.h>

#include <cjson/cJSON.h>

#include "cli/train/settings.h"

// cli_train_apply_defaults replaces the word `default` of --lr, --momentum and
// --warmup by numbers: when a run is resumed by those in its manifest, so that
// it continues as it was started by any version, else by those of the table.
// The value of `auto` becomes the rate that the manifest has, or NaN: search.
// Fails with LAC_ERR_INVALID or LAC_ERR_CORRUPT if the manifest is damaged.
lac_status cli_train_apply_defaults(cli_train_settings *s, const data_set *set);

// cli_train_print_defaults prints the table.
void cli_train_print_defaults(FILE *stream);

// cli_train_defaults_json returns an array of its rows.
cJSON *cli_train_defaults_json(void);

#endif
