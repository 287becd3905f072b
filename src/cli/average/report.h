// SPDX-License-Identifier: MIT
// The output of `laconic average` after worker 0 has finished a run, or all
// runs of a sweep.
#ifndef LACONIC_CLI_AVERAGE_REPORT_H
#define LACONIC_CLI_AVERAGE_REPORT_H

#include <stdio.h>

#include <cjson/cJSON.h>

#include "cli/average/sweep.h"
#include "cli/average/worker.h"
#include "cli/report/table.h"

// cli_average_json returns the object of --json.
cJSON *cli_average_json(const cli_average *a);

// cli_average_table prints the table for people, with a trace followed by a
// plot of the error over rounds.
void cli_average_table(const cli_average *a, FILE *stream);

// cli_average_describe adds rows about algorithm, compressor and workers to a
// table of names, values and notes.
void cli_average_describe(const cli_average *a, cli_table *t);

// cli_average_fewer returns how many times fewer bytes were sent than without
// compression, NaN if none were sent.
double cli_average_fewer(const cli_average *a);

// cli_sweep_json and cli_sweep_table do the same for a sweep; runs[i] is that
// with value i. The table is followed by a plot of the errors.
cJSON *cli_sweep_json(const cli_sweep *sweep, const cli_average *runs);
void cli_sweep_table(
    const cli_sweep *sweep, const cli_average *runs, FILE *stream);

#endif
