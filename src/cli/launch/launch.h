// SPDX-License-Identifier: MIT
// The workers of a command. Under a launcher of MPI this process is one of
// them; otherwise all of them are threads of this process.
#ifndef LACONIC_CLI_LAUNCH_LAUNCH_H
#define LACONIC_CLI_LAUNCH_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

#include "cli/options/option.h"

// What the user said about workers; part of a command's settings.
typedef struct cli_launch_options {
    uint64_t workers; // 0: not given
    const char *transport;
    double timeout;
} cli_launch_options;

// Their lines in a table of options; `launch` is the field of `settings`.
// clang-format off
#define CLI_OPTIONS_LAUNCH(settings)                                           \
    {.name = "workers",                                                        \
     .type = CLI_OPTION_U64,                                                   \
     .offset = offsetof(settings, launch.workers),                             \
     .value = "N",                                                             \
     .default_value = "",                                                      \
     .min = 1,                                                                 \
     .max = CLI_WORKERS_MAX,                                                   \
     .help = "how many take part (8, or the size of the MPI job)"},            \
    {.name = "transport",                                                      \
     .type = CLI_OPTION_TEXT,                                                  \
     .offset = offsetof(settings, launch.transport),                           \
     .value = "SPEC",                                                          \
     .default_value = "auto",                                                  \
     .help = "auto: the MPI whose launcher started us, or threads"},           \
    {.name = "timeout",                                                        \
     .type = CLI_OPTION_F64,                                                   \
     .offset = offsetof(settings, launch.timeout),                             \
     .value = "SECONDS",                                                       \
     .default_value = "60",                                                    \
     .low = 0.001,                                                             \
     .high = 1e8,                                                              \
     .help = "how long a worker may be silent"}
// clang-format on

enum { CLI_WORKERS_MAX = 16384, CLI_WORKERS_DEFAULT = 8 };

// What the workers do. `context` is the same for all of them.
typedef struct cli_crew {
    // Called once a process, before any work. Returns an exit code, having
    // reported what is wrong.
    int (*prepare)(void *context, uint32_t world);
    // Called for every worker of this process, each in a thread of its own.
    // Memory that it has lent to the transport must stay until release.
    lac_status (*work)(void *context, lac_transport *transport);
    // Called for every worker that worked, after it left.
    void (*release)(void *context, uint32_t rank);
    size_t stack; // bytes that a thread of it needs; 0 for the usual
} cli_crew;

// cli_launch runs a crew. `command` names the subcommand in complaints about
// usage. It returns CLI_GOOD when every worker of this process succeeded. A
// failure has then been reported on stderr; that of a worker of an MPI job
// ends the whole job, and this function does not return.
int cli_launch(
    const char *command, const cli_launch_options *options,
    const cli_crew *crew, void *context);

#endif
