// SPDX-License-Identifier: MIT
// A bar that is redrawn in place, or lines.
#include "cli/report/progress.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/report/colour.h"

enum {
    WIDTH = 20,       // of the bar
    COLUMNS_MAX = 79, // of a line, so that it does not wrap
    TEXT_SIZE = 64,
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
        .colour = cli_colour(STDERR_FILENO),
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

// Writes the time that is left, if the steps take as long as those before; an
// empty text if too few are complete.
static const char *eta_text(
    const cli_progress *p, size_t done, char text[TEXT_SIZE])
{
    const double age = progress_now() - p->start;
    if (age <= QUIET_SECONDS || done <= p->first || p->total < done) {
        return "";
    }
    const double step = age / (double)(done - p->first);
    const double left = step * (double)(p->total - done);
    const unsigned seconds = left < 1e6 ? (unsigned)left : 999999;
    const unsigned minutes = seconds / 60, hours = minutes / 60;
    if (hours > 0) {
        (void)snprintf(
            text, TEXT_SIZE, "  ETA %u:%02u:%02u", hours, minutes % 60,
            seconds % 60);
    } else {
        (void)snprintf(text, TEXT_SIZE, "  ETA %u:%02u", minutes, seconds % 60);
    }
    return text;
}

static void draw_bar(const cli_progress *p, size_t filled)
{
    (void)fprintf(p->stream, "%s[%s", clear_line, p->colour ? CLI_GREEN : "");
    for (size_t i = 0; i < WIDTH; i++) {
        (void)fputc(i < filled ? '#' : ' ', p->stream);
    }
    (void)fputs(p->colour ? CLI_NO_COLOUR : "", p->stream);
}

// Shows `count` of the steps, of which `done` are complete.
static void show_steps(
    cli_progress *p, size_t done, size_t count, const char *what)
{
    char text[TEXT_SIZE], eta[TEXT_SIZE];
    if (!p->begun) {
        p->first = done;
        p->begun = true;
    }
    const bool all = done == p->total && p->shown < done;
    if (p->terminal && (all || begins_a_part(p, count, REDRAWS_MAX))) {
        const size_t filled = p->total == 0 ? 0 : done * WIDTH / p->total;
        draw_bar(p, filled);
        (void)snprintf(text, sizeof(text), "] %zu/%zu ", count, p->total);
        const char *const left = eta_text(p, done, eta);
        const size_t used = 1 + WIDTH + strlen(text) + strlen(left);
        (void)fprintf(
            p->stream, "%s%.*s%s", text,
            used < COLUMNS_MAX ? (int)(COLUMNS_MAX - used) : 0, what, left);
    } else if (
        !p->terminal && progress_now() - p->start > QUIET_SECONDS &&
        begins_a_part(p, count, LINES_MAX)) {
        (void)fprintf(p->stream, "%zu/%zu %s\n", count, p->total, what);
    } else {
        return;
    }
    p->shown = count;
    (void)fflush(p->stream);
}

void cli_progress_step(cli_progress *p, size_t done, const char *what)
{
    show_steps(p, done, done + 1, what);
}

void cli_progress_done(cli_progress *p, size_t done, const char *what)
{
    show_steps(p, done, done, what);
}

void cli_progress_end(cli_progress *p)
{
    if (p->terminal && p->shown > 0) {
        (void)fputs(clear_line, p->stream);
        (void)fflush(p->stream);
        p->shown = 0; // so that the next step draws it again
    }
}
