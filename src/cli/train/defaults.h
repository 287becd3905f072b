// SPDX-License-Identifier: MIT
// The defaults of `laconic train` that depend on what is trained (see
// train/defaults.h): applied, and printed.
#ifndef LACONIC_CLI_TRAIN_DEFAULTS_H
#define LACONIC_CLI_TRAIN_DEFAULTS_H

#include <stdio.h>

#include <cjson/cJSON.h>

#include "cli/train/settings.h"

// cli_train_apply_defaults replaces the word `default` of --lr, --momentum and
// --warmup by the numbers of the table. The value of `auto` becomes the rate
// that the manifest of a run to resume has, else NaN: search. The schedule
// `inverse` determines the rate.
// Fails with LAC_ERR_INVALID if --lr contradicts it, or without a weight decay.
lac_status cli_train_apply_defaults(cli_train_settings *s, const data_set *set);

// cli_train_print_defaults prints the table.
void cli_train_print_defaults(FILE *stream);

// cli_train_defaults_json returns an array of its rows.
cJSON *cli_train_defaults_json(void);

#endif
