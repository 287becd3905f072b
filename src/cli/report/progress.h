// SPDX-License-Identifier: MIT
// The progress of a long command, on stderr: a bar on a terminal, otherwise
// plain lines.
#ifndef LACONIC_CLI_REPORT_PROGRESS_H
#define LACONIC_CLI_REPORT_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// The progress of one run.
typedef struct cli_progress {
    FILE *stream;
    bool terminal;
    bool colour;
    size_t total;
    size_t shown; // steps that had begun at the last output
    size_t first; // steps that were complete at the first call
    bool begun;   // there was a call
    double start; // seconds on a monotonic clock
} cli_progress;

// cli_progress_begin starts the clock for `total` steps. Prints nothing.
cli_progress cli_progress_begin(size_t total);

// cli_progress_step reports that `done` steps are complete and the next one,
// `what`, begins. A terminal shows "[####    ] 3/9 what" in one line, and from
// the third second on the time that is left, "ETA 1:05". Beside a long text the
// bar is shorter; of parts separated by two spaces the last are left out if
// they still do not fit. Otherwise "3/9 what" is printed as a line, after the
// first two seconds of the run and at most twenty times, so that a log stays
// short.
void cli_progress_step(cli_progress *p, size_t done, const char *what);

// cli_progress_done reports that `done` steps are complete, and what was found;
// it shows "[###### ] 3/9 what" likewise, and the last step always on a
// terminal.
void cli_progress_done(cli_progress *p, size_t done, const char *what);

// cli_progress_end removes the bar from the terminal, before other output.
// Lines remain.
void cli_progress_end(cli_progress *p);

#endif
