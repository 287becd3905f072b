// SPDX-License-Identifier: MIT
// Finished runs on one network's clock, and how long each takes to reach a
// *goal*: an accuracy in per cent, or the perplexity of a text.
#ifndef LACONIC_CLI_PLAN_RUNS_H
#define LACONIC_CLI_PLAN_RUNS_H

#include "cli/options/option.h"
#include "cli/plan/run.h"

typedef struct plan_runs {
    plan_run_options *options; // of each run
    plan_run *runs;
    size_t count;
    double goal; // NaN if the user has none
} plan_runs;

// plan_runs_open reads the runs of some folders, with `common` apart from the
// folder, and the text of a goal ("90%", or "120" for a text; "": none).
// A folder that is named again is ignored.
// Fails like plan_run_open, or with LAC_ERR_INVALID if the data of the runs
// differ or the goal is none of theirs. Close it in either case.
lac_status plan_runs_open(
    plan_runs *r, const cli_texts *folders, const plan_run_options *common,
    const char *goal);
void plan_runs_close(plan_runs *r);

// plan_runs_is_text returns whether the runs have perplexities.
bool plan_runs_is_text(const plan_runs *r);

// plan_run_seconds_to returns the time until the first test that reaches a
// goal; NaN if none does.
double plan_run_seconds_to(const plan_run *run, double goal);

// plan_runs_levels writes the goals for a table, round numbers that a run
// reaches after its first test, the easiest first; or the goal of the user.
// Returns how many there are.
enum { PLAN_LEVELS_MAX = 5 };
size_t plan_runs_levels(const plan_runs *r, double out[PLAN_LEVELS_MAX]);

// plan_runs_name returns the folder of a run without the folder that all runs
// are in.
const char *plan_runs_name(const plan_runs *r, size_t i);

#endif
