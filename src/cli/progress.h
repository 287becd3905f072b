// SPDX-License-Identifier: MIT
// How far a command has come, for people who wait: on a terminal a bar, else a
// line now and then. What is done soon says nothing.
#ifndef LACONIC_CLI_PROGRESS_H
#define LACONIC_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cli_progress {
    const char *what; // of what there are `total`: "rounds"
    uint64_t total;
    double begun, next; // seconds on the caller's clock
    bool terminal;
    bool shown; // a bar stands on the terminal
} cli_progress;

// cli_progress_begin returns a beginning at the time `now`.
cli_progress cli_progress_begin(const char *what, uint64_t total, double now);

// cli_progress_tell says that `done` are done, if it is time to say so.
void cli_progress_tell(cli_progress *p, uint64_t done, double now);

// cli_progress_end clears the bar away.
void cli_progress_end(cli_progress *p);

#endif
