// SPDX-License-Identifier: MIT
// A bar that is redrawn in place, or lines.
#include "cli/report/progress.h"

#include <time.h>
#include <unistd.h>

enum {
    WIDTH = 24,         // of the bar
    WHAT_MAX = 40,      // characters, so that the line does not wrap
    REDRAWS_MAX = 1000, // of a bar
    LINES_MAX = 20,
    QUIET_SECONDS = 2, // before the first line
};

// Moves to the start of the line and clears it.
static const char clear_line[] = "\r\033[K";

static double progress_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

cli_progress cli_progress_begin(size_t total)
{
    return (cli_progress){
        .stream = stderr,
        .terminal = isatty(STDERR_FILENO) == 1,
        .total = total,
        .start = progress_now(),
    };
}

// Whether one of `parts` equal parts has passed since the last output.
static bool begins_a_part(const cli_progress *p, size_t next, size_t parts)
{
    const double part = (double)p->total / (double)parts;
    return p->shown == 0 || (double)(next - p->shown) >= part;
}

void cli_progress_step(cli_progress *p, size_t done, const char *what)
{
    const size_t next = done + 1;
    if (p->terminal && begins_a_part(p, next, REDRAWS_MAX)) {
        const size_t filled = p->total == 0 ? 0 : done * WIDTH / p->total;
        (void)fprintf(p->stream, "%s[", clear_line);
        for (size_t i = 0; i < WIDTH; i++) {
            (void)fputc(i < filled ? '#' : ' ', p->stream);
        }
        (void)fprintf(
            p->stream, "] %zu/%zu %.*s", next, p->total, WHAT_MAX, what);
    } else if (
        !p->terminal && progress_now() - p->start > QUIET_SECONDS &&
        begins_a_part(p, next, LINES_MAX)) {
        (void)fprintf(p->stream, "%zu/%zu %s\n", next, p->total, what);
    } else {
        return;
    }
    p->shown = next;
    (void)fflush(p->stream);
}

void cli_progress_end(cli_progress *p)
{
    if (p->terminal && p->shown > 0) {
        (void)fputs(clear_line, p->stream);
        (void)fflush(p->stream);
        p->shown = 0; // so that the next step draws it again
    }
}
