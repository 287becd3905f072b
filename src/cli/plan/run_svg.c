// SPDX-License-Identifier: MIT
// The plot of a run as an SVG picture: a line through its epochs.
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
};

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
static void put_curve(FILE *f, const plan_run *run, const plan_run_axes *a)
{
    bool open = false;
    (void)fputs(
        "<path fill=\"none\" stroke=\"#0072b2\" stroke-width=\"2\" d=\"", f);
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

static void put_epochs(FILE *f, const plan_run *run, const plan_run_axes *a)
{
    for (size_t i = 0; i < run->trained.count; i++) {
        const double value = plan_run_value(run, &run->trained.epochs[i]);
        if (isfinite(value)) {
            (void)fprintf(
                f,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" "
                "fill=\"#0072b2\"/>\n",
                plot_x(a, plan_run_seconds(run, &run->trained.epochs[i])),
                plot_y(a, value));
        }
    }
}

static void put_run(FILE *f, const void *context)
{
    const plan_run *const run = context;
    const cli_run *const t = &run->trained;
    const plan_choice choice = {t->algorithm, t->compressor, false};
    char title[512], name[PLAN_NAME_SIZE], rate[PLAN_TEXT_SIZE],
        latency[PLAN_TEXT_SIZE];
    plan_run_axes axes;
    (void)snprintf(
        title, sizeof(title), "%s on %s, %s, %u workers, %s, %s", t->model,
        t->data, plan_name(&choice, name), t->workers,
        plan_bandwidth(run->options->network.bandwidth, rate),
        plan_seconds(run->options->network.latency, latency));
    plan_picture_text(f, LEFT, 26, "start", title);
    if (plan_run_axes_make(run, &axes)) {
        put_ticks(f, &axes);
        put_curve(f, run, &axes);
        put_epochs(f, run, &axes);
    }
    plan_picture_text(
        f, LEFT + PLOT_WIDTH / 2.0, TOP + PLOT_HEIGHT + 44, "middle", "time");
    (void)fprintf(
        f,
        "<text transform=\"translate(16 %d) rotate(-90)\" "
        "text-anchor=\"middle\">%s</text>\n",
        TOP + PLOT_HEIGHT / 2, plan_run_quantity(run));
}

lac_status plan_run_svg(const plan_run *run, const char *path)
{
    return plan_picture_write(path, WIDTH, HEIGHT, put_run, run);
}
