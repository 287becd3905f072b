// SPDX-License-Identifier: MIT
// Estimates a run from its plan: steps from the data, bytes from the shapes (an
// upper bound where they depend on the values), memory from the networks, the
// time from a few gradients and rounds on this machine.
#include "cli/train/dry_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/bench/step.h"
#include "cli/plan/text.h"
#include "cli/report/processor.h"
#include "cli/report/table.h"
#include "cli/size/fragments.h"
#include "cli/train/config.h"
#include "cli/train/manifest.h"
#include "cli/train/report.h"
#include "cli/train/settings.h"
#include "train/uncompressed.h"

// Rounds that are timed, and the most neighbours in them: each is a thread with
// a model.
enum { TIMED_ROUNDS = 3, TIMED_DEGREE_MAX = 4 };

typedef struct estimate {
    train_facts facts;
    uint64_t steps;
    double payload;  // bytes of all workers
    double gradient; // seconds of a gradient
    double round;    // and of a round without waiting; NaN: not known
    double seconds;  // of the run, without tests and messages
} estimate;

// The payload of a fragment. Its cost has the bytes to one neighbour, or of one
// contribution; without compression these would be four times the parameters.
static double fragment_payload(
    const train_run *run, const estimate *e, const lac_cost *cost,
    uint32_t fragment)
{
    const size_t n = e->facts.parameters;
    const uint64_t rounds = train_local_steps_rounds(
        &run->plan.local_steps, fragment, e->steps, e->facts.epoch_steps);
    return cost->payload_bytes / ((double)n * sizeof(float)) *
           train_uncompressed_bytes(
               cost->family, run->plan.algorithm.topology, n, rounds);
}

// Returns the seconds of a round of the algorithm, NaN if it cannot be timed:
// the machine may be too small for the workers of a measurement.
static double time_a_round(const train_run *run, const estimate *e)
{
    const lac_algorithm_options *const a = &run->plan.algorithm;
    const lac_edge *edges;
    const uint32_t neighbours = lac_topology_edges(a->topology, 0, 0, &edges);
    const bool model = e->facts.family == LAC_FAMILY_MODEL;
    cli_bench_step step = {.spec = a->spec, .compressor = a->compressor};
    const cli_bench_step_options options = {
        .runs = TIMED_ROUNDS,
        .seed = run->plan.seed,
        .kernels = "best",
        .threads = a->threads,
        .layout = a->layout,
        .degree = !model                          ? 1
                  : neighbours < TIMED_DEGREE_MAX ? neighbours
                                                  : TIMED_DEGREE_MAX,
    };
    return run->world > 1 && cli_bench_step_check(&step, &options) == LAC_OK &&
                   cli_bench_step_measure(&step, &options) == LAC_OK
               ? step.seconds
               : (double)NAN;
}

// Threads share the processors; a pause of --step-time needs none.
static void estimate_seconds(const train_run *run, bool threads, estimate *e)
{
    const double processors = (double)cli_processor_count();
    const double share = threads ? fmax(1, run->world / processors) : 1;
    const double rounds = (double)train_local_steps_rounds(
        &run->plan.local_steps, 0, e->steps, e->facts.epoch_steps);
    e->round = time_a_round(run, e);
    e->seconds =
        (double)e->steps * (run->plan.step_time + share * e->gradient) +
        (isnan(e->round) ? 0 : rounds * share * e->round);
}

static lac_status estimate_run(const train_run *run, estimate *out)
{
    cli_fragments fragments;
    LAC_TRY(train_plan_facts(run, &out->facts, &out->gradient));
    LAC_TRY(cli_fragments_open(&fragments, &run->plan.algorithm));
    out->steps = run->plan.epochs * out->facts.epoch_steps;
    out->payload = 0;
    for (uint32_t f = 0; f < fragments.count; f++) {
        out->payload += fragment_payload(run, out, &fragments.costs[f], f);
    }
    cli_fragments_close(&fragments);
    return LAC_OK;
}

