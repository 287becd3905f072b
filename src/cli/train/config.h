// SPDX-License-Identifier: MIT
// Settings from a file in the format of a manifest: those of --config, and
// those of the run that --resume continues.
#ifndef LACONIC_CLI_TRAIN_CONFIG_H
#define LACONIC_CLI_TRAIN_CONFIG_H

#include <stdint.h>

#include <cjson/cJSON.h>

#include "cli/options/option.h"

// The options that a command line gave, and the settings that they fill. Bit i
// of `given` is option i; a file sets the others.
typedef struct cli_config {
    const cli_option *options;
    void *settings;
    uint64_t given;
} cli_config;

// cli_config_read takes the settings that were not given from the object
// "settings" of a file, and adds them to c->given. Options that concern a
// single call of the command, such as --out, are left alone. `*file_out` owns
// the texts. Fails with LAC_ERR_INVALID or LAC_ERR_CORRUPT; the message names
// the file.
lac_status cli_config_read(cli_config *c, const char *path, cJSON **file_out);

// cli_config_resume does so with the manifest of a folder, if there is one.
lac_status cli_config_resume(
    cli_config *c, const char *folder, cJSON **file_out);

// cli_config_is_call returns whether an option concerns a single call.
bool cli_config_is_call(const char *name);

// cli_config_text returns the value of a setting in a file as a user would
// write it, NULL if it is no such value. It is stored in `text` unless the file
// has a string.
const char *cli_config_text(
    const cJSON *value, char text[CLI_OPTION_TEXT_SIZE]);

#endif
