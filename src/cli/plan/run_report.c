// SPDX-License-Identifier: MIT
// The output of `laconic plan --run`, as text and as JSON.
#include "cli/plan/run_report.h"

#include <inttypes.h>
#include <math.h>

#include "cli/plan/report.h"
#include "cli/plan/run_plot.h"
#include "cli/plan/text.h"
#include "cli/report/table.h"
#include "cli/report/wrap.h"

enum { LINE_SIZE = 512 };

static cJSON *epoch_json(const plan_run *run, const cli_run_epoch *e)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "epoch", e->epoch);
    cJSON_AddNumberToObject(o, "step", (double)e->step);
    cJSON_AddNumberToObject(o, "seconds", plan_run_seconds(run, e));
    cJSON_AddNumberToObject(
        o, "test_accuracy", e->values[CLI_METRIC_TEST_ACCURACY]);
    if (run->trained.text) {
        cJSON_AddNumberToObject(
            o, "test_perplexity", e->values[CLI_METRIC_TEST_PERPLEXITY]);
    }
    cJSON_AddNumberToObject(
        o, "payload_bytes", e->values[CLI_METRIC_PAYLOAD_BYTES]);
    return o;
}

cJSON *plan_run_json(const plan_run *run)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "run", run->options->folder);
    cJSON_AddStringToObject(o, "model", run->trained.model);
    cJSON_AddStringToObject(o, "data", run->trained.data);
    cJSON_AddStringToObject(o, "algorithm", run->trained.algorithm);
    cJSON_AddItemToObject(
        o, "compressor", cli_json_text(run->trained.compressor));
    cJSON_AddStringToObject(o, "topology", run->trained.topology);
    cJSON_AddNumberToObject(o, "workers", run->trained.workers);
    cJSON_AddNumberToObject(o, "seed", (double)run->trained.seed);
    cJSON_AddItemToObject(
        o, "network", plan_network_json(&run->options->network, NULL));
    cJSON_AddNumberToObject(o, "step_seconds", run->step);
    cJSON_AddNumberToObject(o, "compute_seconds", run->compute);
    cJSON_AddNumberToObject(o, "compress_seconds", run->compress);
    cJSON_AddStringToObject(o, "compress_source", run->source);
    cJSON_AddNumberToObject(o, "network_seconds", run->network);
    cJSON_AddNumberToObject(o, "hidden_seconds", run->hidden);
    cJSON_AddNumberToObject(
        o, "seconds",
        plan_run_seconds(run, &run->trained.epochs[run->trained.count - 1]));
    cJSON *const epochs = cJSON_AddArrayToObject(o, "epochs");
    for (size_t i = 0; i < run->trained.count; i++) {
        cJSON_AddItemToArray(epochs, epoch_json(run, &run->trained.epochs[i]));
    }
    return o;
}

static void print_names(const plan_run *run, FILE *stream)
{
    char line[LINE_SIZE], name[PLAN_NAME_SIZE], rate[PLAN_TEXT_SIZE],
        latency[PLAN_TEXT_SIZE];
    const plan_choice choice = {
        run->trained.algorithm, run->trained.compressor, false};
    const plan_network *const n = &run->options->network;
    (void)snprintf(
        line, sizeof(line), "%s: %s on %s, %s, %" PRIu32 " workers, %s",
        run->options->folder, run->trained.model, run->trained.data,
        plan_name(&choice, name), run->trained.workers, run->trained.topology);
    cli_wrap(line, 0, stream);
    (void)snprintf(
        line, sizeof(line), "network: %s, %s, %s one way; transport %s",
        plan_network_name(n->kind), plan_bandwidth(n->bandwidth, rate),
        plan_seconds(n->latency, latency), run->options->transport);
    cli_wrap(line, 0, stream);
}

static void print_step(const plan_run *run, FILE *stream)
{
    char line[LINE_SIZE], step[PLAN_TEXT_SIZE], compute[PLAN_TEXT_SIZE],
        compress[PLAN_TEXT_SIZE], network[PLAN_TEXT_SIZE],
        hidden[PLAN_TEXT_SIZE];
    (void)snprintf(
        line, sizeof(line),
        "a step takes %s: computation %s, compression %s, network %s%s%s",
        plan_seconds(run->step, step), plan_seconds(run->compute, compute),
        plan_seconds(run->compress, compress),
        plan_seconds(run->network, network),
        run->trained.overlap ? ", hidden " : "",
        run->trained.overlap ? plan_seconds(run->hidden, hidden) : "");
    cli_wrap(line, 0, stream);
    (void)snprintf(
        line, sizeof(line), "%scompression: %s",
        run->options->compute > 0 ? "" : "computation and ", run->source);
    cli_wrap(line, 0, stream);
}

static void add_epoch(cli_table *t, const plan_run *run, const cli_run_epoch *e)
{
    char text[PLAN_TEXT_SIZE];
    const double value = plan_run_value(run, e);
    const double seconds = plan_run_seconds(run, e);
    cli_table_add(t, "%.6g", e->epoch);
    cli_table_add(t, "%.*f", seconds < 100 ? 2 : 0, seconds);
    if (isfinite(value)) {
        cli_table_add(t, "%.2f%s", value, run->trained.text ? "" : " %");
    } else {
        cli_table_add(t, "-");
    }
    cli_table_add(
        t, "%s", plan_bytes(e->values[CLI_METRIC_PAYLOAD_BYTES], text));
}

void plan_run_print(const plan_run *run, FILE *stream)
{
    print_names(run, stream);
    print_step(run, stream);
    cli_table t = cli_table_make("rrrr", NULL);
    cli_table_add(&t, "epoch");
    cli_table_add(&t, "seconds");
    cli_table_add(&t, "%s", run->trained.text ? "perplexity" : "accuracy");
    cli_table_add(&t, "sent");
    for (size_t i = 0; i < run->trained.count; i++) {
        add_epoch(&t, run, &run->trained.epochs[i]);
    }
    (void)fputc('\n', stream);
    cli_table_print(&t, stream);
    const double done = cli_run_done(&run->trained);
    if (done < (double)run->trained.planned) {
        (void)fprintf(
            stream, "\nThe run has %.6g of %" PRIu64 " epochs.\n", done,
            run->trained.planned);
    }
    if (run->trained.count > 1) {
        plan_run_plot(run, stream);
    }
}
