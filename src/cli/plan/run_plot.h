// SPDX-License-Identifier: MIT
// The axes of a plot of accuracy, or of the perplexity of a text, over time.
#ifndef LACONIC_CLI_PLAN_RUN_PLOT_H
#define LACONIC_CLI_PLAN_RUN_PLOT_H

#include "cli/plan/runs.h"
#include "cli/plan/text.h"

// Time begins at 0. The other axis holds a range above 0.
typedef struct plan_run_axes {
    double seconds;
    double low, high;
} plan_run_axes;

// plan_run_value returns the accuracy of an epoch in per cent, or its
// perplexity; NaN if it was not tested or diverged.
double plan_run_value(const plan_run *run, const cli_run_epoch *epoch);

// plan_run_quantity returns what that is.
const char *plan_run_quantity(const plan_run *run);

// plan_run_axes_make writes the axes of all runs: with all values, or with
// `robust` those of cli_robust_range. Returns false if there is no value.
bool plan_run_axes_make(const plan_runs *r, bool robust, plan_run_axes *out);

// plan_run_mark returns the mark of a run: a letter, or * of a single one.
char plan_run_mark(const plan_runs *r, size_t i);

// plan_run_plot prints the plot as text, 80 columns wide.
void plan_run_plot(const plan_runs *r, FILE *stream);

#endif
