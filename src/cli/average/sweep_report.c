// SPDX-License-Identifier: MIT
// The output of a sweep of `laconic average`: a row per value and a plot of the
// final errors.
#include <math.h>

#include "cli/average/report.h"
#include "cli/report/plot.h"

enum { VALUE_COLUMNS = 14 };

cJSON *cli_sweep_json(const cli_sweep *sweep, const cli_average *runs)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON *const results = cJSON_CreateArray();
    cJSON_AddStringToObject(o, "setting", sweep->setting);
    cJSON_AddItemToObject(o, "results", results);
    for (size_t i = 0; i < sweep->count; i++) {
        cJSON *const result = cli_average_json(&runs[i]);
        cJSON_AddNumberToObject(result, "value", sweep->points[i].number);
        cJSON_AddItemToArray(results, result);
    }
    return o;
}

static void print_shared(
    const cli_sweep *sweep, const cli_average *runs, FILE *stream)
{
    cli_table t = cli_table_make("lrl", NULL);
    cli_average all = runs[0];
    all.algorithm.spec = sweep->general.algorithm;
    all.algorithm.compressor = sweep->general.compressor;
    all.result.gamma = (double)NAN;
    cli_average_describe(&all, &t);
    if (!isnan(all.result.initial_error)) {
        cli_table_add(&t, "initial error");
        cli_table_add(&t, "%.4g", all.result.initial_error);
        cli_table_add(&t, "squared distance to the mean, mean over workers");
    }
    cli_table_print(&t, stream);
}

static void add_errors(const cli_average_result *r, cli_table *t)
{
    if (r->diverged) {
        cli_table_add(t, "diverged");
    } else if (isnan(r->final_error)) {
        cli_table_add(t, "-");
    } else {
        cli_table_add(t, "%.4g", r->final_error);
    }
    if (isfinite(r->final_error) && r->initial_error > 0) {
        cli_table_add(t, "%.3g x", r->final_error / r->initial_error);
    } else {
        cli_table_add(t, "-");
    }
}

static void sweep_add_run(
    const cli_sweep_point *point, const cli_average *a, cli_table *t)
{
    const cli_average_result *const r = &a->result;
    char text[CLI_CELL_SIZE], bytes[CLI_BYTES_SIZE], rounds[CLI_GROUPED_SIZE];
    const double fewer = cli_average_fewer(a);
    cli_table_add(t, "%s", cli_fitted(point->value, VALUE_COLUMNS, text));
    add_errors(r, t);
    cli_table_add(t, "%s", cli_bytes((double)r->traffic.payload_bytes, bytes));
    if (isnan(fewer)) {
        cli_table_add(t, "-");
    } else {
        cli_table_add(t, "%.1f x", fewer);
    }
    cli_table_add(t, "%s", cli_grouped(r->rounds, rounds));
    cli_table_add(t, "%.2f s", r->seconds);
}

static void print_runs(
    const cli_sweep *sweep, const cli_average *runs, FILE *stream)
{
    static const char *const heads[] = {"final error", "of initial", "bytes",
                                        "fewer",       "rounds",     "time"};
    cli_table t = cli_table_make("rrrrrrr", NULL);
    char text[CLI_CELL_SIZE];
    cli_table_add(&t, "%s", cli_fitted(sweep->setting, VALUE_COLUMNS, text));
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        cli_table_add(&t, "%s", heads[i]);
    }
    for (size_t i = 0; i < sweep->count; i++) {
        sweep_add_run(&sweep->points[i], &runs[i], &t);
    }
    (void)fputc('\n', stream);
    cli_table_print(&t, stream);
}

// The ends of both axes. The vertical one is logarithmic and ends at the
// initial error, so that errors that grow do not hide differences of those that
// fall. The horizontal one is logarithmic unless a value is 0 or negative.
typedef struct sweep_axes {
    const cli_sweep_point *left, *right;
    bool log_x;
    double low, high;
} sweep_axes;

// Returns false if there is nothing to plot: no error was measured, or all
// initial values are equal.
static bool sweep_axes_make(
    const cli_sweep *sweep, const cli_average *runs, sweep_axes *out)
{
    const cli_sweep_point *const points = sweep->points;
    const double initial = runs[0].result.initial_error;
    sweep_axes axes = {
        .left = points, .right = points, .low = initial, .high = initial};
    for (size_t i = 0; i < sweep->count; i++) {
        const double error = runs[i].result.final_error;
        if (points[i].number < axes.left->number) {
            axes.left = &points[i];
        }
        if (points[i].number > axes.right->number) {
            axes.right = &points[i];
        }
        if (error > 0 && error < axes.low) {
            axes.low = error;
        }
    }
    axes.log_x = axes.left->number > 0;
    *out = axes;
    return initial > 0;
}

static double sweep_part_of(double low, double high, double x, bool logarithmic)
{
    if (!(high > low)) {
        return 0.5;
    }
    return logarithmic ? log(x / low) / log(high / low)
                       : (x - low) / (high - low);
}

static char mark_of(const cli_average_result *r)
{
    return r->diverged ? 'x' : r->final_error > r->initial_error ? '^' : '*';
}

// Returns whether there is another mark than '*'.
static bool put_runs(
    const cli_sweep *sweep, const cli_average *runs, const sweep_axes *axes,
    cli_plot *plot)
{
    bool others = false;
    for (size_t i = 0; i < sweep->count; i++) {
        const cli_average_result *const r = &runs[i].result;
        const char mark = mark_of(r);
        const double error = fmax(r->final_error, axes->low); // it may be 0
        const double x = sweep_part_of(
            axes->left->number, axes->right->number, sweep->points[i].number,
            axes->log_x);
        const double y =
            mark == '*' ? sweep_part_of(axes->low, axes->high, error, true) : 1;
        cli_plot_put(plot, x, y, mark);
        others = others || mark != '*';
    }
    return others;
}

static void print_plot(
    const cli_sweep *sweep, const cli_average *runs, FILE *stream)
{
    char high[CLI_GROUPED_SIZE], low[CLI_GROUPED_SIZE];
    sweep_axes axes;
    if (!sweep_axes_make(sweep, runs, &axes)) {
        return;
    }
    cli_plot plot = cli_plot_make();
    const bool others = put_runs(sweep, runs, &axes, &plot);
    (void)snprintf(high, sizeof(high), "%.2g", axes.high);
    (void)snprintf(low, sizeof(low), "%.2g", axes.low);
    (void)fprintf(
        stream, "\nfinal error over %s, %slogarithmic\n%s", sweep->setting,
        axes.log_x ? "both " : "the error ",
        others ? "^ above the initial error, x diverged\n" : "");
    cli_plot_print(
        &plot,
        &(cli_plot_labels){high, low, axes.left->value, axes.right->value},
        stream);
}

static void print_best(
    const cli_sweep *sweep, const cli_average *runs, FILE *stream)
{
    size_t best = sweep->count;
    for (size_t i = 0; i < sweep->count; i++) {
        const double error = runs[i].result.final_error;
        if (isfinite(error) &&
            (best == sweep->count || error < runs[best].result.final_error)) {
            best = i;
        }
    }
    if (best < sweep->count) {
        (void)fprintf(
            stream, "\nsmallest final error: %.4g with %s=%s\n",
            runs[best].result.final_error, sweep->setting,
            sweep->points[best].value);
    }
}

void cli_sweep_table(
    const cli_sweep *sweep, const cli_average *runs, FILE *stream)
{
    print_shared(sweep, runs, stream);
    print_runs(sweep, runs, stream);
    print_plot(sweep, runs, stream);
    print_best(sweep, runs, stream);
}
