// SPDX-License-Identifier: MIT
// Estimates a run from its plan: steps from the data, bytes from the shapes (an
// upper bound where they depend on the values), memory from the networks.
#include "cli/train/dry_run.h"

#include <stdio.h>

#include "cli/report/table.h"
#include "cli/size/fragments.h"
#include "cli/train/config.h"
#include "cli/train/manifest.h"
#include "cli/train/report.h"
#include "cli/train/settings.h"
#include "train/uncompressed.h"

typedef struct estimate {
    train_facts facts;
    uint64_t steps;
    double payload; // bytes of all workers
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

static lac_status estimate_run(const train_run *run, estimate *out)
{
    cli_fragments fragments;
    LAC_TRY(train_plan_facts(run, &out->facts));
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
    cJSON_AddNumberToObject(o, "payload_bytes", e->payload);
    cJSON_AddNumberToObject(o, "memory_bytes", cli_train_memory(&e->facts));
    cJSON_AddItemToObject(
        o, "settings", cli_manifest_typed(cli_train_options, settings));
    return o;
}

// As cJSON prints them: numbers with the digits that are needed.
static void add_settings(cli_table *t, const cJSON *settings)
{
    cJSON *const typed = cli_manifest_typed(cli_train_options, settings);
    for (const cJSON *s = typed->child; s != NULL; s = s->next) {
        char *const number =
            cJSON_IsNumber(s) ? cJSON_PrintUnformatted(s) : NULL;
        const char *const text = number == NULL ? s->valuestring : number;
        if (text != NULL && *text != '\0' && !cli_config_is_call(s->string)) {
            cli_table_add(t, "--%s", s->string);
            cli_table_add(t, "%s", text);
        }
        cJSON_free(number);
    }
    cJSON_Delete(typed);
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
    cli_table_add(&t, "bytes");
    cli_table_add(&t, "%s by all workers", cli_bytes(e->payload, text));
    cli_table_add(&t, "memory");
    cli_table_add(
        &t, "%s per worker", cli_bytes(cli_train_memory(&e->facts), text));
    cli_table_add(&t, "parameters");
    cli_table_add(&t, "%s", cli_grouped(e->facts.parameters, number));
    add_settings(&t, settings);
    cli_table_print(&t, stdout);
}

lac_status cli_dry_run(const train_run *run, const cJSON *settings, bool json)
{
    estimate e = {0};
    LAC_TRY(estimate_run(run, &e));
    if (json) {
        (void)cli_json_print(estimate_json(&e, settings), stdout);
    } else {
        print_estimate(&e, settings);
    }
    return LAC_OK;
}
