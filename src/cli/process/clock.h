// SPDX-License-Identifier: MIT
// Deadlines of processes.
#ifndef LACONIC_CLI_PROCESS_CLOCK_H
#define LACONIC_CLI_PROCESS_CLOCK_H

#include <time.h>

// Seconds between SIGTERM and SIGKILL for a process that must end.
#define CLI_END_SECONDS 5.0

// cli_clock returns seconds on a clock that never jumps.
static inline double cli_clock(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// cli_clock_poll returns a timeout of poll until `deadline`, -1 for 0, which
// means never.
static inline int cli_clock_poll(double deadline)
{
    const double left = deadline - cli_clock();
    return deadline == 0 ? -1 : left <= 0 ? 0 : (int)(1e3 * left) + 1;
}

#endif
