// SPDX-License-Identifier: MIT
// The time of a whole step of an algorithm on the tensors of a model, measured
// against memcpy. A gradient algorithm runs with one worker: it does all the
// computation of a worker and waits for no network. A model algorithm runs with
// two workers, threads that are neighbours; the time that they wait is
// subtracted.
#ifndef LACONIC_CLI_BENCH_STEP_H
#define LACONIC_CLI_BENCH_STEP_H

#include <laconic/laconic.h>

typedef struct cli_bench_step {
    const char *spec;
    const char *compressor; // NULL for algorithms that take none
    const char *layout;     // the name of the model
    size_t values;
    uint32_t workers;
    double payload_bytes; // that a worker contributes, or sends its neighbour
    double memcpy;        // of all values; median, in seconds
    double seconds;       // of a step; median
} cli_bench_step;

typedef struct cli_bench_step_options {
    size_t runs;
    uint64_t seed;
    const char *kernels;
} cli_bench_step_options;

// cli_bench_is_algorithm returns whether a spec begins with the name of an
// algorithm.
bool cli_bench_is_algorithm(const char *spec);

// cli_bench_step_check validates spec and compressor and fills in the members
// that need no measurement.
// Fails like lac_algorithm_cost.
lac_status cli_bench_step_check(
    cli_bench_step *step, const cli_bench_step_options *options);

// cli_bench_step_measure measures a step that was checked.
// Fails like the algorithm or with LAC_ERR_NOMEM.
lac_status cli_bench_step_measure(
    cli_bench_step *step, const cli_bench_step_options *options);

#endif
