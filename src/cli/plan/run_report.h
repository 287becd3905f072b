// SPDX-License-Identifier: MIT
// The output of `laconic plan --run`.
#ifndef LACONIC_CLI_PLAN_RUN_REPORT_H
#define LACONIC_CLI_PLAN_RUN_REPORT_H

#include <stdio.h>

#include <cjson/cJSON.h>

#include "cli/plan/runs.h"

// plan_run_json returns the object of --json.
cJSON *plan_run_json(const plan_runs *r);

// plan_run_print prints a table of the epochs of a run or, of several runs, of
// the time until each reaches an accuracy or a perplexity; then a plot of these
// over time, at most 80 columns wide.
void plan_run_print(const plan_runs *r, FILE *stream);

// plan_run_svg writes that plot as a picture to `path`.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM, leaving nothing behind.
lac_status plan_run_svg(const plan_runs *r, const char *path);

#endif
