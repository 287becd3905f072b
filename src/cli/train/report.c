// SPDX-License-Identifier: MIT
// The report of a training run: the quality of the models, the bytes sent, the
// cost of compression, and the link speeds for which it pays.
#include "cli/train/report.h"

#include <math.h>

#include "cli/report/table.h"
#include "train/learned.h"

double cli_train_memory(const train_facts *f)
{
    const train_memory *const m = &f->memory;
    return (double)m->parameters + (double)m->gradient + (double)m->optimiser +
           (double)m->activations + (double)m->algorithm;
}

static double times_fewer(const train_run *run)
{
    return run->result.uncompressed_bytes /
           (double)run->result.metrics.usage.traffic.payload_bytes;
}

// Per worker. NaN if nothing was saved, or if workers waited for processors
// while they compressed.
static double run_break_even(const train_run *run)
{
    if (run->result.crowded) {
        return (double)NAN;
    }
    const train_usage *const u = &run->result.metrics.usage;
    const double saved =
        run->result.uncompressed_bytes - (double)u->traffic.payload_bytes;
    return cli_break_even_mbit(saved / run->world, u->compress_seconds);
}

static const char *family_name(lac_family family)
{
    return family == LAC_FAMILY_MODEL ? "model" : "gradient";
}

static cJSON *memory_json(const train_facts *f)
{
    const train_memory *const m = &f->memory;
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "parameters", (double)m->parameters);
    cJSON_AddNumberToObject(o, "gradient", (double)m->gradient);
    cJSON_AddNumberToObject(o, "optimiser", (double)m->optimiser);
    cJSON_AddNumberToObject(o, "activations", (double)m->activations);
    cJSON_AddNumberToObject(o, "algorithm", (double)m->algorithm);
    return o;
}

// A loss that is not finite becomes null.
static cJSON *trials_json(const train_search *s)
{
    cJSON *const array = cJSON_CreateArray();
    for (size_t i = 0; i < s->count; i++) {
        cJSON *const o = cJSON_CreateObject();
        cJSON_AddNumberToObject(o, "lr", s->trials[i].rate);
        cJSON_AddNumberToObject(o, "loss", s->trials[i].loss);
        cJSON_AddItemToArray(array, o);
    }
    return array;
}

void cli_train_print_search(const train_facts *f, FILE *stream)
{
    (void)fprintf(stream, "laconic: --lr auto:");
    for (size_t i = 0; i < f->search.count; i++) {
        const train_trial *const t = &f->search.trials[i];
        const char *const comma = i == 0 ? "" : ",";
        if (isfinite(t->loss)) {
            (void)fprintf(
                stream, "%s loss %.4g with %g", comma, t->loss, t->rate);
        } else {
            (void)fprintf(stream, "%s %g diverges", comma, t->rate);
        }
    }
    (void)fprintf(stream, "; the rate is %g\n", f->rate);
}

cJSON *cli_train_facts(const train_facts *f)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "parameters", (double)f->parameters);
    cJSON_AddNumberToObject(o, "epoch_steps", (double)f->epoch_steps);
    cJSON_AddNumberToObject(o, "first_step", (double)f->first_step);
    cJSON_AddStringToObject(o, "family", family_name(f->family));
    if (!isnan(f->rate)) {
        cJSON_AddNumberToObject(o, "lr", f->rate);
    }
    cJSON_AddBoolToObject(o, "lr_found", f->rate_found);
    if (f->search.count > 0) {
        cJSON_AddItemToObject(o, "lr_trials", trials_json(&f->search));
    }
    if (!isnan(f->gamma)) {
        cJSON_AddNumberToObject(o, "gamma", f->gamma);
    }
    cJSON_AddItemToObject(o, "memory", memory_json(f));
    return o;
}

static bool report_learned(const train_run *run)
{
    const train_chance chance = train_chance_of(run->plan.set);
    return train_judge(&run->result.metrics, &chance).learned;
}

// Names the loss that is too high, or its noise.
static void print_loss(
    const train_metrics *m, const train_chance *chance, bool high, FILE *stream)
{
    if (high) {
        const bool training = !(m->train_loss < chance->loss);
        (void)fprintf(
            stream, "the %s loss is %.4g, that of guessing %.4g",
            training ? "training" : "test",
            training ? m->train_loss : train_metrics_quality(m)->loss,
            chance->loss);
        return;
    }
    (void)fprintf(
        stream,
        "the training loss is %.4g after %.4g in the first steps, which may be "
        "noise",
        m->train_loss, m->first_loss);
}

