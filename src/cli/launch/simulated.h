// SPDX-License-Identifier: MIT
// Workers as ranks of a simulated cluster, which are all in this process.
#ifndef LACONIC_CLI_LAUNCH_SIMULATED_H
#define LACONIC_CLI_LAUNCH_SIMULATED_H

#include "cli/launch/launch.h"

// cli_simulated_enter makes the context of the first rank that calls it the
// context of all ranks, as that of a process is the context of all its threads:
// data are loaded once. `*context_inout` becomes that context. The first rank
// calls `prepare`; the others wait for it. Returns an exit code.
int cli_simulated_enter(
    const cli_workers *workers, void **context_inout, uint32_t world);

// cli_simulated_leave waits until all ranks call it: none uses the context any
// more.
void cli_simulated_leave(void);

#endif
