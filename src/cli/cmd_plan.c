// SPDX-License-Identifier: MIT
// laconic plan: the predicted step time of every algorithm on a network, and
// whether compression pays there.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/files/layout.h"
#include "cli/launch/launch.h"
#include "cli/launch/place.h"
#include "cli/options/catalog.h"
#include "cli/options/command.h"
#include "cli/options/spec.h"
#include "cli/options/units.h"
#include "cli/plan/probe.h"
#include "cli/plan/report.h"
#include "cli/plan/run_report.h"
#include "cli/plan/text.h"
#include "cli/report/table.h"
#include "cli/topology/network.h"
#include "data/output.h"

typedef struct settings {
    const char *model;
    const char *layout;
    cli_texts runs;
    const char *goal;
    const char *step_time;
    const char *bandwidth;
    const char *latency;
    uint32_t network;
    const char *topology;
    bool overlap;
    bool gradients;
    uint64_t local_steps;
    const char *measured_step;
    bool measure;
    bool probe;
    bool map;
    const char *svg;
    cli_launch_options launch;
    uint64_t seed;
    bool json;
} settings;

static const cli_option options[] = {
    CLI_OPTIONS_LAYOUT(settings),
    {.name = "run",
     .type = CLI_OPTION_TEXTS,
     .offset = offsetof(settings, runs),
     .value = "DIR",
     .default_value = "",
     .help = "folder of a run of `laconic train`; again for another"},
    {.name = "goal",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, goal),
     .value = "N",
     .default_value = "",
     .help = "accuracy of --run, such as 90%, or a perplexity"},
    {.name = "step-time",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, step_time),
     .value = "TIME",
     .default_value = "",
     .help = "of a step without communication, such as 229ms"},
    {.name = "bandwidth",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, bandwidth),
     .value = "RATE",
     .default_value = "",
     .help = "of a worker's link, such as 1Gbit or 12.5MB/s"},
    {.name = "latency",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, latency),
     .value = "TIME",
     .default_value = "",
     .help = "one way, half of a ping, such as 0.1ms"},
    {.name = "network",
     .type = CLI_OPTION_CHOICE,
     .offset = offsetof(settings, network),
     .value = "KIND",
     .default_value = "auto",
     .choices = "auto|star|pairs|shared",
     .help = "what messages share"},
    CLI_OPTION_TOPOLOGY(settings),
    {.name = "overlap",
     .type = CLI_OPTION_FLAG,
     .offset = offsetof(settings, overlap),
     .help = "communicate during the computation"},
    {.name = "gradients",
     .type = CLI_OPTION_FLAG,
     .offset = offsetof(settings, gradients),
     .help = "only algorithms that average gradients, no gossip"},
    CLI_OPTION_LOCAL_STEPS(settings),
    {.name = "measured-step",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, measured_step),
     .value = "TIME",
     .default_value = "",
     .help = "of a whole step with all-reduce; gives the bandwidth"},
    {.name = "measure",
     .type = CLI_OPTION_FLAG,
     .offset = offsetof(settings, measure),
     .help = "measure the compression on this machine"},
    {.name = "probe",
     .type = CLI_OPTION_FLAG,
     .offset = offsetof(settings, probe),
     .help = "measure the network between the workers of this job"},
    {.name = "map",
     .type = CLI_OPTION_FLAG,
     .offset = offsetof(settings, map),
     .help = "print the fastest by bandwidth and latency"},
    {.name = "svg",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, svg),
     .value = "FILE",
     .default_value = "",
     .help = "write that map, or the plot of --run, as a picture"},
    CLI_OPTIONS_LAUNCH(settings),
    CLI_OPTION_SEED(settings),
    CLI_OPTION_JSON(settings),
    {0},
};

// The kinds of --network; auto is a star unless a probe finds another.
static const plan_network_kind kinds[] = {
    PLAN_STAR, PLAN_STAR, PLAN_PAIRS, PLAN_SHARED};

// One run of the command. Everything is NULL or owned by it.
typedef struct job {
    const settings *s;
    double measured; // seconds of a whole step; 0 if not given
    plan_network network;
    char network_source[PLAN_NAME_SIZE];
    bool here;           // worker 0, which reports, is in this process
    plan_probe **probes; // by worker
    plan_task task;
    lac_layout *layout;
    lac_topology *topology;
    plan_speed *speed;
    plan plan;
    plan_map map;
} job;

// What a probe may take, in seconds.
#define PROBE_SECONDS 5.0

static int misused_plan(const char *message)
{
    (void)!lac_fail(LAC_ERR_INVALID, "plan: %s", message);
    return cli_misused("plan");
}

