// SPDX-License-Identifier: MIT
// The manifest of a run: with what settings, by what programs and on what
// machine it was made. Whoever continues the run has to use the same settings.
#ifndef LACONIC_CLI_TRAIN_MANIFEST_H
#define LACONIC_CLI_TRAIN_MANIFEST_H

#include <stdbool.h>

#include <cjson/cJSON.h>

#include "cli/options/option.h"

// cli_manifest_settings makes an object of all options and their values, each
// as a user would write it; NULL if there is no memory.
cJSON *cli_manifest_settings(const cli_option *options, const void *settings);

// cli_manifest_write writes folder/manifest.json: `settings` and `facts`, which
// stay the caller's, with the versions and the machine.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM.
lac_status cli_manifest_write(
    const char *folder, const cJSON *settings, const cJSON *facts);

// cli_manifest_check compares `settings` with those of the run in `folder`, if
// there is one, all but those named in `free`, which ends with NULL. Tells
// whether there is one.
// Fails with LAC_ERR_INVALID (the sentence says which differs) or
// LAC_ERR_CORRUPT.
lac_status cli_manifest_check(
    const char *folder, const cJSON *settings, const char *const *free,
    bool *found_out);

#endif
