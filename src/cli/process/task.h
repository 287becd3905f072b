// SPDX-License-Identifier: MIT
// What one process of a job is to run, and the message that brings it to
// another machine.
#ifndef LACONIC_CLI_PROCESS_TASK_H
#define LACONIC_CLI_PROCESS_TASK_H

#include <stdint.h>

#include <laconic/laconic.h>

#include "cli/process/token.h"

// One process to start. Lists end with NULL.
typedef struct cli_task {
    uint8_t token[CLI_TOKEN_SIZE];
    const char *settings; // more settings of its spec, ",listen=..." or ""
    const char *folder;   // its working folder
    const char *const *environment; // "NAME=value"
    const char *const *words; // a subcommand or a program, and its arguments
} cli_task;

// cli_task_check fails with LAC_ERR_INVALID if a task is too long to be sent.
lac_status cli_task_check(const cli_task *task);

// cli_task_send writes a task to a file descriptor. Fails with LAC_ERR_INVALID
// if it is too long, LAC_ERR_PEER if nobody reads it, or LAC_ERR_NOMEM.
lac_status cli_task_send(const cli_task *task, int file);

// cli_task_receive reads a task, and not one byte more. The task must be
// released with cli_task_release. Fails with LAC_ERR_CORRUPT or LAC_ERR_NOMEM.
lac_status cli_task_receive(cli_task *out, int file);
void cli_task_release(cli_task *task);

#endif
