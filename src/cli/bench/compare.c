// SPDX-License-Identifier: MIT
// A comparison is a list of figures: three of each compressor, one of each
// algorithm.
#include "cli/bench/compare.h"

#include <math.h>
#include <stdio.h>

#include "cli/report/processor.h"
#include "cli/report/table.h"
#include "cli/report/wrap.h"

enum {
    FIGURES_MAX = (CLI_BENCH_FIGURES + 1) * CLI_BENCH_MAX,
    LINE_SIZE = 512,
    PATH_COLUMNS = 48,
    VERSION_COLUMNS = 16,
};

// Larger numbers have an exponent.
#define WIDE 1e6

static const char *const figure_names[CLI_BENCH_FIGURES] = {
    "encode", "decode-add", "with memory"};

static const char *const figure_keys[CLI_BENCH_FIGURES] = {
    "encode_memcpys", "decode_add_memcpys", "encode_add_memcpys"};

typedef struct figure {
    const cli_bench_row *row;
    size_t index; // of a compressor's figure
    double then, now;
} figure;

typedef struct figures {
    figure list[FIGURES_MAX];
    size_t count;
    size_t slower;
} figures;

static bool is_slower(double then, double now)
{
    return now > (1 + CLI_BENCH_LIMIT) * then;
}

static bool is_faster(double then, double now)
{
    return now < (1 - CLI_BENCH_LIMIT) * then;
}

// Returns figure `index` of a result, in the order of a row.
static double result_figure(const cli_bench_result *r, size_t index)
{
    const cli_bench_time *const times[CLI_BENCH_FIGURES] = {
        &r->encode, &r->decode_add, &r->encode_add};
    return cli_bench_memcpys(times[index]);
}

static double step_figure(const cli_bench_step *s)
{
    return s->seconds / s->memcpy;
}

bool cli_bench_entry_is_slower(
    const cli_bench_row *row, const cli_bench_result *result)
{
    bool slower = false;
    for (size_t i = 0; i < CLI_BENCH_FIGURES; i++) {
        slower = slower || is_slower(row->memcpys[i], result_figure(result, i));
    }
    return slower;
}

bool cli_bench_step_is_slower(
    const cli_bench_row *row, const cli_bench_step *step)
{
    return is_slower(row->memcpys[0], step_figure(step));
}

static void improve_time(cli_bench_time *best, const cli_bench_time *again)
{
    if (cli_bench_memcpys(again) < cli_bench_memcpys(best)) {
        *best = *again;
    }
}

void cli_bench_result_improve(
    cli_bench_result *best, const cli_bench_result *again)
{
    improve_time(&best->encode, &again->encode);
    improve_time(&best->decode_add, &again->decode_add);
    improve_time(&best->encode_add, &again->encode_add);
}

void cli_bench_step_improve(cli_bench_step *best, const cli_bench_step *again)
{
    if (step_figure(again) < step_figure(best)) {
        best->seconds = again->seconds;
        best->memcpy = again->memcpy;
    }
}

static void add_figure(
    figures *f, const cli_bench_row *row, size_t index, double now)
{
    const double then = row->memcpys[index];
    f->list[f->count++] = (figure){row, index, then, now};
    f->slower += is_slower(then, now);
}

static void list_figures(const cli_bench_comparison *c, figures *f)
{
    const cli_bench_report *const r = c->report;
    f->count = 0;
    f->slower = 0;
    for (size_t i = 0; i < r->count; i++) {
        for (size_t k = 0; k < CLI_BENCH_FIGURES; k++) {
            add_figure(
                f, c->entries[i], k, result_figure(&r->entries[i].result, k));
        }
    }
    for (size_t i = 0; i < r->step_count; i++) {
        add_figure(f, c->steps[i], 0, step_figure(&r->steps[i]));
    }
}

static double change_of(const figure *f)
{
    return f->now / f->then - 1;
}

static cJSON *figure_json(const figure *f)
{
    const cli_bench_row *const row = f->row;
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "spec", row->spec);
    if (row->is_algorithm) {
        cJSON_AddItemToObject(o, "compressor", cli_json_text(row->compressor));
        cJSON_AddStringToObject(o, "layout", row->layout);
        cJSON_AddNumberToObject(o, "degree", row->degree);
    }
    cJSON_AddStringToObject(
        o, "figure",
        row->is_algorithm ? "memcpy_ratio" : figure_keys[f->index]);
    cJSON_AddNumberToObject(o, "then", f->then);
    cJSON_AddNumberToObject(o, "now", f->now);
    cJSON_AddNumberToObject(o, "change", change_of(f));
    cJSON_AddBoolToObject(o, "slower", is_slower(f->then, f->now));
    return o;
}

