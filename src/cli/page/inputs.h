// SPDX-License-Identifier: MIT
// What a report is about: runs of `laconic train`, traces of `laconic average`
// and results of `laconic plan`.
#ifndef LACONIC_CLI_PAGE_INPUTS_H
#define LACONIC_CLI_PAGE_INPUTS_H

#include "cli/compare/runs.h"

// A trace. Numbers that are not finite stay so.
typedef struct page_round {
    double round, error, drift, payload;
} page_round;

typedef struct page_trace {
    const char *path; // borrowed
    page_round *rounds;
    size_t count;
} page_trace;

// A result of `plan --json`, or of `plan --run --json`.
typedef struct page_plan {
    const char *path; // or the folder of a run; borrowed
    cJSON *object;
    bool run;
} page_plan;

typedef struct page_inputs {
    compare_set runs;
    page_trace *traces;
    size_t trace_count;
    page_plan *plans;
    size_t plan_count;
} page_inputs;

// page_inputs_open reads folders and files, which must outlive the result,
// after the folder of the baseline if that is not "". The file `out` is
// ignored. Of several paths, those that are none of these are skipped with a
// message. Fails with LAC_ERR_INVALID, LAC_ERR_CORRUPT or LAC_ERR_NOMEM; the
// message names the file. Close it in either case.
lac_status page_inputs_open(
    page_inputs *in, char *const *paths, size_t count, const char *baseline,
    const char *out);
void page_inputs_close(page_inputs *in);

// Curves have a style each: those of runs, of traces and of runs on another
// network, in this order. page_plan_style returns that of a plan.
static inline size_t page_row_style(const compare_runs *c, size_t row)
{
    return c->earlier_rows + row;
}
size_t page_trace_style(const page_inputs *in, size_t trace);
size_t page_plan_style(const page_inputs *in, size_t plan);
size_t page_style_count(const page_inputs *in);

#endif