static bool has_runs(const settings *s)
{
    return s->runs.count > 0;
}

static int read_times(job *j)
{
    const settings *const s = j->s;
    if (*s->step_time == '\0' && has_runs(s)) {
        return CLI_GOOD; // as the run recorded
    }
    if (*s->step_time == '\0') {
        return misused_plan(
            "--step-time TIME is missing: the time of a step without "
            "communication, such as 229ms");
    }
    if (units_seconds(s->step_time, "step-time", &j->task.compute) != LAC_OK ||
        (*s->measured_step != '\0' &&
         units_seconds(s->measured_step, "measured-step", &j->measured) !=
             LAC_OK)) {
        return cli_misused("plan");
    }
    return CLI_GOOD;
}

static int read_network(job *j)
{
    const settings *const s = j->s;
    j->network.kind = kinds[s->network];
    if (*s->bandwidth == '\0' && *s->measured_step == '\0') {
        return misused_plan(
            "--bandwidth RATE is missing, such as 1Gbit; --measured-step TIME "
            "can replace it");
    }
    if (*s->latency == '\0') {
        return misused_plan(
            "--latency TIME is missing: one way, half of a ping, such as "
            "0.1ms");
    }
    if ((*s->bandwidth != '\0' &&
         units_bandwidth(s->bandwidth, "bandwidth", &j->network.bandwidth) !=
             LAC_OK) ||
        units_seconds(s->latency, "latency", &j->network.latency) != LAC_OK) {
        return cli_misused("plan");
    }
    return CLI_GOOD;
}

static int name_transport(job *j, const char *spec)
{
    size_t count;
    const lac_plugin *const *const transports = lac_transports(&count);
    for (size_t i = 0; i < count; i++) {
        if (cli_spec_names(spec, transports[i]->name)) {
            j->task.transport = transports[i]->name;
            return CLI_GOOD;
        }
    }
    (void)!lac_fail(
        LAC_ERR_NOTFOUND,
        "no transport is named \"%.*s\"; `laconic list` shows those there are",
        (int)strcspn(spec, ":"), spec);
    return cli_bad_spec("plan", "transports", spec);
}

// MPI is usual, and has its own all-reduce.
static int name_planned_transport(job *j)
{
    const char *const given = j->s->launch.transport;
    return name_transport(j, strcmp(given, "auto") == 0 ? "mpi" : given);
}

static int name_probed_transport(job *j)
{
    cli_place place;
    const lac_status status = cli_place_choose("plan", &j->s->launch, &place);
    if (status != LAC_OK) {
        return cli_rejected("plan", status);
    }
    const int code = name_transport(j, place.spec);
    cli_place_clear(&place);
    return code;
}

static int check_probe(job *j)
{
    const settings *const s = j->s;
    const char *const given = *s->bandwidth != '\0'       ? "bandwidth"
                              : *s->latency != '\0'       ? "latency"
                              : *s->measured_step != '\0' ? "measured-step"
                                                          : NULL;
    if (given == NULL) {
        return CLI_GOOD;
    }
    (void)!lac_fail(
        LAC_ERR_INVALID,
        "plan: --probe and --%s were given, expected one: the probe measures "
        "the network",
        given);
    return cli_misused("plan");
}

static int open_plan_layout(job *j)
{
    return cli_layout_open("plan", j->s->model, j->s->layout, &j->layout);
}

static int open_plan_topology(job *j)
{
    const settings *const s = j->s;
    return cli_network_open(
        "plan", s->topology, j->task.workers, s->seed, &j->topology);
}

static int open_candidates(job *j)
{
    j->task.layout = j->layout;
    j->task.topology = j->topology;
    j->task.seed = j->s->seed;
    j->task.overlap = j->s->overlap;
    j->task.gradients = j->s->gradients;
    j->task.local_steps = (double)j->s->local_steps;
    j->task.near = plan_near_of(cli_given(j->s->model));
    return plan_speed_open(&j->speed, j->s->measure) == LAC_OK &&
                   plan_open(&j->plan, &j->task, j->speed) == LAC_OK
               ? CLI_GOOD
               : cli_failed();
}

// Replaces the bandwidth by the one that explains the measured step.
static int calibrate(job *j)
{
    char text[PLAN_TEXT_SIZE];
    const double nominal = j->network.bandwidth;
    if (j->measured == 0) {
        return CLI_GOOD;
    }
    if (plan_effective_bandwidth(
            &j->plan, &j->network, j->measured, &j->network.bandwidth) !=
        LAC_OK) {
        return cli_misused("plan");
    }
    const int len = snprintf(
        j->network_source, sizeof(j->network_source), "from the measured step");
    if (nominal > 0 && len > 0) {
        (void)snprintf(
            j->network_source + len, sizeof(j->network_source) - (size_t)len,
            " (%.0f %% of %s)", 100 * j->network.bandwidth / nominal,
            plan_bandwidth(nominal, text));
    }
    return CLI_GOOD;
}

