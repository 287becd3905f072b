// SPDX-License-Identifier: MIT
// How long a whole step of an algorithm takes on the tensors of a model,
// measured against memcpy. Of a gradient algorithm there is one worker, so that
// nothing waits for a network; all that a worker computes is computed. Of a
// model algorithm there are two, threads that are each other's neighbour, and
// the time that they wait is left out.
#ifndef LACONIC_CLI_BENCH_STEP_H
#define LACONIC_CLI_BENCH_STEP_H

#include <laconic/laconic.h>

typedef struct cli_bench_step {
    const char *spec;
    const char *layout; // the name of the model
    size_t values;
    uint32_t workers;
    double payload_bytes; // that a worker contributes, or sends its neighbour
    double memcpy;        // seconds, of all values; medians
    double seconds;
} cli_bench_step;

typedef struct cli_bench_step_options {
    size_t runs;
    uint64_t seed;
    const char *kernels;
    const char *compressor; // NULL for algorithms that take none
} cli_bench_step_options;

// cli_bench_is_algorithm tells whether a spec begins with the name of one.
bool cli_bench_is_algorithm(const char *spec);

// cli_bench_step_check fills in what is known without measuring. Fails as
// opening the algorithm does.
lac_status cli_bench_step_check(
    cli_bench_step *step, const cli_bench_step_options *options);

// cli_bench_step_measure fails as the algorithm does or with LAC_ERR_NOMEM.
lac_status cli_bench_step_measure(
    cli_bench_step *step, const cli_bench_step_options *options);

#endif