static cJSON *estimate_json(const estimate *e, const cJSON *settings)
{
    cJSON *const o = cli_train_facts(&e->facts);
    cJSON_DeleteItemFromObject(o, "first_step");
    cJSON_AddNumberToObject(o, "steps", (double)e->steps);
    cJSON_AddNumberToObject(o, "seconds", e->seconds);
    cJSON_AddNumberToObject(o, "gradient_seconds", e->gradient);
    cJSON_AddNumberToObject(o, "round_seconds", e->round);
    cJSON_AddNumberToObject(o, "payload_bytes", e->payload);
    cJSON_AddNumberToObject(o, "memory_bytes", cli_train_memory(&e->facts));
    cJSON_AddItemToObject(
        o, "settings", cli_manifest_typed(cli_train_options, settings));
    return o;
}

// An all-reduce has no topology.
static bool has_effect(const estimate *e, const char *name)
{
    return e->facts.family == LAC_FAMILY_MODEL || strcmp(name, "topology") != 0;
}

// As cJSON prints them: numbers with the digits that are needed.
static void add_settings(cli_table *t, const estimate *e, const cJSON *settings)
{
    cJSON *const typed = cli_manifest_typed(cli_train_options, settings);
    for (const cJSON *s = typed->child; s != NULL; s = s->next) {
        char *const number =
            cJSON_IsNumber(s) ? cJSON_PrintUnformatted(s) : NULL;
        const char *const text = number == NULL ? s->valuestring : number;
        if (text != NULL && *text != '\0' && !cli_config_is_call(s->string) &&
            has_effect(e, s->string)) {
            cli_table_add(t, "--%s", s->string);
            cli_table_add(t, "%s", text);
        }
        cJSON_free(number);
    }
    cJSON_Delete(typed);
}

// "about 5.4 min: 12.0 ms for a gradient, 3.10 ms for a round, ..."
static void add_time(cli_table *t, const estimate *e)
{
    char all[PLAN_TEXT_SIZE], gradient[PLAN_TEXT_SIZE], round[PLAN_TEXT_SIZE];
    const bool known = !isnan(e->round);
    cli_table_add(t, "time");
    cli_table_add(
        t,
        "about %s with the processors of this machine: %s for a gradient%s%s"
        "%s; tests and messages come on top",
        plan_seconds(e->seconds, all), plan_seconds(e->gradient, gradient),
        known ? ", " : "", known ? plan_seconds(e->round, round) : "",
        known ? " for a round" : "");
}

static void print_estimate(const estimate *e, const cJSON *settings)
{
    char value[CLI_CELL_SIZE], text[CLI_BYTES_SIZE], number[CLI_GROUPED_SIZE];
    cli_table t = cli_table_make("ll", NULL);
    (void)snprintf(value, sizeof(value), "%s", cli_grouped(e->steps, number));
    cli_table_add(&t, "steps");
    cli_table_add(
        &t, "%s, %s per epoch", value,
        cli_grouped(e->facts.epoch_steps, number));
    add_time(&t, e);
    cli_table_add(&t, "bytes");
    cli_table_add(&t, "%s by all workers", cli_bytes(e->payload, text));
    cli_table_add(&t, "memory");
    cli_table_add(
        &t, "%s per worker", cli_bytes(cli_train_memory(&e->facts), text));
    cli_table_add(&t, "parameters");
    cli_table_add(&t, "%s", cli_grouped(e->facts.parameters, number));
    add_settings(&t, e, settings);
    cli_table_print(&t, stdout);
}

lac_status cli_dry_run(
    const train_run *run, const cJSON *settings, bool threads, bool json)
{
    estimate e = {0};
    LAC_TRY(estimate_run(run, &e));
    estimate_seconds(run, threads, &e);
    if (json) {
        (void)cli_json_print(estimate_json(&e, settings), stdout);
    } else {
        print_estimate(&e, settings);
    }
    return LAC_OK;
}
