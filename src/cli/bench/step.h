// SPDX-License-Identifier: MIT
// The time of a whole step of an algorithm on the tensors of a model, measured
// against memcpy. It is the computation of one worker that gets the messages of
// `degree` others. All of them are threads and compute one at a time; the time
// that the measured worker waits is subtracted. Workers that mix models form a
// star around it, so that the others have one neighbour each.
#ifndef LACONIC_CLI_BENCH_STEP_H
#define LACONIC_CLI_BENCH_STEP_H

#include <laconic/laconic.h>

// The most other workers. Each is a thread.
enum { CLI_BENCH_DEGREE_MAX = 255 };

typedef struct cli_bench_step {
    const char *spec;
    const char *compressor; // NULL for algorithms that take none
    const char *model;      // whose tensors it has, NULL: those of a file
    const char *layout;     // the model or the file
    size_t values;
    lac_family family;
    uint32_t degree;      // neighbours, or other workers
    double payload_bytes; // that a worker contributes, or sends a neighbour
    double memcpy;        // of all values; median, in seconds
    double seconds;       // of a step; median
} cli_bench_step;

typedef struct cli_bench_step_options {
    size_t runs;
    uint64_t seed;
    const char *kernels;
    uint32_t threads; // of each worker
    const lac_layout *layout;
    uint32_t degree; // 0: one neighbour, but no other worker for gradients
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
// Fails like the algorithm or with LAC_ERR_NOMEM, also if the workers need more
// memory than the machine has.
lac_status cli_bench_step_measure(
    cli_bench_step *step, const cli_bench_step_options *options);

#endif
