// SPDX-License-Identifier: MIT
// A subcommand: its texts, its options and its function.
#ifndef LACONIC_CLI_OPTIONS_COMMAND_H
#define LACONIC_CLI_OPTIONS_COMMAND_H

#include <stdio.h>

#include <laconic/laconic.h>

#include "cli/options/option.h"

// Exit codes of the program. A wrong word on the command line is CLI_USAGE; a
// wrong file, or a machine that lacks something, is CLI_FAILED.
enum { CLI_GOOD = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

// One subcommand. `run` receives the settings that the options filled and the
// arguments that are not options. It returns an exit code.
typedef struct cli_command {
    const char *name;
    const char *summary;   // one line, lower case, no full stop
    const char *arguments; // for the usage line: "IN.npy OUT.lac"
    size_t arguments_min;
    size_t arguments_max;
    const char *completes; // what shells complete the arguments with: for each
                           // in turn words separated by '|', where @files,
                           // @folders, @commands, @command, @kinds and the
                           // kinds of the catalog are placeholders. The
                           // last repeats.
                           // NULL: @files
    const char *details;   // paragraphs for --help, or NULL
    const char *example;   // paragraphs for the manual page, or NULL
    void (*notes)(FILE *stream); // prints what --help has at its end, or NULL
    bool command_line; // the arguments are another command line: it begins
                       // with the first, and words of it may be empty
    const cli_option *options;
    size_t settings_size;
    size_t given_offset; // of a uint64_t in the settings whose bit i is set if
                         // option i was given; 0: there is none
    int (*run)(const void *settings, size_t count, char *const *arguments);
} cli_command;

// cli_option_named returns the option that a word of a command line names as
// --name, --name=value or -n, or NULL.
const cli_option *cli_option_named(const cli_option *options, const char *word);

// cli_parse fills `settings` with the defaults and then from argv. It moves the
// arguments that are not options to the front of argv and writes their number
// to `*count_out`.
// Fails with LAC_ERR_INVALID; settings and argv must not be used then.
lac_status cli_parse(
    const cli_command *command, int argc, char **argv, void *settings,
    size_t *count_out);

// cli_help prints the usage of `command` and every option with its default.
void cli_help(const cli_command *command);

// cli_print_message prints the message of the last failure on stderr, after
// `prefix`. It may quote a file or a peer: control characters become ?.
// cli_print_text prints another message so, of at most CLI_MESSAGE_SIZE bytes:
// twice those of the library.
enum { CLI_MESSAGE_SIZE = 1024 };
void cli_print_message(const char *prefix);
void cli_print_text(const char *prefix, const char *message);

// cli_failed prints the message of the last failure on stderr and returns
// CLI_FAILED.
int cli_failed(void);

// cli_misused prints the same message and a pointer to the help of `command`
// (NULL for the program), and returns CLI_USAGE.
int cli_misused(const char *command);

// cli_rejected reports the failure of a call whose input the user typed: as
// cli_misused for LAC_ERR_INVALID and LAC_ERR_NOTFOUND, else as cli_failed.
int cli_rejected(const char *command, lac_status status);

#endif
