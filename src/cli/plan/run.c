// SPDX-License-Identifier: MIT
// The clock of a run: the time of a step on the network, times the steps.
#include "cli/plan/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/plan/run_layout.h"
#include "cli/topology/network.h"

// Uses the recorded times of a run.
static lac_status take_recorded(plan_run *run)
{
    const cli_run *const t = &run->trained;
    const double steps = (double)t->epochs[t->count - 1].step;
    const double compute = cli_run_last(t, CLI_METRIC_COMPUTE_SECONDS);
    const double compress = cli_run_last(t, CLI_METRIC_COMPRESS_SECONDS);
    if (!(compute > 0) || !(compress >= 0)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: its metrics have no time of computation, expected "
            "compute_seconds above 0; name it with --step-time",
            run->options->folder);
    }
    run->compute = compute / steps;
    run->compress = compress / steps;
    (void)snprintf(run->source, sizeof(run->source), "recorded by the run");
    return LAC_OK;
}

// Rounds before start-iteration send other messages than those after it, which
// are the ones that lac_algorithm_exchanges lists.
static lac_status check_first_rounds(const cli_run *run)
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
                run->folder, run->algorithm);
        }
    }
    return LAC_OK;
}

// The local steps of a run. Those that change have no time of a step.
static lac_status run_local_steps(const cli_run *run, double *out)
{
    const cJSON *const given =
        cJSON_GetObjectItemCaseSensitive(run->settings, "local-steps");
    const char *const text = cJSON_IsString(given) ? given->valuestring : "1";
    if (strchr(text, ':') != NULL) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: its local steps change (%s), expected steps that all send "
            "the same",
            run->folder, text);
    }
    *out = strtod(text, NULL);
    return LAC_OK;
}

// Computes the time of a step from the exchanges of its algorithm.
static lac_status time_step(plan_run *run, const plan_task *task)
{
    const plan_run_options *const o = run->options;
    plan_candidate c = {
        .choice = {run->trained.algorithm, run->trained.compressor, false}};
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
        run->network = wait.network / c.every;
        run->hidden =
            run->trained.overlap ? (wait.network - wait.exposed) / c.every : 0;
        run->step = run->compute + run->compress + wait.exposed / c.every;
    }
    plan_pattern_close(&c.pattern);
    plan_speed_close(speed);
    return status;
}

static lac_status time_run(plan_run *run, const lac_layout *layout)
{
    lac_topology *topology = NULL;
    const cli_run *const t = &run->trained;
    double local_steps = 1;
    LAC_TRY(run_local_steps(t, &local_steps));
    LAC_TRY(cli_network_recorded(t->topology, t->workers, t->seed, &topology));
    const plan_task task = {
        .layout = layout,
        .topology = topology,
        .transport = run->options->transport,
        .workers = t->workers,
        .seed = t->seed,
        .compute = run->compute,
        .overlap = t->overlap,
        .local_steps = local_steps,
    };
    const lac_status status = time_step(run, &task);
    lac_topology_close(topology);
    return status;
}

lac_status plan_run_open(plan_run *run, const plan_run_options *options)
{
    lac_layout *layout = NULL;
    *run = (plan_run){.options = options, .compute = options->compute};
    LAC_TRY(cli_run_open(&run->trained, options->folder));
    LAC_TRY(check_first_rounds(&run->trained));
    if (run->trained.count == 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s/metrics.jsonl: has no epoch yet, expected a line for each",
            options->folder);
    }
    if (options->compute == 0) {
        LAC_TRY(take_recorded(run));
    }
    LAC_TRY(plan_run_layout(&run->trained, &layout));
    const lac_status status = time_run(run, layout);
    lac_layout_close(layout);
    return status;
}

void plan_run_close(plan_run *run)
{
    cli_run_close(&run->trained);
    *run = (plan_run){0};
}
