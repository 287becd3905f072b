// SPDX-License-Identifier: MIT
// Where the workers of a command run: threads of this process, or this process
// as one worker of a job.
#ifndef LACONIC_CLI_LAUNCH_PLACE_H
#define LACONIC_CLI_LAUNCH_PLACE_H

#include "cli/launch/launch.h"

// Where the workers run.
typedef struct cli_place {
    bool threads;
    uint32_t world; // 0: known only to the transport
    const char *spec;
    char *text; // the spec if it was made here, else NULL
    double timeout;
} cli_place;

// cli_place_choose applies the rule:
// 1. `--transport SPEC`, or else LACONIC_TRANSPORT in the environment, wins.
// 2. SMPI_GLOBAL_SIZE, which smpirun sets, means smpi.
// 3. The variables of an MPI launcher mean mpi.
// 4. MASTER_ADDR, RANK and WORLD_SIZE, as torchrun sets them, mean tcp, which
//    then needs a token.
// 5. Otherwise the workers are threads.
// A spec of mpi without a library gets that of the launcher.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM.
lac_status cli_place_choose(
    const char *command, const cli_launch_options *options, cli_place *out);

// cli_place_is_first returns whether this process is worker 0 of the job that
// its environment describes, or in none. A command that needs no other worker
// prints only there.
bool cli_place_is_first(void);

// cli_place_threads returns the threads of each of `world` workers: those of
// the options, or else a share of the processors if the workers run in this
// process, and otherwise 1, since others may run on the same machine.
uint32_t cli_place_threads(const cli_launch_options *options, uint32_t world);

// cli_place_clear releases what cli_place_choose allocated.
void cli_place_clear(cli_place *place);

#endif
