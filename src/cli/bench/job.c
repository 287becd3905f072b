// SPDX-License-Identifier: MIT
// Opens and measures compressors and algorithms.
#include "cli/bench/job.h"

#include <unistd.h>

#include "cli/bench/compare.h"
#include "cli/files/layout.h"
#include "cli/report/progress.h"
#include "data/file.h"
#include "nn/layouts.h"

lac_status cli_bench_job_add_compressor(cli_bench_job *j, const char *spec)
{
    lac_compressor *c = NULL;
    LAC_TRY(lac_compressor_open(&c, spec, LAC_FORM_PLAIN));
    j->entries[j->count].spec = spec;
    j->compressors[j->count++] = c;
    LAC_TRY(lac_compressor_use_kernels(c, j->kernels));
    return lac_compressor_use_threads(c, j->threads);
}

static cli_bench_step_options step_options(
    const cli_bench_job *j, const lac_layout *layout, uint32_t degree)
{
    return (cli_bench_step_options){
        .runs = j->runs,
        .seed = j->seed,
        .kernels = j->kernels,
        .threads = j->threads,
        .layout = layout,
        .degree = degree,
    };
}

lac_status cli_bench_job_add_step(
    cli_bench_job *j, const cli_bench_step *named, const lac_layout *layout,
    uint32_t degree)
{
    const cli_bench_step_options o = step_options(j, layout, degree);
    cli_bench_step step = *named;
    LAC_TRY(cli_bench_step_check(&step, &o));
    j->step_layouts[j->step_count] = layout;
    j->steps[j->step_count++] = step;
    return LAC_OK;
}

static lac_status open_row_layout(cli_bench_job *j, const cli_bench_row *row)
{
    lac_layout **const out = &j->layouts[j->layout_count];
    // A device or a pipe may never end.
    if (row->model == NULL && access(row->layout, F_OK) == 0 &&
        !data_is_file(row->layout)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%.100s: is no regular file, expected one with a layout",
            row->layout);
    }
    LAC_TRY(
        row->model != NULL ? nn_layout_open(out, row->model)
                           : cli_layout_read(row->layout, out));
    j->layout_count++;
    return lac_layout_values(*out) == row->values
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_INVALID, "%s has %zu values, expected %zu",
                     row->layout, lac_layout_values(*out), row->values);
}

lac_status cli_bench_job_add_row(cli_bench_job *j, const cli_bench_row *row)
{
    if (!row->is_algorithm) {
        j->entry_rows[j->count] = row;
        return cli_bench_job_add_compressor(j, row->spec);
    }
    const cli_bench_step step = {
        .spec = row->spec,
        .compressor = row->compressor,
        .model = row->model,
        .layout = row->layout,
    };
    LAC_TRY(open_row_layout(j, row));
    j->step_rows[j->step_count] = row;
    return cli_bench_job_add_step(
        j, &step, j->layouts[j->layout_count - 1], row->degree);
}

static lac_status measure_entry(cli_bench_job *j, size_t i)
{
    cli_bench_result *const result = &j->entries[i].result;
    cli_bench_result again;
    LAC_TRY(cli_bench_measure(&j->bench, j->compressors[i], result));
    if (j->saved == NULL ||
        !cli_bench_entry_is_slower(j->entry_rows[i], result)) {
        return LAC_OK;
    }
    LAC_TRY(cli_bench_measure(&j->bench, j->compressors[i], &again));
    cli_bench_result_improve(result, &again);
    return LAC_OK;
}

static lac_status measure_step(cli_bench_job *j, size_t i)
{
    cli_bench_step *const step = &j->steps[i];
    const cli_bench_step_options o =
        step_options(j, j->step_layouts[i], step->degree);
    LAC_TRY(cli_bench_step_measure(step, &o));
    if (j->saved == NULL || !cli_bench_step_is_slower(j->step_rows[i], step)) {
        return LAC_OK;
    }
    cli_bench_step again = *step;
    LAC_TRY(cli_bench_step_measure(&again, &o));
    cli_bench_step_improve(step, &again);
    return LAC_OK;
}

static lac_status job_measure(cli_bench_job *j, cli_progress *progress)
{
    if (j->count > 0) {
        LAC_TRY(cli_bench_init(&j->bench, j->values, j->runs, j->seed));
    }
    for (size_t i = 0; i < j->count; i++) {
        cli_progress_step(progress, i, j->entries[i].spec);
        LAC_TRY(measure_entry(j, i));
    }
    for (size_t i = 0; i < j->step_count; i++) {
        cli_progress_step(progress, j->count + i, j->steps[i].spec);
        LAC_TRY(measure_step(j, i));
    }
    return LAC_OK;
}

lac_status cli_bench_job_measure(cli_bench_job *j)
{
    cli_progress progress = cli_progress_begin(j->count + j->step_count);
    const lac_status status = job_measure(j, &progress);
    cli_progress_end(&progress);
    return status;
}

void cli_bench_job_close(cli_bench_job *j)
{
    for (size_t i = 0; i < j->count; i++) {
        lac_compressor_close(j->compressors[i]);
    }
    for (size_t i = 0; i < j->layout_count; i++) {
        lac_layout_close(j->layouts[i]);
    }
    cli_bench_fini(&j->bench);
    *j = (cli_bench_job){0};
}
