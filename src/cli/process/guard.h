// SPDX-License-Identifier: MIT
// Guards one process: nothing of it stays when the launcher is gone.
#ifndef LACONIC_CLI_PROCESS_GUARD_H
#define LACONIC_CLI_PROCESS_GUARD_H

#include "cli/process/task.h"

// Bytes that a guard reads from its lifeline. The end of the lifeline, which is
// also the death of the launcher, means CLI_GUARD_END.
enum {
    CLI_GUARD_INTERRUPT = 'I', // pass on SIGINT
    CLI_GUARD_TERMINATE = 'T', // pass on SIGTERM
    CLI_GUARD_HANG_UP = 'H',   // pass on SIGHUP
    CLI_GUARD_END = 'E',       // SIGTERM, and SIGKILL if it does not help
};

// cli_guard_run starts the process of a task, keeps its token, and waits for it
// while it obeys `lifeline`, a file descriptor. Returns the exit code of the
// process, 128 + the number of the signal that ended it, or CLI_FAILED after a
// message. Writes this number, or 0 if no signal ended it.
int cli_guard_run(const cli_task *task, int lifeline, int *signal_out);

// cli_guard_finds returns whether `word` names a subcommand, or a program that
// can be started from here.
bool cli_guard_finds(const char *word);

#endif
