// SPDX-License-Identifier: MIT
// The clock of a run: the time of a step on the network, times the steps.
#include "cli/plan/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/plan/run_files.h"

// Uses the recorded times of a run.
static lac_status take_recorded(plan_run *run, const plan_run_usage *usage)
{
    const double steps = (double)run->epochs[run->count - 1].step;
    if (!(usage->compute > 0) || !(usage->compress >= 0)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: its metrics have no time of computation, expected "
            "compute_seconds above 0; name it with --step-time",
            run->options->folder);
    }
    run->compute = usage->compute / steps;
    run->compress = usage->compress / steps;
    (void)snprintf(run->source, sizeof(run->source), "recorded by the run");
    return LAC_OK;
}

// Rounds before start-iteration send other messages than those after it, which
// are the ones that lac_algorithm_exchanges lists.
static lac_status check_first_rounds(const plan_run *run)
{
    static const char *const names[] = {
        "start-iteration=", "start_powerSGD_iter="};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *const found = strstr(run->algorithm, names[i]);
        if (found != NULL && strtoul(found + strlen(names[i]), NULL, 10) > 0) {
            return lac_fail(
                LAC_ERR_INVALID,
                "%s: its first steps were not compressed (%s), expected steps "
                "that all send the same",
                run->options->folder, run->algorithm);
        }
    }
    return LAC_OK;
}

// Computes the time of a step from the exchanges of its algorithm.
static lac_status time_step(plan_run *run, const plan_task *task)
{
    const plan_run_options *const o = run->options;
    plan_candidate c = {.choice = {run->algorithm, run->compressor, false}};
    plan_speed *speed = NULL;
    LAC_TRY(plan_speed_open(&speed, o->measure && o->compute > 0));
    lac_status status = plan_candidate_open(task, speed, &c);
    if (status == LAC_OK) {
        const plan_wait wait =
            plan_pattern_wait(&c.pattern, &o->network, run->compute);
        if (o->compute > 0) {
            run->compress = c.compress;
            (void)snprintf(
                run->source, sizeof(run->source), "%s",
                plan_speed_source(speed));
        }
        run->network = wait.network;
        run->hidden = run->overlap ? wait.network - wait.exposed : 0;
        run->step = run->compute + run->compress + wait.exposed;
    }
    plan_pattern_close(&c.pattern);
    plan_speed_close(speed);
    return status;
}

static lac_status time_run(plan_run *run, const lac_layout *layout)
{
    lac_topology *topology = NULL;
    LAC_TRY(
        lac_topology_open(&topology, run->topology, run->workers, run->seed));
    const plan_task task = {
        .layout = layout,
        .topology = topology,
        .transport = run->options->transport,
        .workers = run->workers,
        .seed = run->seed,
        .compute = run->compute,
        .overlap = run->overlap,
    };
    const lac_status status = time_step(run, &task);
    lac_topology_close(topology);
    for (size_t i = 0; i < run->count; i++) {
        run->epochs[i].seconds = (double)run->epochs[i].step * run->step;
    }
    return status;
}

lac_status plan_run_open(plan_run *run, const plan_run_options *options)
{
    plan_run_usage usage;
    lac_layout *layout = NULL;
    *run = (plan_run){.options = options, .compute = options->compute};
    LAC_TRY(plan_run_read_manifest(run));
    LAC_TRY(check_first_rounds(run));
    LAC_TRY(plan_run_read_metrics(run, &usage));
    if (options->compute == 0) {
        LAC_TRY(take_recorded(run, &usage));
    }
    LAC_TRY(plan_run_layout(run, &layout));
    const lac_status status = time_run(run, layout);
    lac_layout_close(layout);
    return status;
}

void plan_run_close(plan_run *run)
{
    free(run->epochs);
    cJSON_Delete(run->manifest);
    *run = (plan_run){0};
}
