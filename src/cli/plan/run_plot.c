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

bool plan_run_axes_make(const plan_run *run, plan_run_axes *out)
{
    const cli_run *const t = &run->trained;
    plan_run_axes axes = {
        .seconds = plan_run_seconds(run, &t->epochs[t->count - 1]),
        .low = (double)INFINITY,
        .high = -(double)INFINITY,
    };
    for (size_t i = 0; i < t->count; i++) {
        const double value = plan_run_value(run, &t->epochs[i]);
        if (isfinite(value)) {
            axes.low = fmin(axes.low, value);
            axes.high = fmax(axes.high, value);
        }
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
    const plan_run *run, const plan_run_axes *axes, cli_plot *plot)
{
    for (size_t i = 0; i < run->trained.count; i++) {
        const cli_run_epoch *const e = &run->trained.epochs[i];
        const double value = plan_run_value(run, e);
        if (isfinite(value)) {
            cli_plot_put(
                plot, plan_run_seconds(run, e) / axes->seconds,
                (value - axes->low) / (axes->high - axes->low), '*');
        }
    }
}

void plan_run_plot(const plan_run *run, FILE *stream)
{
    char high[PLAN_TEXT_SIZE], low[PLAN_TEXT_SIZE], time[PLAN_TEXT_SIZE];
    plan_run_axes axes;
    if (!plan_run_axes_make(run, &axes)) {
        return;
    }
    cli_plot plot = cli_plot_make();
    put_points(run, &axes, &plot);
    (void)snprintf(high, sizeof(high), "%.2f", axes.high);
    (void)snprintf(low, sizeof(low), "%.2f", axes.low);
    (void)fprintf(stream, "\n%s\n", plan_run_quantity(run));
    cli_plot_print(
        &plot,
        &(cli_plot_labels){high, low, "0", plan_seconds(axes.seconds, time)},
        stream);
}
