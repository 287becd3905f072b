// SPDX-License-Identifier: MIT
// Runs that are compared. Those that differ only by their seed are one row; the
// first row is the baseline.
#ifndef LACONIC_CLI_COMPARE_RUNS_H
#define LACONIC_CLI_COMPARE_RUNS_H

#include "cli/files/run.h"

// So many runs from number `first`.
typedef struct compare_row {
    size_t first, count;
} compare_row;

typedef struct compare_runs {
    cli_run *runs; // in the order of their rows
    size_t count;
    compare_row *rows;
    size_t row_count;
    const char **differing; // names of the settings that differ, the seed
                            // aside; the last is followed by NULL
    size_t differing_count;
} compare_runs;

// compare_runs_open begins with no run. compare_runs_add reads the run of a
// folder, or the runs in its folders seed-N, or those of the folders in it. A
// folder that was added already is ignored. compare_runs_arrange makes the
// rows, after the last run. Fails like cli_run_open. Close it in either case.
void compare_runs_open(compare_runs *c);
lac_status compare_runs_add(compare_runs *c, const char *folder);
lac_status compare_runs_arrange(compare_runs *c);
void compare_runs_close(compare_runs *c);

// The mean over the runs of a row at their last epoch, and the standard
// deviation, which is NaN for a single run.
typedef struct compare_value {
    double mean, spread;
} compare_value;

compare_value compare_row_value(
    const compare_runs *c, size_t row, cli_metric metric);

// compare_times_fewer returns how many times fewer bytes a row sent than the
// baseline; NaN if one of them sent nothing, or if their models differ in size.
// compare_run_times_fewer does so for a single run.
double compare_times_fewer(const compare_runs *c, size_t row);
double compare_run_times_fewer(const compare_runs *c, const cli_run *run);

// compare_row_name writes the folder of a row without the folder that all runs
// are in: "choco/seed-* (3)", or the algorithm of several runs whose names have
// nothing in common.
enum { COMPARE_NAME_SIZE = DATA_PATH_SIZE + 32 };
const char *compare_row_name(
    const compare_runs *c, size_t row, char text[COMPARE_NAME_SIZE]);

#endif
