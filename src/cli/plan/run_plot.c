// SPDX-License-Identifier: MIT
// The axes of a plot, and the plot as text.
#include "cli/plan/run_plot.h"

#include <math.h>

#include "cli/report/plot.h"

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

static void extend_axes(const plan_run *run, plan_run_axes *axes)
{
    const cli_run *const t = &run->trained;
    axes->seconds =
        fmax(axes->seconds, plan_run_seconds(run, &t->epochs[t->count - 1]));
    for (size_t i = 0; i < t->count; i++) {
        const double value = plan_run_value(run, &t->epochs[i]);
        if (isfinite(value)) {
            axes->low = fmin(axes->low, value);
            axes->high = fmax(axes->high, value);
        }
    }
}

bool plan_run_axes_make(const plan_runs *r, plan_run_axes *out)
{
    plan_run_axes axes = {.low = (double)INFINITY, .high = -(double)INFINITY};
    for (size_t i = 0; i < r->count; i++) {
        extend_axes(&r->runs[i], &axes);
    }
    if (axes.low > axes.high) {
        return false;
    }
    if (axes.low == axes.high) {
        axes.low -= 1;
        axes.high += 1;
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
    if (!plan_run_axes_make(r, &axes)) {
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
