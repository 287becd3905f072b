// SPDX-License-Identifier: MIT
// Starts the processes of a job: on this machine, or on others by ssh.
#ifndef LACONIC_CLI_PROCESS_START_H
#define LACONIC_CLI_PROCESS_START_H

#include <sys/types.h>

#include "cli/process/lines.h"
#include "cli/process/task.h"

// What a user asked for.
typedef struct cli_job {
    uint32_t world;
    const char *const *hosts; // NULL: this machine
    size_t host_count;
    const char *master;       // MASTER_ADDR
    uint16_t port;            // MASTER_PORT
    const char *program;      // laconic on the hosts
    const char *ssh;          // a command, in words
    const char *folder;       // the working folder
    const char *const *words; // ends with NULL
} cli_job;

// cli_job_check fails with LAC_ERR_INVALID if a job on other hosts cannot be
// started as it is: a setting or the command is too long.
lac_status cli_job_check(const cli_job *job);

// One worker, as the launcher sees it: the process of its guard, or of ssh.
typedef struct cli_slot {
    uint32_t rank;
    const char *host; // NULL: this machine
    pid_t process;    // 0: not running
    int lifeline;     // to the guard
    cli_lines output; // nothing comes from worker 0, which has ours
} cli_slot;

// cli_slot_start starts the worker `slots[rank]`. `slots` are all of the job,
// of which those before `rank` have been started. Fails with LAC_ERR_INVALID or
// LAC_ERR_NOMEM; the slot may be running then.
lac_status cli_slot_start(
    const cli_job *job, const uint8_t token[CLI_TOKEN_SIZE], cli_slot *slots,
    uint32_t rank);

#endif