void cli_train_judge(const train_run *run, FILE *stream)
{
    const train_metrics *const m = &run->result.metrics;
    const train_chance chance = train_chance_of(run->plan.set);
    const train_verdict v = train_judge(m, &chance);
    if (v.learned) {
        return;
    }
    (void)fprintf(stream, "laconic: nothing was learned: ");
    if (v.low_accuracy) {
        (void)fprintf(
            stream, "the accuracy is %.2f %%, that of guessing %.2f %%",
            100 * train_metrics_quality(m)->accuracy, 100 * chance.accuracy);
    }
    if (v.high_loss || v.flat_loss) {
        (void)fprintf(stream, "%s", v.low_accuracy ? "; " : "");
        print_loss(m, &chance, v.high_loss, stream);
    }
    (void)fprintf(
        stream, "; the rate was %g, try another --lr or more steps\n",
        run->result.facts.rate);
}

cJSON *cli_train_json(const train_run *run)
{
    const train_result *const r = &run->result;
    cJSON *const o = train_metrics_json(&r->metrics);
    cJSON_AddNumberToObject(o, "parameters", (double)r->facts.parameters);
    cJSON_AddNumberToObject(o, "lr", r->facts.rate);
    cJSON_AddBoolToObject(o, "lr_found", r->facts.rate_found);
    if (!isnan(r->facts.gamma)) {
        cJSON_AddNumberToObject(o, "gamma", r->facts.gamma);
    }
    cJSON_AddNumberToObject(o, "uncompressed_bytes", r->uncompressed_bytes);
    cJSON_AddNumberToObject(o, "times_fewer", times_fewer(run));
    cJSON_AddNumberToObject(o, "memory_bytes", cli_train_memory(&r->facts));
    cJSON_AddItemToObject(o, "memory", memory_json(&r->facts));
    cJSON_AddNumberToObject(o, "break_even_mbit", run_break_even(run));
    cJSON_AddBoolToObject(o, "workers_share_processors", r->crowded);
    cJSON_AddNumberToObject(o, "seconds", r->seconds);
    cJSON_AddNumberToObject(
        o, "search_seconds", r->metrics.usage.search_seconds);
    cJSON_AddBoolToObject(o, "learned", report_learned(run));
    return o;
}

static void add_quality(const train_run *run, cli_table *t)
{
    const train_metrics *const m = &run->result.metrics;
    const train_quality *const q = train_metrics_quality(m);
    char value[CLI_CELL_SIZE], note[CLI_CELL_SIZE], count[CLI_GROUPED_SIZE];
    if (isnan(q->accuracy)) {
        cli_table_row(
            t, m->text ? "perplexity" : "accuracy", "unknown",
            "there is no test set");
        return;
    }
    (void)snprintf(
        note, sizeof(note), "mean of the workers' own models, on %s %s",
        cli_grouped(q->examples, count), m->text ? "words" : "examples");
    if (m->text) {
        (void)snprintf(value, sizeof(value), "%.2f", exp(q->loss));
        cli_table_row(t, "perplexity", value, note);
        (void)snprintf(value, sizeof(value), "%.2f", exp(q->averaged_loss));
        cli_table_row(t, "", value, "of the averaged model");
        return;
    }
    (void)snprintf(value, sizeof(value), "%.2f %%", 100 * q->accuracy);
    cli_table_row(t, "accuracy", value, note);
    if (q->worst_accuracy < q->accuracy) {
        (void)snprintf(
            value, sizeof(value), "%.2f %%", 100 * q->worst_accuracy);
        cli_table_row(t, "", value, "of the worst worker");
    }
    (void)snprintf(value, sizeof(value), "%.2f %%", 100 * q->averaged_accuracy);
    cli_table_row(t, "", value, "of the averaged model");
}

static void add_objective(const train_run *run, cli_table *t)
{
    const train_metrics *const m = &run->result.metrics;
    char value[CLI_CELL_SIZE];
    if (m->has_objective) {
        (void)snprintf(value, sizeof(value), "%.6g", m->train_objective);
        cli_table_row(
            t, "objective", value, "of the averaged model, training set");
    }
}

static void add_traffic(const train_run *run, cli_table *t)
{
    const train_result *const r = &run->result;
    const lac_traffic *const sent = &r->metrics.usage.traffic;
    char value[CLI_CELL_SIZE], text[CLI_BYTES_SIZE];
    if (run->world == 1) {
        cli_table_row(t, "bytes", "0", "a single worker sends nothing");
        return;
    }
    (void)snprintf(
        value, sizeof(value), "in %llu messages",
        (unsigned long long)sent->messages);
    cli_table_row(
        t, "bytes", cli_bytes((double)sent->payload_bytes, text), value);
    (void)snprintf(value, sizeof(value), "%.1f x", times_fewer(run));
    cli_table_row(
        t, "fewer bytes", value,
        r->facts.family == LAC_FAMILY_MODEL ? "than uncompressed gossip"
                                            : "than uncompressed all-reduce");
}

