// SPDX-License-Identifier: MIT
// The axes of a plot, and the plot as text.
#include "cli/plan/run_plot.h"

#include <math.h>

#include "cli/report/plot.h"
#include "cli/report/robust.h"

// A margin of 1 would vanish beside a huge perplexity.
#define MARGIN_PART 1e-6

double plan_run_value(const plan_run *run, const cli_run_epoch *epoch)
{
    return run->trained.text ? epoch->values[CLI_METRIC_TEST_PERPLEXITY]
                             : 100 * epoch->values[CLI_METRIC_TEST_ACCURACY];
}

const char *plan_run_quantity(const plan_run *run)
{
    return run->trained.text ? "perplexity" : "accuracy, %";
}

char plan_run_mark(const plan_runs *r, size_t i)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    return r->count == 1 ? '*' : letters[i % (sizeof(letters) - 1)];
}

// The least and the greatest value of a run; the former is greater if there is
// none.
static cli_interval run_range(const plan_run *run)
{
    cli_interval range = {(double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < run->trained.count; i++) {
        const double value = plan_run_value(run, &run->trained.epochs[i]);
        if (isfinite(value)) {
            range.low = fmin(range.low, value);
            range.high = fmax(range.high, value);
        }
    }
    return range;
}

static double run_end(const plan_run *run)
{
    const cli_run *const t = &run->trained;
    return plan_run_seconds(run, &t->epochs[t->count - 1]);
}

bool plan_run_axes_make(const plan_runs *r, bool robust, plan_run_axes *out)
{
    plan_run_axes axes = {.low = (double)INFINITY, .high = -(double)INFINITY};
    double lows[CLI_TEXTS_MAX], highs[CLI_TEXTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++) {
        const cli_interval range = run_range(&r->runs[i]);
        axes.seconds = fmax(axes.seconds, run_end(&r->runs[i]));
        if (range.low <= range.high) {
            axes.low = fmin(axes.low, range.low);
            axes.high = fmax(axes.high, range.high);
            lows[count] = range.low;
            highs[count++] = range.high;
        }
    }
    if (count == 0) {
        return false;
    }
    if (robust) {
        const cli_interval most = cli_robust_range(lows, highs, count);
        axes.low = most.low;
        axes.high = most.high;
    }
    if (axes.low == axes.high) {
        const double margin = fmax(1, MARGIN_PART * axes.high);
        axes.low -= margin;
        axes.high += margin;
    }
    *out = axes;
    return true;
}

static void put_points(
    const plan_run *run, const plan_run_axes *axes, char mark, cli_plot *plot)
{
    for (size_t i = 0; i < run->trained.count; i++) {
        const cli_run_epoch *const e = &run->trained.epochs[i];
        const double value = plan_run_value(run, e);
        if (isfinite(value)) {
            cli_plot_put(
                plot, plan_run_seconds(run, e) / axes->seconds,
                (value - axes->low) / (axes->high - axes->low), mark);
        }
    }
}

void plan_run_plot(const plan_runs *r, FILE *stream)
{
    char high[PLAN_TEXT_SIZE], low[PLAN_TEXT_SIZE], time[PLAN_TEXT_SIZE];
    plan_run_axes axes;
    if (!plan_run_axes_make(r, false, &axes)) {
        return;
    }
    cli_plot plot = cli_plot_make();
    for (size_t i = 0; i < r->count; i++) {
        put_points(&r->runs[i], &axes, plan_run_mark(r, i), &plot);
    }
    (void)snprintf(high, sizeof(high), "%.2f", axes.high);
    (void)snprintf(low, sizeof(low), "%.2f", axes.low);
    (void)fprintf(stream, "\n%s\n", plan_run_quantity(&r->runs[0]));
    cli_plot_print(
        &plot,
        &(cli_plot_labels){high, low, "0", plan_seconds(axes.seconds, time)},
        stream);
}
