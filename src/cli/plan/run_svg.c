// SPDX-License-Identifier: MIT
// The plot of runs as an SVG picture: a line through the epochs of each. Runs
// with values far from those of the others do not stretch the axis: triangles
// at its end are their epochs beyond it.
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
    TICKS = 4,    // intervals of an axis
    LINE = 18,    // of the legend
    KEY = 24,     // of a run in it
    FAR = 100000, // beyond the plot, where a line has the same direction
    NAME_SIZE = DATA_PATH_SIZE + 64,
};

// Colours that people with any colour vision can tell apart.
static const char *const colours[] = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7",
    "#e69f00", "#56b4e9", "#000000", "#8c6d31",
};
enum { COLOURS = sizeof(colours) / sizeof(colours[0]) };

// Those of runs of the same colour, as many as CLI_TEXTS_MAX runs need.
static const char *const dashes[] = {"none", "8 4", "2 3", "8 4 2 4"};
enum { DASHES = sizeof(dashes) / sizeof(dashes[0]) };

static const char *colour_of(size_t run)
{
    return colours[run % COLOURS];
}

static const char *dash_of(size_t run)
{
    return dashes[run / COLOURS % DASHES];
}

static double plot_x(const plan_run_axes *a, double seconds)
{
    return LEFT + PLOT_WIDTH * seconds / a->seconds;
}

static double plot_y(const plan_run_axes *a, double value)
{
    const double y = TOP + PLOT_HEIGHT * (a->high - value) / (a->high - a->low);
    return fmax(-FAR, fmin(FAR, y));
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
    FILE *f, const plan_runs *r, size_t number, const plan_run_axes *a)
{
    const plan_run *const run = &r->runs[number];
    bool open = false;
    (void)fprintf(
        f,
        "<path clip-path=\"url(#plot)\" fill=\"none\" stroke=\"%s\" "
        "stroke-width=\"2\" stroke-dasharray=\"%s\" d=\"",
        colour_of(number), dash_of(number));
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

static void put_epoch(FILE *f, double x, double y, const char *colour)
{
    if (y > TOP - 0.1 && y < TOP + PLOT_HEIGHT + 0.1) {
        (void)fprintf(
            f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x, y,
            colour);
    } else {
        const double tip = y < TOP ? TOP : TOP + PLOT_HEIGHT;
        const double base = tip + (y < TOP ? 8 : -8);
        (void)fprintf(
            f,
            "<polygon points=\"%.1f %.1f %.1f %.1f %.1f %.1f\" "
            "fill=\"%s\"/>\n",
            x, tip, x + 5, base, x - 5, base, colour);
    }
}

static void put_epochs(
    FILE *f, const plan_runs *r, size_t number, const plan_run_axes *a)
{
    const plan_run *const run = &r->runs[number];
    for (size_t i = 0; i < run->trained.count; i++) {
        const double value = plan_run_value(run, &run->trained.epochs[i]);
        if (isfinite(value)) {
            put_epoch(
                f, plot_x(a, plan_run_seconds(run, &run->trained.epochs[i])),
                plot_y(a, value), colour_of(number));
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

// The name of a run, and how far it is beyond the axis.
static const char *legend_name(
    const plan_runs *r, size_t number, const plan_run_axes *a,
    char text[NAME_SIZE])
{
    const plan_run *const run = &r->runs[number];
    double low = a->low, high = a->high;
    for (size_t i = 0; i < run->trained.count; i++) {
        const double value = plan_run_value(run, &run->trained.epochs[i]);
        low = fmin(low, value);
        high = fmax(high, value);
    }
    int len = snprintf(text, NAME_SIZE, "%s", plan_runs_name(r, number));
    if (high > a->high && len < NAME_SIZE) {
        len += snprintf(
            text + len, NAME_SIZE - (size_t)len, ", beyond the axis up to %.4g",
            high);
    }
    if (low < a->low && len < NAME_SIZE) {
        (void)snprintf(
            text + len, NAME_SIZE - (size_t)len,
            ", beyond the axis down to %.4g", low);
    }
    return text;
}

static void put_legend(FILE *f, const plan_runs *r, const plan_run_axes *a)
{
    char text[NAME_SIZE];
    for (size_t i = 0; i < r->count && r->count > 1; i++) {
        const double y = HEIGHT + LINE * (double)i;
        (void)fprintf(
            f,
            "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
            "stroke-width=\"2\" stroke-dasharray=\"%s\"/>\n",
            LEFT, LEFT + KEY, y - 4, y - 4, colour_of(i), dash_of(i));
        plan_picture_text(
            f, LEFT + KEY + 8, y, "start", legend_name(r, i, a, text));
    }
}

static void put_runs(FILE *f, const void *context)
{
    const plan_runs *const r = context;
    plan_run_axes axes = {0};
    put_title(f, r);
    (void)fprintf(
        f,
        "<clipPath id=\"plot\"><rect x=\"%d\" y=\"%d\" width=\"%d\" "
        "height=\"%d\"/></clipPath>\n",
        LEFT, TOP - 2, PLOT_WIDTH + 4, PLOT_HEIGHT + 4);
    if (plan_run_axes_make(r, true, &axes)) {
        put_ticks(f, &axes);
        for (size_t i = 0; i < r->count; i++) {
            put_curve(f, r, i, &axes);
            put_epochs(f, r, i, &axes);
        }
    }
    plan_picture_text(
        f, LEFT + PLOT_WIDTH / 2.0, TOP + PLOT_HEIGHT + 44, "middle", "time");
    (void)fprintf(
        f,
        "<text transform=\"translate(16 %d) rotate(-90)\" "
        "text-anchor=\"middle\">%s</text>\n",
        TOP + PLOT_HEIGHT / 2, plan_run_quantity(&r->runs[0]));
    put_legend(f, r, &axes);
}

lac_status plan_run_svg(const plan_runs *r, const char *path)
{
    const int legend = r->count > 1 ? LINE * (int)r->count : 0;
    return plan_picture_write(path, WIDTH, HEIGHT + legend, put_runs, r);
}
