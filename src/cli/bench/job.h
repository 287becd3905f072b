// SPDX-License-Identifier: MIT
// What one call of `laconic bench` measures: compressors and algorithms, each
// compared with a row of a saved run if there is one. All are opened before the
// first is measured, so that a wrong spec is reported at once.
#ifndef LACONIC_CLI_BENCH_JOB_H
#define LACONIC_CLI_BENCH_JOB_H

#include "cli/bench/report.h"
#include "cli/bench/saved.h"

typedef struct cli_bench_job {
    size_t values; // that a compressor gets
    size_t runs;
    uint64_t seed;
    const char *kernels; // as lac_compressor_use_kernels takes them
    uint32_t threads;
    const cli_bench_saved *saved; // to compare with, or NULL

    cli_bench_entry entries[CLI_BENCH_MAX];
    lac_compressor *compressors[CLI_BENCH_MAX];     // of the entries
    const cli_bench_row *entry_rows[CLI_BENCH_MAX]; // of `saved`
    size_t count;

    cli_bench_step steps[CLI_BENCH_MAX];
    const lac_layout *step_layouts[CLI_BENCH_MAX];
    const cli_bench_row *step_rows[CLI_BENCH_MAX];
    size_t step_count;

    lac_layout *layouts[CLI_BENCH_MAX]; // of the rows of `saved`
    size_t layout_count;
    cli_bench bench;
} cli_bench_job;

// cli_bench_job_add_compressor adds a compressor; `spec` must outlive the job.
// Fails like lac_compressor_open, lac_compressor_use_kernels and
// lac_compressor_use_threads.
lac_status cli_bench_job_add_compressor(cli_bench_job *j, const char *spec);

// cli_bench_job_add_step adds an algorithm: a step of which the texts are set.
// They and the layout must outlive the job. `degree` is that of
// cli_bench_step_options.
// Fails like cli_bench_step_check.
lac_status cli_bench_job_add_step(
    cli_bench_job *j, const cli_bench_step *named, const lac_layout *layout,
    uint32_t degree);

// cli_bench_job_add_row adds what a row of `saved` has.
// Fails like the functions above, or with LAC_ERR_INVALID if the layout of the
// row has changed.
lac_status cli_bench_job_add_row(cli_bench_job *j, const cli_bench_row *row);

// cli_bench_job_measure measures everything, and once more what is too slow
// compared with `saved`, of which the faster result counts: on a machine that
// does other work too a single result may be wrong, and two seldom are.
// Fails like cli_bench_measure and cli_bench_step_measure.
lac_status cli_bench_job_measure(cli_bench_job *j);

// cli_bench_job_close releases what was added. A zeroed struct is allowed.
void cli_bench_job_close(cli_bench_job *j);

#endif
