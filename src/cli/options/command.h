// SPDX-License-Identifier: MIT
// What a subcommand is: its words, its options and a function.
#ifndef LACONIC_CLI_OPTIONS_COMMAND_H
#define LACONIC_CLI_OPTIONS_COMMAND_H

#include <laconic/laconic.h>

#include "cli/options/option.h"

// Exit codes of the program, as scripts see them. A wrong word on the command
// line is a matter of usage; a wrong file, or a machine that lacks something,
// is a failure.
enum { CLI_GOOD = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

// One subcommand. `run` gets the settings that its options filled and the
// arguments that are not options, and returns an exit code.
typedef struct cli_command {
    const char *name;
    const char *summary;   // one line, lower case, no full stop
    const char *arguments; // as the usage shows them: "IN.npy OUT.lac"
    size_t arguments_min;
    size_t arguments_max;
    const char *details; // paragraphs for --help, or NULL
    const cli_option *options;
    size_t settings_size;
    int (*run)(const void *settings, size_t count, char *const *arguments);
} cli_command;

// cli_parse fills `settings` with the defaults and then from argv, and moves
// the arguments that are not options to its front, `*count_out` of them.
// Fails with LAC_ERR_INVALID; settings and argv are then not to be used.
lac_status cli_parse(
    const cli_command *command, int argc, char **argv, void *settings,
    size_t *count_out);

// cli_help prints how `command` is used, every option with its default.
void cli_help(const cli_command *command);

// cli_failed reports on stderr what the call that just failed had to say and
// returns CLI_FAILED.
int cli_failed(void);

// cli_misused does the same for what the user typed and returns CLI_USAGE,
// pointing to the help of the command of that name, or of the program if NULL.
int cli_misused(const char *command);

#endif
