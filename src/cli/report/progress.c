// SPDX-License-Identifier: MIT
// A bar that is redrawn in place, or lines.
#include "cli/report/progress.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/report/colour.h"

enum {
    WIDTH = 20,       // of the bar
    NARROW = 8,       // of one beside a long text
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

static void draw_bar(const cli_progress *p, size_t done, size_t width)
{
    const size_t filled = p->total == 0 ? 0 : done * width / p->total;
    (void)fprintf(p->stream, "%s[%s", clear_line, p->colour ? CLI_GREEN : "");
    for (size_t i = 0; i < width; i++) {
        (void)fputc(i < filled ? '#' : ' ', p->stream);
    }
    (void)fputs(p->colour ? CLI_NO_COLOUR : "", p->stream);
}

// Returns how much of `what` fits into `room` columns: without its last parts,
// which two spaces separate, or the end of a single one.
static size_t fitting_part(const char *what, size_t room)
{
    const size_t len = strlen(what);
    size_t part = 0;
    if (len <= room) {
        return len;
    }
    for (size_t i = 1; i <= room; i++) {
        part = strncmp(what + i, "  ", 2) == 0 ? i : part;
    }
    return part > 0 ? part : room;
}

// Draws the line of a terminal.
static void draw_line(
    const cli_progress *p, size_t done, size_t count, const char *what)
{
    char text[TEXT_SIZE], eta[TEXT_SIZE];
    (void)snprintf(text, sizeof(text), "] %zu/%zu ", count, p->total);
    const char *const left = eta_text(p, done, eta);
    const size_t used = 1 + strlen(text) + strlen(left);
    const size_t width =
        used + WIDTH + strlen(what) <= COLUMNS_MAX ? WIDTH : NARROW;
    const size_t room =
        used + width < COLUMNS_MAX ? COLUMNS_MAX - used - width : 0;
    draw_bar(p, done, width);
    (void)fprintf(
        p->stream, "%s%.*s%s", text, (int)fitting_part(what, room), what, left);
}

// Shows `count` of the steps, of which `done` are complete.
static void show_steps(
    cli_progress *p, size_t done, size_t count, const char *what)
{
    if (!p->begun) {
        p->first = done;
        p->begun = true;
    }
    const bool all = done == p->total && p->shown < done;
    if (p->terminal && (all || begins_a_part(p, count, REDRAWS_MAX))) {
        draw_line(p, done, count, what);
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
