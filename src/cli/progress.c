// SPDX-License-Identifier: MIT
// A bar that is drawn over itself, or a line now and then, on stderr.
#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

// When something is due first, and then a bar or a line again.
#define FIRST      2.0
#define BAR_AGAIN  0.1
#define LINE_AGAIN 30.0

enum { BAR_WIDTH = 40 };

cli_progress cli_progress_begin(const char *what, uint64_t total, double now)
{
    const bool terminal = isatty(STDERR_FILENO) != 0;
    return (cli_progress){
        .what = what,
        .total = total,
        .begun = now,
        .next = now + FIRST,
        .terminal = terminal,
    };
}

// "[####    ] 12 of 100 rounds, 8 s to go", over the bar before.
static void draw_bar(cli_progress *p, uint64_t done, double left)
{
    static const char full[] = "########################################";
    const int width =
        (int)((double)BAR_WIDTH * (double)done / (double)p->total);
    (void)fprintf(
        stderr, "\r[%.*s%*s] %" PRIu64 " of %" PRIu64 " %s, %.0f s to go\033[K",
        width, full, BAR_WIDTH - width, "", done, p->total, p->what, left);
    (void)fflush(stderr);
    p->shown = true;
}

void cli_progress_tell(cli_progress *p, uint64_t done, double now)
{
    if (now < p->next || done == 0 || done >= p->total) {
        return;
    }
    p->next = now + (p->terminal ? BAR_AGAIN : LINE_AGAIN);
    const double left =
        (now - p->begun) * (double)(p->total - done) / (double)done;
    if (p->terminal) {
        draw_bar(p, done, left);
    } else {
        (void)fprintf(
            stderr,
            "laconic: %" PRIu64 " of %" PRIu64 " %s, about %.0f s to go\n",
            done, p->total, p->what, left);
    }
}

void cli_progress_end(cli_progress *p)
{
    if (p->shown) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
        p->shown = false;
    }
}
