// SPDX-License-Identifier: MIT
// The table of all subcommands, made from commands.def.
#include "cli/options/commands.h"

#include <string.h>

#define LAC_COMMAND(name) extern const cli_command cmd_##name;
#include "cli/commands.def"
#undef LAC_COMMAND

static const cli_command *const table[] = {
#define LAC_COMMAND(name) &cmd_##name,
#include "cli/commands.def"
#undef LAC_COMMAND
};

enum { COMMAND_COUNT = sizeof(table) / sizeof(table[0]) };

const cli_command *const *cli_commands(size_t *count_out)
{
    *count_out = COMMAND_COUNT;
    return table;
}

const cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(name, table[i]->name) == 0) {
            return table[i];
        }
    }
    return NULL;
}
