// SPDX-License-Identifier: MIT
// What the workers of `laconic average` do: start from values that differ, run
// an algorithm for a number of rounds, and let worker 0 measure how far they
// have come.
#ifndef LACONIC_CLI_AVERAGE_WORKER_H
#define LACONIC_CLI_AVERAGE_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <laconic/laconic.h>

#include "cli/launch/launch.h"

typedef struct cli_average_worker cli_average_worker;

// What worker 0 finds out. Sums are over all workers.
typedef struct cli_average_result {
    bool here; // whether worker 0 is in this process
    uint64_t rounds;
    bool diverged; // and so ended early
    double initial_error;
    double final_error;
    double mean_drift;
    lac_traffic traffic;
    double seconds;
    double gamma; // NaN where there is none
    lac_family family;
    char warning[256]; // of the algorithm, or empty
} cli_average_result;

// One run. The first part is given, the rest belongs to the run.
typedef struct cli_average {
    lac_algorithm_options algorithm; // all but the transport
    const char *topology;            // as the user named it
    uint64_t rounds;
    const float *input; // of all workers, or NULL: normal deviates
    uint32_t world;
    FILE *trace;                  // a line a round, or NULL
    float *values_out;            // final values of all workers, or NULL
    cli_average_worker **workers; // `world` times NULL
    cli_average_result result;
} cli_average;

// The work of a crew and its release; `prepare` is left to the command. Errors
// are those of lac_algorithm_open and of the rounds.
lac_status cli_average_work(void *average, lac_transport *transport);
void cli_average_release(void *average, uint32_t rank);

#endif
