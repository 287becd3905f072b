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

enum { LINE_SIZE = 512, NAME_WIDTH = 20 };

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

static void add_run(cJSON *o, const plan_run *run)
{
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
}

// Of a single run its members are those of the object too, as in versions that
// read one run only.
cJSON *plan_run_json(const plan_runs *r)
{
    cJSON *const o = cJSON_CreateObject();
    if (r->count == 1) {
        cJSON_AddStringToObject(o, "run", r->options[0].folder);
        add_run(o, &r->runs[0]);
    }
    if (!isnan(r->goal)) {
        cJSON_AddNumberToObject(
            o, plan_runs_is_text(r) ? "goal_perplexity" : "goal_accuracy",
            plan_runs_is_text(r) ? r->goal : r->goal / 100);
    }
    cJSON *const runs = cJSON_AddArrayToObject(o, "runs");
    for (size_t i = 0; i < r->count; i++) {
        cJSON *const one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "dir", r->options[i].folder);
        add_run(one, &r->runs[i]);
        if (!isnan(r->goal)) {
            cJSON_AddNumberToObject(
                one, "goal_seconds", plan_run_seconds_to(&r->runs[i], r->goal));
        }
        cJSON_AddItemToArray(runs, one);
    }
    return o;
}

static void print_network(const plan_run *run, FILE *stream)
{
    char line[LINE_SIZE], rate[PLAN_TEXT_SIZE], latency[PLAN_TEXT_SIZE];
    const plan_network *const n = &run->options->network;
    (void)snprintf(
        line, sizeof(line), "network: %s, %s, %s one way; transport %s",
        plan_network_name(n->kind), plan_bandwidth(n->bandwidth, rate),
        plan_seconds(n->latency, latency), run->options->transport);
    cli_wrap(line, 0, stream);
}

static void print_names(const plan_run *run, FILE *stream)
{
    char line[LINE_SIZE], name[PLAN_NAME_SIZE];
    const plan_choice choice = {
        run->trained.algorithm, run->trained.compressor, false};
    (void)snprintf(
        line, sizeof(line), "%s: %s on %s, %s, %" PRIu32 " workers, %s",
        run->options->folder, run->trained.model, run->trained.data,
        plan_name(&choice, name), run->trained.workers, run->trained.topology);
    cli_wrap(line, 0, stream);
    print_network(run, stream);
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

static void print_unfinished(
    const plan_run *run, const char *name, FILE *stream)
{
    const double done = cli_run_done(&run->trained);
    if (done < (double)run->trained.planned) {
        (void)fprintf(
            stream, "%s has %.6g of %" PRIu64 " epochs.\n", name, done,
            run->trained.planned);
    }
}

static const char *goal_text(
    const plan_runs *r, double goal, char text[PLAN_TEXT_SIZE])
{
    (void)snprintf(
        text, PLAN_TEXT_SIZE, "%.6g%s", goal, plan_runs_is_text(r) ? "" : " %");
    return text;
}

static void print_epochs(const plan_run *run, FILE *stream)
{
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
}

static void print_single(const plan_runs *r, FILE *stream)
{
    char goal[PLAN_TEXT_SIZE], time[PLAN_TEXT_SIZE];
    const plan_run *const run = &r->runs[0];
    print_names(run, stream);
    print_step(run, stream);
    print_epochs(run, stream);
    if (cli_run_done(&run->trained) < (double)run->trained.planned) {
        (void)fputc('\n', stream);
        print_unfinished(run, "The run", stream);
    }
    if (!isnan(r->goal)) {
        const double seconds = plan_run_seconds_to(run, r->goal);
        (void)fprintf(
            stream, "\n%s: %s\n", goal_text(r, r->goal, goal),
            isnan(seconds) ? "not reached" : plan_seconds(seconds, time));
    }
    if (run->trained.count > 1) {
        plan_run_plot(r, stream);
    }
}

static void add_times(
    cli_table *t, const plan_run *run, const double *levels, size_t count)
{
    char text[PLAN_TEXT_SIZE];
    const cli_run *const trained = &run->trained;
    cli_table_add(t, "%s", plan_seconds(run->step, text));
    for (size_t i = 0; i < count; i++) {
        const double seconds = plan_run_seconds_to(run, levels[i]);
        cli_table_add(
            t, "%s", isnan(seconds) ? "-" : plan_seconds(seconds, text));
    }
    cli_table_add(
        t, "%s",
        plan_seconds(
            plan_run_seconds(run, &trained->epochs[trained->count - 1]), text));
}

// Tests on few examples decide by chance which run reaches a goal first.
static void print_sample(const plan_runs *r, FILE *stream)
{
    double least = (double)NAN;
    char line[LINE_SIZE], count[CLI_GROUPED_SIZE];
    for (size_t i = 0; i < r->count; i++) {
        least = fmin(
            least, cli_run_last(&r->runs[i].trained, CLI_METRIC_TEST_EXAMPLES));
    }
    if (least > 0 && !plan_runs_is_text(r)) {
        (void)snprintf(
            line, sizeof(line),
            "The tests have %s examples: the standard error of 90 %% is %.1f "
            "points.",
            cli_grouped((size_t)least, count), 100 * sqrt(0.9 * 0.1 / least));
        cli_wrap(line, 0, stream);
    }
}

static void print_several(const plan_runs *r, FILE *stream)
{
    enum { OTHERS = 4 }; // mark, run, step and end
    char text[PLAN_TEXT_SIZE], cell[CLI_CELL_SIZE];
    char align[] = "llrrrrrrr";
    double levels[PLAN_LEVELS_MAX];
    const size_t count = plan_runs_levels(r, levels);
    align[OTHERS + count] = '\0';
    cli_table t = cli_table_make(align, NULL);
    print_network(&r->runs[0], stream);
    (void)fprintf(
        stream, "Time until a test shows %s:\n\n",
        plan_runs_is_text(r) ? "a perplexity" : "an accuracy");
    cli_table_add(&t, "%s", "");
    cli_table_add(&t, "run");
    cli_table_add(&t, "step");
    for (size_t i = 0; i < count; i++) {
        cli_table_add(&t, "%s", goal_text(r, levels[i], text));
    }
    cli_table_add(&t, "end");
    for (size_t i = 0; i < r->count; i++) {
        cli_table_add(&t, "%c", plan_run_mark(r, i));
        cli_table_add(
            &t, "%s", cli_fitted(plan_runs_name(r, i), NAME_WIDTH, cell));
        add_times(&t, &r->runs[i], levels, count);
    }
    cli_table_print(&t, stream);
    (void)fputc('\n', stream);
    print_sample(r, stream);
    for (size_t i = 0; i < r->count; i++) {
        print_unfinished(
            &r->runs[i], cli_fitted(plan_runs_name(r, i), NAME_WIDTH, cell),
            stream);
    }
    plan_run_plot(r, stream);
}

void plan_run_print(const plan_runs *r, FILE *stream)
{
    if (r->count == 1) {
        print_single(r, stream);
    } else {
        print_several(r, stream);
    }
}
