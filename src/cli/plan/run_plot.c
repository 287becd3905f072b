// SPDX-License-Identifier: MIT
// A plot as text: a row of characters for each value on the vertical axis.
#include "cli/plan/run_plot.h"

#include <math.h>
#include <string.h>

enum { COLUMNS = 68, ROWS = 14, LABEL = 9 };

double plan_run_value(const plan_run *run, const plan_run_epoch *epoch)
{
    return run->text ? epoch->perplexity : 100 * epoch->accuracy;
}

const char *plan_run_quantity(const plan_run *run)
{
    return run->text ? "perplexity" : "accuracy, %";
}

bool plan_run_axes_make(const plan_run *run, plan_run_axes *out)
{
    plan_run_axes axes = {
        .seconds = run->epochs[run->count - 1].seconds,
        .low = (double)INFINITY,
        .high = -(double)INFINITY,
    };
    for (size_t i = 0; i < run->count; i++) {
        const double value = plan_run_value(run, &run->epochs[i]);
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

static size_t place(double part, size_t cells)
{
    return (size_t)lround(part * (double)(cells - 1));
}

static void put_points(
    const plan_run *run, const plan_run_axes *axes,
    char canvas[ROWS][COLUMNS + 1])
{
    for (size_t i = 0; i < run->count; i++) {
        const plan_run_epoch *const e = &run->epochs[i];
        const double value = plan_run_value(run, e);
        if (isfinite(value)) {
            const double height =
                (value - axes->low) / (axes->high - axes->low);
            canvas[ROWS - 1 - place(height, ROWS)]
                  [place(e->seconds / axes->seconds, COLUMNS)] = '*';
        }
    }
}

static void print_plot_row(
    const char *row, size_t index, const plan_run_axes *axes, FILE *stream)
{
    size_t len = COLUMNS;
    while (len > 0 && row[len - 1] == ' ') {
        len--;
    }
    if (index == 0 || index == ROWS - 1) {
        (void)fprintf(
            stream, "%*.*f |%.*s\n", LABEL, 2,
            index == 0 ? axes->high : axes->low, (int)len, row);
    } else {
        (void)fprintf(stream, "%*s |%.*s\n", LABEL, "", (int)len, row);
    }
}

void plan_run_plot(const plan_run *run, FILE *stream)
{
    char canvas[ROWS][COLUMNS + 1], time[PLAN_TEXT_SIZE];
    plan_run_axes axes;
    if (!plan_run_axes_make(run, &axes)) {
        return;
    }
    memset(canvas, ' ', sizeof(canvas));
    put_points(run, &axes, canvas);
    (void)fprintf(stream, "\n%s\n", plan_run_quantity(run));
    for (size_t row = 0; row < ROWS; row++) {
        print_plot_row(canvas[row], row, &axes, stream);
    }
    (void)fprintf(stream, "%*s +", LABEL, "");
    for (size_t i = 0; i < COLUMNS; i++) {
        (void)fputc('-', stream);
    }
    (void)fprintf(
        stream, "\n%*s 0%*s\n", LABEL, "", COLUMNS,
        plan_seconds(axes.seconds, time));
}
