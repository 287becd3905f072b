// SPDX-License-Identifier: MIT
// The output of `laconic plan`, as text and as JSON.
#include "cli/plan/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/plan/text.h"
#include "cli/report/table.h"
#include "cli/report/wrap.h"
#include "cli/topology/network.h"

// The spectrum takes time workers^3; for more workers it is omitted.
enum { SPECTRUM_WORKERS_MAX = 512 };

// The spectral gap of the topology, NaN if it is not known.
static double spectral_gap(const plan_report *r)
{
    lac_spectrum spectrum;
    const plan_task *const task = &r->plan->task;
    return task->workers <= SPECTRUM_WORKERS_MAX &&
                   cli_network_spectrum(task->topology, &spectrum) == LAC_OK
               ? spectrum.gap
               : (double)NAN;
}

// The largest error that a compressor may make on a tensor of the layout,
// relative to its squared norm.
static double largest_error(const plan_report *r, const char *compressor)
{
    lac_compressor *c = NULL;
    double error = (double)NAN;
    const lac_layout *const layout = r->plan->task.layout;
    if (lac_compressor_open(&c, compressor, LAC_FORM_PLAIN) == LAC_OK) {
        for (size_t i = 0; i < lac_layout_count(layout); i++) {
            const lac_guarantee law = lac_compressor_guarantee(
                c, lac_layout_tensor(layout, i)->shape);
            error = fmax(error, law.error);
        }
    }
    lac_compressor_close(c);
    return error;
}

// Whether a candidate before number `index` has the same compressor.
static bool is_repeated(const plan *p, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        const char *const other = p->candidates[i].choice.compressor;
        if (other != NULL &&
            strcmp(other, p->candidates[index].choice.compressor) == 0) {
            return true;
        }
    }
    return false;
}

// Returns the first of the measurements that count for a candidate.
static const plan_loss *first_loss(const plan *p, const plan_candidate *c)
{
    return plan_candidate_loss(p, c) == NULL ? NULL
                                             : plan_loss_next(&c->choice, NULL);
}

static cJSON *losses_json(const plan *p, const plan_candidate *c)
{
    cJSON *const list = cJSON_CreateArray();
    for (const plan_loss *l = first_loss(p, c); l != NULL;
         l = plan_loss_next(&c->choice, l)) {
        cJSON *const o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "network", l->network);
        cJSON_AddNumberToObject(
            o, l->perplexity ? "perplexity_percent" : "points",
            l->perplexity ? l->lost : 0.0 - l->lost);
        cJSON_AddNumberToObject(o, "epochs", l->epochs);
        cJSON_AddStringToObject(o, "page", l->page);
        cJSON_AddItemToArray(list, o);
    }
    return list;
}

static cJSON *candidates_json(const plan_report *r)
{
    const double all = plan_baseline(r->plan)->step;
    cJSON *const list = cJSON_CreateArray();
    for (size_t i = 0; i < r->plan->count; i++) {
        const plan_candidate *const c = &r->plan->candidates[i];
        cJSON *const o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "algorithm", c->choice.algorithm);
        cJSON_AddItemToObject(
            o, "compressor", cli_json_text(c->choice.compressor));
        cJSON_AddNumberToObject(o, "step_seconds", c->step);
        cJSON_AddNumberToObject(o, "speedup", all / c->step);
        cJSON_AddNumberToObject(o, "network_seconds", c->network);
        cJSON_AddNumberToObject(o, "hidden_seconds", c->hidden);
        cJSON_AddNumberToObject(o, "compress_seconds", c->compress);
        cJSON_AddNumberToObject(o, "payload_bytes", c->payload);
        cJSON_AddItemToObject(o, "measured", losses_json(r->plan, c));
        cJSON_AddItemToArray(list, o);
    }
    return list;
}