static void add_memory(const train_run *run, cli_table *t)
{
    const train_memory *const m = &run->result.facts.memory;
    char note[CLI_CELL_SIZE], total[CLI_BYTES_SIZE], text[5][CLI_BYTES_SIZE];
    (void)snprintf(
        note, sizeof(note),
        "per worker: parameters %s, gradient %s, optimiser %s, activations %s, "
        "algorithm %s",
        cli_bytes((double)m->parameters, text[0]),
        cli_bytes((double)m->gradient, text[1]),
        cli_bytes((double)m->optimiser, text[2]),
        cli_bytes((double)m->activations, text[3]),
        cli_bytes((double)m->algorithm, text[4]));
    cli_table_row(
        t, "memory", cli_bytes(cli_train_memory(&run->result.facts), total),
        note);
}

static void add_break_even(const train_run *run, cli_table *t)
{
    const double mbit = run_break_even(run);
    char value[CLI_CELL_SIZE];
    // The clock of a simulated cluster stands still while a worker computes.
    if (run->world == 1 || run->result.metrics.usage.compress_seconds <= 0) {
        return;
    }
    if (run->result.crowded) {
        cli_table_row(
            t, "break-even", "unknown",
            "the workers shared processors; `laconic plan` estimates it");
        return;
    }
    if (isnan(mbit)) {
        cli_table_row(t, "break-even", "none", "nothing is saved on any link");
        return;
    }
    (void)snprintf(
        value, sizeof(value), mbit < 10 ? "%.1f Mbit/s" : "%.0f Mbit/s", mbit);
    cli_table_row(
        t, "break-even", value, "compression saves time on slower links");
}

static void add_time(const train_run *run, cli_table *t)
{
    const train_result *const r = &run->result;
    const train_usage *const u = &r->metrics.usage;
    char value[CLI_CELL_SIZE], note[CLI_CELL_SIZE], search[CLI_CELL_SIZE] = "";
    if (r->facts.rate_found) {
        (void)snprintf(
            search, sizeof(search), "searched a rate %.1f s, ",
            u->search_seconds);
    }
    (void)snprintf(value, sizeof(value), "%.1f s", r->seconds);
    (void)snprintf(
        note, sizeof(note),
        "per worker: %.60scomputed %.1f s, tested %.1f s, compressed %.1f s, "
        "waited %.1f s",
        search, u->compute_seconds, u->test_seconds, u->compress_seconds,
        u->wait_seconds);
    cli_table_row(t, "time", value, note);
    if (r->facts.first_step > 0) {
        (void)snprintf(
            note, sizeof(note), "all with the %.1f s before the resume",
            r->seconds_before);
        cli_table_row(t, "", "", note);
    }
}

void cli_train_table(const train_run *run, const char *topology, FILE *stream)
{
    const train_plan *const p = &run->plan;
    const train_facts *const f = &run->result.facts;
    char value[CLI_CELL_SIZE], number[CLI_GROUPED_SIZE];
    cli_table t = cli_table_make("lrl", NULL);
    (void)snprintf(
        value, sizeof(value), "of %s parameters, on %s",
        cli_grouped(f->parameters, number), data_set_info(p->set)->name);
    cli_table_row(&t, "model", p->model, value);
    (void)snprintf(value, sizeof(value), "%u", run->world);
    cli_table_row(
        &t, "workers", value,
        f->family == LAC_FAMILY_MODEL ? topology : "all-reduce");
    cli_table_row(
        &t, "algorithm", p->algorithm.spec,
        p->algorithm.compressor == NULL ? "" : p->algorithm.compressor);
    if (!isnan(f->gamma)) {
        (void)snprintf(value, sizeof(value), "%.4g", f->gamma);
        cli_table_row(&t, "gamma", value, "");
    }
    (void)snprintf(value, sizeof(value), "%g", f->rate);
    char note[CLI_CELL_SIZE];
    (void)snprintf(
        note, sizeof(note), "of %s%s",
        p->optimiser.rule == TRAIN_ADAM ? "adam" : "sgd",
        f->rate_found ? ", found by --lr auto" : "");
    cli_table_row(&t, "rate", value, note);
    (void)snprintf(value, sizeof(value), "%llu", (unsigned long long)p->epochs);
    (void)snprintf(
        note, sizeof(note), "%s steps",
        cli_grouped(run->result.metrics.step, number));
    cli_table_row(&t, "epochs", value, note);
    add_quality(run, &t);
    add_objective(run, &t);
    add_traffic(run, &t);
    add_memory(run, &t);
    add_break_even(run, &t);
    add_time(run, &t);
    cli_table_print(&t, stream);
}
