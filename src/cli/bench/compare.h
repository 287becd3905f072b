// SPDX-License-Identifier: MIT
// Compares a run of `laconic bench` with a saved one, figure by figure. The
// figures are ratios to memcpy, which depend less than seconds on what else the
// machine does.
#ifndef LACONIC_CLI_BENCH_COMPARE_H
#define LACONIC_CLI_BENCH_COMPARE_H

#include <cjson/cJSON.h>

#include "cli/bench/report.h"
#include "cli/bench/saved.h"

// The part by which a figure may exceed the saved one.
#define CLI_BENCH_LIMIT 0.1

typedef struct cli_bench_comparison {
    const cli_bench_saved *saved;
    const cli_bench_report *report;
    const cli_bench_row *const *entries; // the saved row of each entry
    const cli_bench_row *const *steps;   // and of each step
} cli_bench_comparison;

// cli_bench_entry_is_slower returns whether a figure of a compressor exceeds
// the saved one by more than the limit.
bool cli_bench_entry_is_slower(
    const cli_bench_row *row, const cli_bench_result *result);

// cli_bench_step_is_slower does so for an algorithm.
bool cli_bench_step_is_slower(
    const cli_bench_row *row, const cli_bench_step *step);

// cli_bench_result_improve replaces the figures of `best` that are faster in
// `again`.
void cli_bench_result_improve(
    cli_bench_result *best, const cli_bench_result *again);

// cli_bench_step_improve replaces the times of `best` if `again` is faster.
void cli_bench_step_improve(cli_bench_step *best, const cli_bench_step *again);

// cli_bench_comparison_json returns an object with all figures.
cJSON *cli_bench_comparison_json(const cli_bench_comparison *c);

// cli_bench_comparison_print prints a table for people on stdout.
void cli_bench_comparison_print(const cli_bench_comparison *c);

// cli_bench_comparison_check fails with LAC_ERR_INVALID if a figure exceeds the
// saved one by more than the limit.
lac_status cli_bench_comparison_check(const cli_bench_comparison *c);

#endif