static cJSON *refusals_json(const plan *p)
{
    cJSON *const list = cJSON_CreateArray();
    for (size_t i = 0; i < p->refusal_count; i++) {
        cJSON *const o = cJSON_CreateObject();
        cJSON_AddStringToObject(
            o, "algorithm", p->refusals[i].choice.algorithm);
        cJSON_AddItemToObject(
            o, "compressor", cli_json_text(p->refusals[i].choice.compressor));
        cJSON_AddStringToObject(o, "why", p->refusals[i].why);
        cJSON_AddItemToArray(list, o);
    }
    return list;
}

static cJSON *errors_json(const plan_report *r)
{
    cJSON *const o = cJSON_CreateObject();
    for (size_t i = 0; i < r->plan->count; i++) {
        const char *const spec = r->plan->candidates[i].choice.compressor;
        if (spec != NULL && !is_repeated(r->plan, i)) {
            cJSON_AddNumberToObject(o, spec, largest_error(r, spec));
        }
    }
    return o;
}

cJSON *plan_network_json(const plan_network *n, const char *source)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "bandwidth_mbit", 8e-6 * n->bandwidth);
    cJSON_AddNumberToObject(o, "latency_seconds", n->latency);
    cJSON_AddStringToObject(o, "kind", plan_network_name(n->kind));
    cJSON_AddItemToObject(o, "source", cli_json_text(source));
    return o;
}

cJSON *plan_report_json(const plan_report *r)
{
    char advice[PLAN_ADVICE_SIZE];
    const plan_task *const task = &r->plan->task;
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddItemToObject(o, "model", cli_json_text(r->model));
    cJSON_AddItemToObject(o, "layout", cli_json_text(r->layout));
    cJSON_AddNumberToObject(
        o, "parameters", (double)lac_layout_values(task->layout));
    cJSON_AddNumberToObject(o, "workers", task->workers);
    cJSON_AddStringToObject(o, "topology", r->topology);
    cJSON_AddStringToObject(o, "transport", task->transport);
    cJSON_AddBoolToObject(o, "overlap", task->overlap);
    cJSON_AddNumberToObject(o, "local_steps", task->local_steps);
    cJSON_AddNumberToObject(o, "step_seconds", task->compute);
    cJSON_AddItemToObject(
        o, "network", plan_network_json(&r->network, r->network_source));
    cJSON_AddStringToObject(o, "compression_source", r->compression_source);
    cJSON_AddNumberToObject(
        o, "allreduce_seconds", plan_baseline(r->plan)->network);
    cJSON_AddItemToObject(o, "candidates", candidates_json(r));
    cJSON_AddItemToObject(o, "refused", refusals_json(r->plan));
    cJSON_AddStringToObject(o, "advice", plan_advice(r->plan, advice));
    cJSON_AddNumberToObject(o, "break_even_mbit", 8e-6 * r->break_even);
    cJSON_AddNumberToObject(o, "spectral_gap", spectral_gap(r));
    cJSON_AddItemToObject(o, "compressor_errors", errors_json(r));
    if (r->map != NULL) {
        cJSON_AddItemToObject(o, "map", plan_map_json(r->map));
    }
    return o;
}

static void print_assumptions(const plan_report *r, FILE *stream)
{
    char values[CLI_GROUPED_SIZE], bytes[PLAN_TEXT_SIZE];
    char first[PLAN_TEXT_SIZE], second[PLAN_TEXT_SIZE], line[512];
    const plan_task *const task = &r->plan->task;
    const size_t n = lac_layout_values(task->layout);
    (void)snprintf(
        line, sizeof(line),
        "%s: %s values, %s; %" PRIu32 " worker%s, %s of computation a step%s",
        r->model == NULL ? r->layout : r->model, cli_grouped(n, values),
        plan_bytes(4.0 * (double)n, bytes), task->workers,
        task->workers == 1 ? "" : "s", plan_seconds(task->compute, first),
        task->overlap ? ", overlapped" : "");
    cli_wrap(line, 0, stream);
    (void)snprintf(
        line, sizeof(line),
        "network: %s, %s, %s one way%s%s; transport %s; gossip on %s",
        plan_network_name(r->network.kind),
        plan_bandwidth(r->network.bandwidth, first),
        plan_seconds(r->network.latency, second),
        r->network_source == NULL ? "" : ", ",
        r->network_source == NULL ? "" : r->network_source, task->transport,
        r->topology);
    cli_wrap(line, 0, stream);
    (void)snprintf(
        line, sizeof(line), "compression: %s", r->compression_source);
    cli_wrap(line, 0, stream);
}

