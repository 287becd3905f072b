// SPDX-License-Identifier: MIT
// The output of `laconic bench`.
#ifndef LACONIC_CLI_BENCH_REPORT_H
#define LACONIC_CLI_BENCH_REPORT_H

#include <cjson/cJSON.h>

#include "cli/bench/compressor.h"
#include "cli/bench/step.h"

enum { CLI_BENCH_MAX = 64 }; // entries, and steps

typedef struct cli_bench_entry {
    const char *spec; // of a compressor
    cli_bench_result result;
} cli_bench_entry;

typedef struct cli_bench_report {
    size_t values; // that the compressors had; steps have their own number
    size_t runs;
    const char *kernels;
    bool prefetch; // whether these kernels prefetch
    uint32_t threads;
    const cli_bench_entry *entries;
    size_t count;
    const cli_bench_step *steps;
    size_t step_count;
} cli_bench_report;

// cli_bench_json returns the object of --json.
cJSON *cli_bench_json(const cli_bench_report *r);

// cli_bench_table prints the tables for people on stdout.
void cli_bench_table(const cli_bench_report *r);

#endif