static lac_status write_svg(const job *j)
{
    char title[256], time[PLAN_TEXT_SIZE];
    (void)snprintf(
        title, sizeof(title),
        "The fastest step of %s, %u workers, %s of computation, network: %s",
        *j->s->model == '\0' ? j->s->layout : j->s->model, j->task.workers,
        plan_seconds(j->task.compute, time),
        plan_network_name(j->network.kind));
    return plan_map_svg(&j->map, title, j->s->svg);
}

static int report(job *j)
{
    const settings *const s = j->s;
    const bool drawn = *s->svg != '\0';
    plan_rank(&j->plan, &j->network);
    if (s->map || drawn) {
        plan_map_make(&j->map, &j->plan, &j->network);
    }
    if (drawn && write_svg(j) != LAC_OK) {
        return cli_failed();
    }
    const plan_report r = {
        .plan = &j->plan,
        .network = j->network,
        .model = cli_given(s->model),
        .layout = cli_given(s->layout),
        .topology = s->topology,
        .network_source = cli_given(j->network_source),
        .compression_source = plan_speed_source(j->speed),
        .break_even = plan_break_even(&j->plan, &j->network),
        .map = s->map ? &j->map : NULL,
    };
    FILE *const stream = drawn && data_file_is_stdout(s->svg) ? stderr : stdout;
    if (s->json) {
        return cli_json_print(plan_report_json(&r), stream);
    }
    plan_report_print(&r, stream);
    return CLI_GOOD;
}

// The steps of a plan, each with an exit code; the first failure ends them.
typedef int plan_part(job *j);

static int run_parts(job *j, plan_part *const *parts)
{
    int code = CLI_GOOD;
    for (; *parts != NULL && code == CLI_GOOD; parts++) {
        code = (*parts)(j);
    }
    return code;
}

static int plan_given(job *j)
{
    static plan_part *const parts[] = {
        read_times,
        read_network,
        name_planned_transport,
        open_plan_layout,
        open_plan_topology,
        open_candidates,
        calibrate,
        report,
        NULL};
    const uint64_t given = j->s->launch.workers;
    j->task.workers =
        given == 0 ? (uint32_t)CLI_WORKERS_DEFAULT : (uint32_t)given;
    return run_parts(j, parts);
}

static int probe_prepare(void *context, uint32_t world)
{
    static plan_part *const parts[] = {
        read_times,       check_probe,        name_probed_transport,
        open_plan_layout, open_plan_topology, NULL};
    job *const j = context;
    j->task.workers = world;
    j->probes = calloc(world, sizeof(*j->probes));
    if (j->probes == NULL) {
        (void)!lac_fail(LAC_ERR_NOMEM, "no memory to probe %u workers", world);
        return cli_failed();
    }
    return run_parts(j, parts);
}

static lac_status probe_work(void *context, lac_transport *transport)
{
    job *const j = context;
    const uint32_t rank = lac_transport_rank(transport);
    const plan_probe_options o = {
        .transport = transport,
        .topology = j->topology,
        .budget = PROBE_SECONDS,
        .timeout = j->s->launch.timeout,
        .kind = j->s->network == 0 ? NULL : &kinds[j->s->network],
    };
    plan_probe_result result;
    LAC_TRY(plan_probe_open(&j->probes[rank], &o));
    LAC_TRY(plan_probe_run(j->probes[rank], &result));
    if (rank == 0) {
        j->here = true;
        j->network = result.network;
        plan_probe_describe(
            &result, j->network_source, sizeof(j->network_source));
        const size_t len = strlen(j->network_source);
        if (strcmp(j->task.transport, "local") == 0) {
            (void)snprintf(
                j->network_source + len, sizeof(j->network_source) - len,
                ", of threads: this is memory, not a network");
        }
    }
    return LAC_OK;
}

static void probe_release(void *context, uint32_t rank)
{
    const job *const j = context;
    plan_probe_close(j->probes[rank]);
}

// All workers measure the network, then worker 0 plans.
static int plan_probed(job *j)
{
    static plan_part *const parts[] = {open_candidates, report, NULL};
    static const cli_workers workers = {
        .prepare = probe_prepare,
        .work = probe_work,
        .release = probe_release,
    };
    const int code = cli_launch("plan", &j->s->launch, &workers, j);
    return code == CLI_GOOD && j->here ? run_parts(j, parts) : code;
}