// A plan for other machines is possible, a run on this one is not.
static void print_memory(const plan_report *r, FILE *stream)
{
    char needed[PLAN_TEXT_SIZE], present[PLAN_TEXT_SIZE], line[160];
    const double model = 4.0 * (double)lac_layout_values(r->plan->task.layout);
    const double memory =
        (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (memory > 0 && 2 * model > memory) {
        (void)snprintf(
            line, sizeof(line),
            "memory: the model and its gradient take %s, and this machine has "
            "%s",
            plan_bytes(2 * model, needed), plan_bytes(memory, present));
        cli_wrap(line, 0, stream);
    }
}

static void print_baseline(const plan_report *r, FILE *stream)
{
    char network[PLAN_TEXT_SIZE], step[PLAN_TEXT_SIZE], line[256];
    const plan_candidate *const c = plan_baseline(r->plan);
    (void)snprintf(
        line, sizeof(line),
        "an all-reduce takes %s, a step with it %s (check this against yours)",
        plan_seconds(c->network, network), plan_seconds(c->step, step));
    (void)fputc('\n', stream);
    cli_wrap(line, 0, stream);
}

static void add_seconds(cli_table *t, double seconds)
{
    char text[PLAN_TEXT_SIZE];
    cli_table_add(t, "%s", seconds > 0 ? plan_seconds(seconds, text) : "-");
}

static void add_gain(cli_table *t, double gain)
{
    const int decimals = gain >= 99.95 ? 0 : gain >= 9.995 ? 1 : 2;
    if (gain < 999.5) {
        cli_table_add(t, "%.*f x", decimals, gain);
    } else {
        cli_table_add(t, ">999 x");
    }
}

// "-0.5 LeNet (20), -7.8 ResNet-8 (20)"; of a perplexity "+4.9 % LSTM (5)".
static void add_losses(cli_table *t, const plan *p, const plan_candidate *c)
{
    char text[CLI_CELL_SIZE] = "";
    size_t len = 0;
    for (const plan_loss *l = first_loss(p, c); l != NULL && len < sizeof(text);
         l = plan_loss_next(&c->choice, l)) {
        len += (size_t)snprintf(
            text + len, sizeof(text) - len, "%s%+.1f%s %s (%u)",
            len == 0 ? "" : ", ", l->perplexity ? l->lost : 0.0 - l->lost,
            l->perplexity ? " %" : "", l->network, l->epochs);
    }
    cli_table_add(t, "%s", text);
}

static void print_losses(const plan_report *r, FILE *stream)
{
    char name[PLAN_NAME_SIZE];
    const plan *const p = r->plan;
    cli_table t = cli_table_make("ll", "  ");
    (void)fprintf(
        stream,
        "\nmeasured against the exact method after as many epochs (in "
        "brackets), in points\nof accuracy, %% of perplexity for the LSTM; see "
        "experiments/:\n");
    for (size_t i = 0; i < p->count; i++) {
        const plan_candidate *const c = &p->candidates[i];
        if (first_loss(p, c) != NULL) {
            cli_table_add(&t, "%s", plan_name(&c->choice, name));
            add_losses(&t, p, c);
        }
    }
    cli_table_print(&t, stream);
}

static void print_candidates(const plan_report *r, FILE *stream)
{
    const bool overlap = r->plan->task.overlap;
    const double all = plan_baseline(r->plan)->step;
    char name[PLAN_NAME_SIZE], bytes[PLAN_TEXT_SIZE];
    cli_table t = cli_table_make(overlap ? "lrrrrrr" : "lrrrrr", NULL);
    cli_table_add(&t, " ");
    cli_table_add(&t, "step");
    cli_table_add(&t, "gain");
    cli_table_add(&t, "network");
    cli_table_add(&t, "compress");
    if (overlap) {
        cli_table_add(&t, "hidden");
    }
    cli_table_add(&t, "sent");
    for (size_t i = 0; i < r->plan->count; i++) {
        const plan_candidate *const c = &r->plan->candidates[i];
        cli_table_add(&t, "%s", plan_name(&c->choice, name));
        add_seconds(&t, c->step);
        add_gain(&t, all / c->step);
        add_seconds(&t, c->network);
        add_seconds(&t, c->compress);
        if (overlap) {
            add_seconds(&t, c->hidden);
        }
        cli_table_add(&t, "%s", plan_bytes(c->payload, bytes));
    }
    (void)fputc('\n', stream);
    cli_table_print(&t, stream);
}

// Choices of one algorithm are often refused for the same reason.
static bool is_known_reason(const plan *p, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (strcmp(p->refusals[i].why, p->refusals[index].why) == 0) {
            return true;
        }
    }
    return false;
}

