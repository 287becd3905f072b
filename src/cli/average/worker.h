// SPDX-License-Identifier: MIT
// The workers of `laconic average`: each starts from its own values and runs an
// algorithm for a number of rounds; worker 0 measures the distance to the mean.
#ifndef LACONIC_CLI_AVERAGE_WORKER_H
#define LACONIC_CLI_AVERAGE_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <laconic/laconic.h>

#include "cli/report/plot.h"

typedef struct cli_average_worker cli_average_worker;

enum { CLI_AVERAGE_CURVE = CLI_PLOT_COLUMNS };

// The result, which worker 0 fills. Sums are over all workers.
typedef struct cli_average_result {
    bool here; // whether worker 0 is in this process
    uint64_t rounds;
    bool diverged;        // the run was stopped early
    double initial_error; // errors are NaN if they were not measured
    double final_error;
    double mean_drift;
    lac_traffic traffic;
    double seconds;
    double round_seconds; // of a round, mean over rounds, median over workers
    double gamma;         // NaN where there is none
    lac_family family;
    char warning[256]; // of the algorithm, or empty
    // With a trace: errors of rounds that are evenly spaced, the last those of
    // the last round; others are 0.
    double curve[CLI_AVERAGE_CURVE];
} cli_average_result;

// One run. The caller fills all members but the result.
typedef struct cli_average {
    lac_algorithm_options algorithm; // all but the transport
    const char *topology;            // as the user wrote it
    uint64_t rounds;
    double step_time;   // seconds of computation before each round
    bool time_only;     // measure no errors, and let the rounds run freely
    const float *input; // of all workers, or NULL to draw them
    size_t low_rank;    // of the matrices to draw; 0 for normal deviates
    uint32_t world;
    const char *progress;         // what the progress counts: "rounds"
    FILE *trace;                  // gets a line per round, or NULL
    float *values_out;            // final values of all workers, or NULL
    cli_average_worker **workers; // `world` pointers, NULL at first
    cli_average_result result;
} cli_average;

// cli_average_work runs the worker of `transport`.
// Fails like lac_algorithm_open and like the rounds of the algorithm.
lac_status cli_average_work(cli_average *run, lac_transport *transport);

// cli_average_release frees a worker after it has left its transport.
void cli_average_release(cli_average *run, uint32_t rank);

#endif
