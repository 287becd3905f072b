// SPDX-License-Identifier: MIT
// Runs that are compared: a set of them, in groups that train the same model on
// the same data. In a group, runs that differ only by their seed are one row;
// the first row is the baseline.
#ifndef LACONIC_CLI_COMPARE_RUNS_H
#define LACONIC_CLI_COMPARE_RUNS_H

#include "cli/files/run.h"

// So many runs from number `first`.
typedef struct compare_row {
    size_t first, count;
} compare_row;

// A group.
typedef struct compare_runs {
    const cli_run *runs; // in the order of their rows
    size_t count;
    compare_row *rows;
    size_t row_count;
    double uncompressed;    // bytes of a run without compression, instead of
                            // those of the baseline; 0: not known
    size_t earlier_rows;    // of the groups before
    size_t group;           // its number, from 0
    const char **differing; // names of the settings that differ, the seed
                            // aside; the last is followed by NULL
    size_t differing_count;
} compare_runs;

typedef struct compare_set {
    cli_run *runs; // arranged: in the order of their groups
    size_t count;
    size_t named; // of them, first: those of the baseline that was named
    compare_runs *groups;
    size_t group_count;
} compare_set;

// compare_set_open begins with no run. compare_set_add reads the run of a
// folder, or the runs in its folders seed-N, or those of the folders in it. A
// folder that was added already is ignored. compare_set_name_baseline does so
// before all others with the baseline that a user names, if it is not "".
// compare_set_arrange makes the groups, after the last run. The baseline of a
// group is the one that was named if the group has it, else its first run
// without compression, else its first run. Fails like cli_run_open. Close it in
// either case.
void compare_set_open(compare_set *s);
lac_status compare_set_name_baseline(compare_set *s, const char *folder);
lac_status compare_set_add(compare_set *s, const char *folder);
lac_status compare_set_arrange(compare_set *s);
void compare_set_close(compare_set *s);

// compare_is_no_run returns whether a path exists and holds no run, as some of
// those that runs/* finds. compare_skip says on stderr that it is skipped.
bool compare_is_no_run(const char *path);
void compare_skip(const char *path);

// The mean over the runs of a row at their end (cli_run_end), and the standard
// deviation, which is NaN for a single run.
typedef struct compare_value {
    double mean, spread;
} compare_value;

compare_value compare_row_value(
    const compare_runs *c, size_t row, cli_metric metric);

// compare_row_is_sampled returns whether the models of a row were not tested on
// the whole test set. compare_error returns the standard error of an accuracy
// that is a mean over so many examples.
bool compare_row_is_sampled(const compare_runs *c, size_t row);
double compare_error(double accuracy, double examples);

// compare_times_fewer returns how many times fewer bytes a row sent than the
// baseline, or than without compression if that is known; NaN if one of them
// sent nothing, or if their models differ in size. compare_run_times_fewer does
// so for a single run.
double compare_times_fewer(const compare_runs *c, size_t row);
double compare_run_times_fewer(const compare_runs *c, const cli_run *run);

// compare_row_name writes the folder of a row without the folder that all runs
// of the group are in: "choco/seed-* (3)", or the algorithm of several runs
// whose names have nothing in common.
enum { COMPARE_NAME_SIZE = DATA_PATH_SIZE + 32 };
const char *compare_row_name(
    const compare_runs *c, size_t row, char text[COMPARE_NAME_SIZE]);

#endif