static void print_refusals(const plan *p, FILE *stream)
{
    char line[384];
    for (size_t i = 0; i < p->refusal_count; i++) {
        if (is_known_reason(p, i)) {
            continue;
        }
        (void)snprintf(
            line, sizeof(line), "not possible here: %s", p->refusals[i].why);
        cli_wrap(line, 0, stream);
    }
}

static void print_advice(const plan_report *r, FILE *stream)
{
    char advice[PLAN_ADVICE_SIZE], speed[PLAN_TEXT_SIZE];
    char line[PLAN_ADVICE_SIZE + 16];
    (void)snprintf(
        line, sizeof(line), "advice: %s", plan_advice(r->plan, advice));
    (void)fputc('\n', stream);
    cli_wrap(line, 0, stream);
    if (isinf(r->break_even)) {
        (void)fprintf(
            stream, "with this latency one of them gains 5 %% on links of any "
                    "speed\n");
    } else if (r->break_even > 0) {
        (void)fprintf(
            stream, "above %s nothing gains 5 %%\n",
            plan_bandwidth(r->break_even, speed));
    } else {
        (void)fprintf(stream, "nothing gains 5 %% on links of any speed\n");
    }
}

// 1 - 4e-07 instead of 1.
static void add_bound(cli_table *t, double error)
{
    if (error < 1 && error > 0.9995) {
        cli_table_add(t, "1 - %.0e", 1 - error);
    } else {
        cli_table_add(t, "%.3g", error);
    }
}

static void print_known(const plan_report *r, FILE *stream)
{
    const double gap = spectral_gap(r);
    cli_table t = cli_table_make("lr", "  ");
    (void)fprintf(
        stream, "\naccuracy is not predicted; what is known about it:\n");
    if (isfinite(gap)) {
        cli_table_add(&t, "spectral gap of %s", r->topology);
        cli_table_add(&t, "%.3g", gap);
    }
    for (size_t i = 0; i < r->plan->count; i++) {
        const char *const spec = r->plan->candidates[i].choice.compressor;
        if (spec != NULL && !is_repeated(r->plan, i)) {
            cli_table_add(&t, "|C(x) - x|^2 / |x|^2 at most, %s", spec);
            add_bound(&t, largest_error(r, spec));
        }
    }
    cli_table_print(&t, stream);
}

void plan_report_print(const plan_report *r, FILE *stream)
{
    print_assumptions(r, stream);
    print_memory(r, stream);
    print_baseline(r, stream);
    print_candidates(r, stream);
    print_refusals(r->plan, stream);
    print_losses(r, stream);
    print_known(r, stream);
    if (r->map != NULL) {
        const char *const plain = getenv("NO_COLOR");
        const char *const term = getenv("TERM");
        const bool colours = isatty(fileno(stream)) == 1 &&
                             (plain == NULL || *plain == '\0') &&
                             (term == NULL || strcmp(term, "dumb") != 0);
        (void)fputc('\n', stream);
        plan_map_print(r->map, colours, stream);
    }
    print_advice(r, stream); // last, where a terminal still shows it
}
