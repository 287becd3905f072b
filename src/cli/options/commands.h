// SPDX-License-Identifier: MIT
// The table of all subcommands.
#ifndef LACONIC_CLI_OPTIONS_COMMANDS_H
#define LACONIC_CLI_OPTIONS_COMMANDS_H

#include <stddef.h>

#include "cli/options/command.h"

// cli_commands returns the subcommands in the order of `laconic --help`.
const cli_command *const *cli_commands(size_t *count_out);

// cli_command_find returns the subcommand `name`, or NULL.
const cli_command *cli_command_find(const char *name);

#endif
