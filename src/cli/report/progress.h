// SPDX-License-Identifier: MIT
// How far a long command is, on stderr: a bar on a terminal, plain lines
// otherwise.
#ifndef LACONIC_CLI_REPORT_PROGRESS_H
#define LACONIC_CLI_REPORT_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// One run of so many steps.
typedef struct cli_progress {
    FILE *stream;
    bool terminal;
    size_t total;
    size_t shown; // steps that were begun when it last showed something
    double start; // seconds on a clock that only counts up
} cli_progress;

// cli_progress_begin starts the clock for `total` steps. Shows nothing.
cli_progress cli_progress_begin(size_t total);

// cli_progress_step tells that `done` steps are done and the next one, `what`,
// begins. A terminal shows "[####    ] 3/9 what" in one line. Elsewhere
// "3/9 what" gets a line of its own, once the run has taken two seconds, and
// of many steps only every twentieth part does: a log stays short.
void cli_progress_step(cli_progress *p, size_t done, const char *what);

// cli_progress_end takes the bar off the terminal, before anything else is
// printed. Lines stay.
void cli_progress_end(cli_progress *p);

#endif
