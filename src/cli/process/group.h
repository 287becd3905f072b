// SPDX-License-Identifier: MIT
// Runs all processes of a job until they have ended.
#ifndef LACONIC_CLI_PROCESS_GROUP_H
#define LACONIC_CLI_PROCESS_GROUP_H

#include "cli/process/start.h"

// cli_group_run starts the workers and waits for them. The first that fails
// ends the others, and so does a signal. Returns an exit code: CLI_GOOD if all
// succeed, CLI_FAILED after a message, or 128 + the number of the signal that
// this process got.
int cli_group_run(const cli_job *job);

#endif
