// SPDX-License-Identifier: MIT
// The plot of runs as an SVG picture: a line through the epochs of each.
#include <math.h>

#include "cli/plan/picture.h"
#include "cli/plan/run_plot.h"
#include "cli/plan/run_report.h"

// Pixels.
enum {
    LEFT = 70,
    TOP = 44,
    PLOT_WIDTH = 560,
    PLOT_HEIGHT = 320,
    WIDTH = LEFT + PLOT_WIDTH + 40,
    HEIGHT = TOP + PLOT_HEIGHT + 58,
    TICKS = 4, // intervals of an axis
    LINE = 18, // of the legend
    KEY = 24,  // of a run in it
};

// Colours that people with any colour vision can tell apart.
static const char *const colours[] = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7",
    "#e69f00", "#56b4e9", "#000000", "#8c6d31",
};
enum { COLOURS = sizeof(colours) / sizeof(colours[0]) };

static double plot_x(const plan_run_axes *a, double seconds)
{
    return LEFT + PLOT_WIDTH * seconds / a->seconds;
}

static double plot_y(const plan_run_axes *a, double value)
{
    return TOP + PLOT_HEIGHT * (a->high - value) / (a->high - a->low);
}

static void put_ticks(FILE *f, const plan_run_axes *a)
{
    char text[PLAN_TEXT_SIZE];
    for (int i = 0; i <= TICKS; i++) {
        const double part = (double)i / TICKS;
        const double value = a->low + part * (a->high - a->low);
        (void)fprintf(
            f,
            "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" "
            "stroke=\"#d9d9d9\"/>\n",
            LEFT, LEFT + PLOT_WIDTH, plot_y(a, value), plot_y(a, value));
        (void)snprintf(text, sizeof(text), "%.2f", value);
        plan_picture_text(f, LEFT - 8, plot_y(a, value) + 4, "end", text);
        plan_picture_text(
            f, plot_x(a, part * a->seconds), TOP + PLOT_HEIGHT + 20, "middle",
            plan_seconds(part * a->seconds, text));
    }
}

// A line from one epoch to the next; it ends where a value is missing.
static void put_curve(
    FILE *f, const plan_run *run, const plan_run_axes *a, const char *colour)
{
    bool open = false;
    (void)fprintf(
        f, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"", colour);
    for (size_t i = 0; i < run->trained.count; i++) {
        const double value = plan_run_value(run, &run->trained.epochs[i]);
        if (isfinite(value)) {
            (void)fprintf(
                f, "%c%.1f %.1f", open ? 'L' : 'M',
                plot_x(a, plan_run_seconds(run, &run->trained.epochs[i])),
                plot_y(a, value));
        }
        open = isfinite(value);
    }
    (void)fputs("\"/>\n", f);
}

static void put_epochs(
    FILE *f, const plan_run *run, const plan_run_axes *a, const char *colour)
{
    for (size_t i = 0; i < run->trained.count; i++) {
        const double value = plan_run_value(run, &run->trained.epochs[i]);
        if (isfinite(value)) {
            (void)fprintf(
                f,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" "
                "fill=\"%s\"/>\n",
                plot_x(a, plan_run_seconds(run, &run->trained.epochs[i])),
                plot_y(a, value), colour);
        }
    }
}

// What is plotted: the run, or what several share.
static void put_title(FILE *f, const plan_runs *r)
{
    const plan_run *const run = &r->runs[0];
    const cli_run *const t = &run->trained;
    const plan_choice choice = {t->algorithm, t->compressor, false};
    char title[512], subject[256], name[PLAN_NAME_SIZE], rate[PLAN_TEXT_SIZE],
        latency[PLAN_TEXT_SIZE];
    if (r->count == 1) {
        (void)snprintf(
            subject, sizeof(subject), "%s on %s, %s, %u workers", t->model,
            t->data, plan_name(&choice, name), t->workers);
    } else {
        (void)snprintf(
            subject, sizeof(subject), "%zu runs on %s", r->count, t->data);
    }
    (void)snprintf(
        title, sizeof(title), "%s, %s, %s", subject,
        plan_bandwidth(run->options->network.bandwidth, rate),
        plan_seconds(run->options->network.latency, latency));
    plan_picture_text(f, LEFT, 26, "start", title);
}

static void put_legend(FILE *f, const plan_runs *r)
{
    for (size_t i = 0; i < r->count && r->count > 1; i++) {
        const double y = HEIGHT + LINE * (double)i;
        (void)fprintf(
            f,
            "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
            "stroke-width=\"2\"/>\n",
            LEFT, LEFT + KEY, y - 4, y - 4, colours[i % COLOURS]);
        plan_picture_text(f, LEFT + KEY + 8, y, "start", plan_runs_name(r, i));
    }
}

static void put_runs(FILE *f, const void *context)
{
    const plan_runs *const r = context;
    plan_run_axes axes;
    put_title(f, r);
    if (plan_run_axes_make(r, &axes)) {
        put_ticks(f, &axes);
        for (size_t i = 0; i < r->count; i++) {
            put_curve(f, &r->runs[i], &axes, colours[i % COLOURS]);
            put_epochs(f, &r->runs[i], &axes, colours[i % COLOURS]);
        }
    }
    plan_picture_text(
        f, LEFT + PLOT_WIDTH / 2.0, TOP + PLOT_HEIGHT + 44, "middle", "time");
    (void)fprintf(
        f,
        "<text transform=\"translate(16 %d) rotate(-90)\" "
        "text-anchor=\"middle\">%s</text>\n",
        TOP + PLOT_HEIGHT / 2, plan_run_quantity(&r->runs[0]));
    put_legend(f, r);
}

lac_status plan_run_svg(const plan_runs *r, const char *path)
{
    const int legend = r->count > 1 ? LINE * (int)r->count : 0;
    return plan_picture_write(path, WIDTH, HEIGHT + legend, put_runs, r);
}
