// SPDX-License-Identifier: MIT
// What the ranks of a simulated cluster share. SimGrid runs one rank at a time,
// and another one only where this one waits, so there is no lock. Waiting is
// done by SimGrid too: a lock of this process would stop the simulation.
#include "cli/launch/simulated.h"

#include <simgrid/barrier.h>

#include "cli/options/command.h"

static void *shared;     // the context of the first rank
static sg_bar_t barrier; // of all ranks

int cli_simulated_enter(
    const cli_workers *workers, void **context_inout, uint32_t world)
{
    if (shared == NULL) {
        shared = *context_inout;
        barrier = sg_barrier_init(world);
        const int code = workers->prepare(shared, world);
        if (code != CLI_GOOD) {
            return code;
        }
    }
    *context_inout = shared;
    (void)sg_barrier_wait(barrier);
    return CLI_GOOD;
}

void cli_simulated_leave(void)
{
    (void)sg_barrier_wait(barrier);
}