// Rejects options whose values are those of the run.
static int plan_check_run(job *j)
{
    const settings *const s = j->s;
    const struct {
        const char *name;
        bool given;
    } others[] = {
        {"model", *s->model != '\0'},
        {"layout", *s->layout != '\0'},
        {"workers", s->launch.workers != 0},
        {"overlap", s->overlap},
        {"gradients", s->gradients},
        {"local-steps", s->local_steps > 1},
        {"measured-step", *s->measured_step != '\0'},
        {"map", s->map},
        {"probe", s->probe},
        {"measure", s->measure && *s->step_time == '\0'},
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (others[i].given) {
            (void)!lac_fail(
                LAC_ERR_INVALID,
                "plan: --run and --%s were given, expected one",
                others[i].name);
            return cli_misused("plan");
        }
    }
    return *s->bandwidth != '\0'
               ? CLI_GOOD
               : misused_plan("--bandwidth RATE is missing, such as 1Gbit");
}

static int plan_report_run(job *j)
{
    const settings *const s = j->s;
    const plan_run_options o = {
        .network = j->network,
        .transport = j->task.transport,
        .compute = j->task.compute,
        .measure = s->measure,
    };
    const bool drawn = *s->svg != '\0';
    FILE *const stream = drawn && data_file_is_stdout(s->svg) ? stderr : stdout;
    plan_runs runs;
    int code = CLI_GOOD;
    if (plan_runs_open(&runs, &s->runs, &o, s->goal) != LAC_OK ||
        (drawn && plan_run_svg(&runs, s->svg) != LAC_OK)) {
        code = cli_failed();
    } else if (s->json) {
        code = cli_json_print(plan_run_json(&runs), stream);
    } else {
        plan_run_print(&runs, stream);
    }
    plan_runs_close(&runs);
    return code;
}

// Finished runs on another network's clock.
static int plan_finished(job *j)
{
    static plan_part *const parts[] = {plan_check_run,  read_times,
                                       read_network,    name_planned_transport,
                                       plan_report_run, NULL};
    return run_parts(j, parts);
}

static int plan_command(const void *given, size_t count, char *const *arguments)
{
    (void)count;
    (void)arguments;
    job j = {.s = given};
    if (*j.s->goal != '\0' && !has_runs(j.s)) {
        return misused_plan(
            "--goal was given without --run, expected finished runs: accuracy "
            "is not predicted");
    }
    // Only a probe needs the other workers of a job.
    if (!(j.s->probe && !has_runs(j.s)) && !cli_place_is_first()) {
        return CLI_GOOD;
    }
    const int code = has_runs(j.s) ? plan_finished(&j)
                     : j.s->probe  ? plan_probed(&j)
                                   : plan_given(&j);
    free(j.probes);
    plan_close(&j.plan);
    plan_speed_close(j.speed);
    lac_topology_close(j.topology);
    lac_layout_close(j.layout);
    return code;
}

const cli_command cmd_plan = {
    .name = "plan",
    .summary = "predict whether compression pays on a network",
    .arguments = "",
    .details =
        "From the shapes of the tensors, predict for every algorithm the time\n"
        "of a training step on a network, rank them, and advise. Every\n"
        "exchange takes one latency and the time to transmit its bytes, on\n"
        "links that are otherwise idle. --network: star has a port a worker,\n"
        "pairs a link of its own for each pair of workers, shared one medium\n"
        "for all. With --overlap gossip exchanges models, and buckets of\n"
        "gradients are averaged, during the computation. With --local-steps\n"
        "gossip and outer have a round every H steps; with --overlap too,\n"
        "streaming hides the fragments of outer. --measured-step, the\n"
        "time of an uncompressed step that you see, replaces the bandwidth\n"
        "by the one that explains it. --transport is the one to plan for; "
        "auto\n"
        "is mpi, with its own all-reduce. With --probe, workers measure the\n"
        "network first, as threads or under mpirun. Accuracy is not "
        "predicted.\n"
        "--run draws the accuracy of a finished run, which any network would\n"
        "have given, over the time that the run would take on this one; of\n"
        "several runs it prints the time until each reaches an accuracy, with\n"
        "--goal 90% until it reaches that one. --step-time is then that of\n"
        "other machines; without it, the times of computation and compression\n"
        "are those that the run recorded.",
    .example =
        "Predict which algorithm is fastest for ResNet-18 on 16 machines:\n"
        "\n"
        "    laconic plan --model resnet18 --workers 16 --step-time 229ms \\\n"
        "        --bandwidth 1Gbit --latency 1ms --map",
    .options = options,
    .settings_size = sizeof(settings),
    .run = plan_command,
};