cJSON *cli_bench_comparison_json(const cli_bench_comparison *c)
{
    const cli_bench_saved *const saved = c->saved;
    figures f;
    list_figures(c, &f);
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "file", saved->path);
    cJSON_AddStringToObject(o, "version", saved->version);
    cJSON_AddStringToObject(o, "kernels", saved->kernels);
    cJSON_AddBoolToObject(o, "prefetch", saved->prefetch);
    cJSON_AddNumberToObject(o, "threads", (double)saved->threads);
    cJSON_AddNumberToObject(o, "runs", (double)saved->runs);
    cJSON_AddNumberToObject(o, "limit", CLI_BENCH_LIMIT);
    cJSON_AddNumberToObject(o, "slower", (double)f.slower);
    cJSON *const list = cJSON_AddArrayToObject(o, "figures");
    for (size_t i = 0; i < f.count; i++) {
        cJSON_AddItemToArray(list, figure_json(&f.list[i]));
    }
    return o;
}

// "natural, encode", or "choco with sign of lenet, degree 4"
static void add_figure_name(cli_table *t, const figure *f)
{
    const cli_bench_row *const row = f->row;
    char degree[CLI_CELL_SIZE] = "", layout[CLI_CELL_SIZE];
    if (!row->is_algorithm) {
        cli_table_add(t, "%s, %s", row->spec, figure_names[f->index]);
        return;
    }
    if (row->degree > 1) {
        (void)snprintf(degree, sizeof(degree), ", degree %u", row->degree);
    }
    cli_table_add(
        t, "%s%s%s of %s%s", row->spec, row->compressor == NULL ? "" : " with ",
        row->compressor == NULL ? "" : row->compressor,
        cli_fitted(row->layout, PATH_COLUMNS, layout), degree);
}

// Any file may be compared with, and its numbers may be of any size.
static void add_memcpys(cli_table *t, double value)
{
    cli_table_add(t, value < WIDE ? "%.2f" : "%.0e", value);
}

static void add_change(cli_table *t, double percent)
{
    cli_table_add(t, percent < WIDE ? "%+.1f %%" : "%+.0e %%", percent);
}

static void print_figures(const figures *f)
{
    cli_table t = cli_table_make("lrrrl", NULL);
    cli_table_add(&t, "memcpys");
    cli_table_add(&t, "then");
    cli_table_add(&t, "now");
    cli_table_add(&t, "change");
    cli_table_add(&t, "%s", "");
    for (size_t i = 0; i < f->count; i++) {
        const figure *const one = &f->list[i];
        add_figure_name(&t, one);
        add_memcpys(&t, one->then);
        add_memcpys(&t, one->now);
        add_change(&t, 100 * change_of(one));
        cli_table_add(
            &t, "%s",
            is_slower(one->then, one->now)   ? "slower"
            : is_faster(one->then, one->now) ? "faster"
                                             : "");
    }
    cli_table_print(&t, stdout);
}

static void compare_add_run(
    cli_table *t, const char *when, const char *version, const char *kernels,
    bool prefetch, size_t runs)
{
    cli_table_add(t, "%s", when);
    cli_table_add(
        t, "laconic %s, %s kernels %s prefetch, medians of %zu run%s", version,
        kernels, prefetch ? "with" : "without", runs, runs == 1 ? "" : "s");
}

static void compare_print_runs(const cli_bench_comparison *c)
{
    char version[CLI_CELL_SIZE], path[CLI_CELL_SIZE];
    char processor[CLI_PROCESSOR_SIZE], line[LINE_SIZE];
    const cli_bench_saved *const s = c->saved;
    const cli_bench_report *const r = c->report;
    cli_table t = cli_table_make("ll", NULL);
    cli_processor(processor);
    (void)snprintf(
        line, sizeof(line), "%s, compared with %s", processor,
        cli_fitted(s->path, PATH_COLUMNS, path));
    cli_wrap(line, 0, stdout);
    compare_add_run(
        &t, "then", cli_fitted(s->version, VERSION_COLUMNS, version),
        s->kernels, s->prefetch, (size_t)s->runs);
    compare_add_run(&t, "now", lac_version(), r->kernels, r->prefetch, r->runs);
    cli_table_print(&t, stdout);
    printf("\n");
}

void cli_bench_comparison_print(const cli_bench_comparison *c)
{
    char line[LINE_SIZE];
    figures f;
    list_figures(c, &f);
    compare_print_runs(c);
    print_figures(&f);
    (void)snprintf(
        line, sizeof(line),
        "Figures are the time divided by that of a memcpy of the same values; "
        "less is faster. What was more than %.0f %% slower was measured once "
        "more, and the faster result counts.%s",
        100 * CLI_BENCH_LIMIT,
        f.slower == 0 ? " Nothing is slower by more than that." : "");
    printf("\n");
    cli_wrap(line, 0, stdout);
}

lac_status cli_bench_comparison_check(const cli_bench_comparison *c)
{
    figures f;
    list_figures(c, &f);
    return f.slower == 0
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_INVALID,
                     "bench: %zu of %zu figures %s more than %.0f %% slower "
                     "than in %s",
                     f.slower, f.count, f.slower == 1 ? "is" : "are",
                     100 * CLI_BENCH_LIMIT, c->saved->path);
}
