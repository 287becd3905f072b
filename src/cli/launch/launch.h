// SPDX-License-Identifier: MIT
// Launches the workers of a command. Under an MPI launcher, or with tcp, this
// process is one worker; otherwise all workers are threads of this process.
#ifndef LACONIC_CLI_LAUNCH_LAUNCH_H
#define LACONIC_CLI_LAUNCH_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

#include "cli/options/option.h"

// The environment variable with the default of --transport. `laconic launch`
// sets it for the processes that it starts.
#define CLI_TRANSPORT_VARIABLE "LACONIC_TRANSPORT"

// The options that concern the workers; part of a command's settings.
typedef struct cli_launch_options {
    uint64_t workers; // 0: not given
    const char *transport;
    double timeout;
    uint64_t threads; // 0: not given
} cli_launch_options;

// Their lines in a table of options. `settings` has them as its member
// `launch`.
// clang-format off
#define CLI_OPTIONS_LAUNCH(settings)                                           \
    {.name = "workers",                                                        \
     .type = CLI_OPTION_U64,                                                   \
     .offset = offsetof(settings, launch.workers),                             \
     .value = "N",                                                             \
     .default_value = "",                                                      \
     .min = 1,                                                                 \
     .max = CLI_WORKERS_MAX,                                                   \
     .help = "number of workers (8, or the size of the job)"},                 \
    {.name = "transport",                                                      \
     .type = CLI_OPTION_TEXT,                                                  \
     .offset = offsetof(settings, launch.transport),                           \
     .value = "SPEC",                                                          \
     .default_value = "auto",                                                  \
     .choices = "auto",                                                        \
     .help = "auto: LACONIC_TRANSPORT, MPI or threads"},                       \
    {.name = "timeout",                                                        \
     .type = CLI_OPTION_F64,                                                   \
     .offset = offsetof(settings, launch.timeout),                             \
     .value = "SECONDS",                                                       \
     .default_value = "60",                                                    \
     .low = 0.001,                                                             \
     .high = 1e8,                                                              \
     .help = "fail if a worker is silent for so long"}

#define CLI_OPTION_THREADS(settings)                                           \
    {.name = "threads",                                                        \
     .type = CLI_OPTION_U64,                                                   \
     .offset = offsetof(settings, launch.threads),                             \
     .value = "N",                                                             \
     .default_value = "",                                                      \
     .min = 1,                                                                 \
     .max = CLI_THREADS_MAX,                                                   \
     .help = "threads of a worker for its rounds (see above)"}
// clang-format on

enum {
    CLI_WORKERS_MAX = 16384,
    CLI_WORKERS_DEFAULT = 8,
    CLI_THREADS_MAX = 256,
};

// What --help prints about CLI_OPTION_THREADS.
#define CLI_THREADS_HELP                                                       \
    "--threads changes only the time. Without it, workers that are threads\n"  \
    "of this process share its processors, and other workers have one each.\n"

// What --help prints about workers under mpirun, after CLI_THREADS_HELP.
#define CLI_MPIRUN_HELP                                                        \
    "Open MPI starts more workers than there are cores only with\n"            \
    "`mpirun --oversubscribe`.\n"

// The work of a command. `context` is the same for all workers.
typedef struct cli_workers {
    // Called once per process, before any worker starts. Returns an exit code;
    // a failure has been reported.
    int (*prepare)(void *context, uint32_t world);
    // Called for every worker of this process, each in its own thread. Memory
    // that the transport borrows must stay valid until `release`.
    lac_status (*work)(void *context, lac_transport *transport);
    // Called for every worker after it has left its transport.
    void (*release)(void *context, uint32_t rank);
    size_t stack_size; // of a thread, in bytes; 0 for the default
    // Called after a worker with a line in a peers file has joined, with its
    // name there: it has a terminal of its own. May be NULL.
    void (*joined)(void *context, uint32_t world, const char *name);
    // Called after a process has reported that its worker failed because of
    // another one, before it ends. May be NULL.
    void (*lost)(void *context);
} cli_workers;

// cli_launch runs the workers. `command` is the subcommand that messages about
// usage name. Returns CLI_GOOD if every worker of this process succeeded. A
// failure has been reported on stderr. The failure of a worker of an MPI job
// ends the whole job, and cli_launch does not return.
int cli_launch(
    const char *command, const cli_launch_options *options,
    const cli_workers *workers, void *context);

#endif
