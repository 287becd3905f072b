// SPDX-License-Identifier: MIT
// The output of `laconic compare`: one row for runs that differ by their seed,
// what distinguishes the rows, and notes where they are hard to compare.
#include "cli/compare/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/compare/notes.h"
#include "cli/compare/settings.h"
#include "cli/plan/text.h"
#include "cli/report/table.h"
#include "cli/report/wrap.h"

enum { NUMBER_SIZE = 48, NAME_WIDTH = 26, COLUMNS_MAX = 10 };

// The metrics of the JSON.
static const cli_metric shown[] = {
    CLI_METRIC_TEST_ACCURACY,       CLI_METRIC_WORST_ACCURACY,
    CLI_METRIC_AVERAGED_ACCURACY,   CLI_METRIC_TEST_PERPLEXITY,
    CLI_METRIC_AVERAGED_PERPLEXITY, CLI_METRIC_TEST_LOSS,
    CLI_METRIC_TEST_EXAMPLES,       CLI_METRIC_TRAIN_LOSS,
    CLI_METRIC_PAYLOAD_BYTES,       CLI_METRIC_SECONDS,
};
enum { SHOWN = sizeof(shown) / sizeof(shown[0]) };

// A seed that is not exact as a number is its digits, as in metrics.
static cJSON *seed_json(const cli_run *run)
{
    char digits[NUMBER_SIZE];
    if (run->seed <= UINT64_C(1) << 53) {
        return cJSON_CreateNumber((double)run->seed);
    }
    (void)snprintf(digits, sizeof(digits), "%" PRIu64, run->seed);
    return cJSON_CreateString(digits);
}

static cJSON *run_json(const compare_runs *c, const cli_run *run)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "dir", run->folder);
    cJSON_AddStringToObject(o, "model", run->model);
    cJSON_AddStringToObject(o, "data", run->data);
    cJSON_AddStringToObject(o, "algorithm", run->algorithm);
    cJSON_AddItemToObject(o, "compressor", cli_json_text(run->compressor));
    cJSON_AddNumberToObject(o, "workers", run->workers);
    cJSON_AddStringToObject(o, "topology", run->topology);
    cJSON_AddItemToObject(o, "seed", seed_json(run));
    cJSON_AddNumberToObject(o, "epoch", cli_run_done(run));
    cJSON_AddNumberToObject(o, "epochs", (double)run->planned);
    cJSON_AddNumberToObject(o, "step", (double)cli_run_steps(run));
    for (size_t i = 0; i < SHOWN; i++) {
        cJSON_AddNumberToObject(
            o, cli_metric_key(shown[i]), cli_run_end(run, shown[i]));
    }
    cJSON_AddBoolToObject(o, "sampled", cli_run_is_sampled(run));
    cJSON_AddNumberToObject(
        o, "standard_error",
        compare_error(
            cli_run_end(run, CLI_METRIC_TEST_ACCURACY),
            cli_run_end(run, CLI_METRIC_TEST_EXAMPLES)));
    cJSON_AddStringToObject(o, "baseline", c->runs[0].folder);
    cJSON_AddNumberToObject(o, "times_fewer", compare_run_times_fewer(c, run));
    return o;
}

static cJSON *row_json(const compare_runs *c, size_t row)
{
    const compare_row r = c->rows[row];
    char name[COMPARE_NAME_SIZE];
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "name", compare_row_name(c, row, name));
    cJSON *const seeds = cJSON_AddArrayToObject(o, "seeds");
    cJSON *const folders = cJSON_AddArrayToObject(o, "dirs");
    for (size_t i = 0; i < r.count; i++) {
        const cli_run *const run = &c->runs[r.first + i];
        cJSON_AddItemToArray(seeds, seed_json(run));
        cJSON_AddItemToArray(folders, cJSON_CreateString(run->folder));
    }
    for (size_t i = 0; i < SHOWN; i++) {
        const compare_value value = compare_row_value(c, row, shown[i]);
        cJSON *const pair =
            cJSON_AddObjectToObject(o, cli_metric_key(shown[i]));
        cJSON_AddNumberToObject(pair, "mean", value.mean);
        cJSON_AddNumberToObject(pair, "spread", value.spread);
    }
    cJSON_AddNumberToObject(o, "times_fewer", compare_times_fewer(c, row));
    return o;
}

static bool is_in_array(const cJSON *array, const char *text)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, array)
    {
        if (strcmp(item->valuestring, text) == 0) {
            return true;
        }
    }
    return false;
}

// Adds the settings that differ between runs of the whole set.
static void add_differing(const compare_set *s, cJSON *names)
{
    static const char *const tasks[] = {"model", "data"};
    for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++) {
        for (size_t g = 1; g < s->group_count; g++) {
            if (!compare_setting_same(
                    s->groups[0].runs, s->groups[g].runs, tasks[i]) &&
                !is_in_array(names, tasks[i])) {
                cJSON_AddItemToArray(names, cJSON_CreateString(tasks[i]));
            }
        }
    }
    for (size_t g = 0; g < s->group_count; g++) {
        const compare_runs *const c = &s->groups[g];
        for (size_t i = 0; i < c->differing_count; i++) {
            if (!is_in_array(names, c->differing[i])) {
                cJSON_AddItemToArray(
                    names, cJSON_CreateString(c->differing[i]));
            }
        }
    }
}

cJSON *compare_report_json(const compare_set *s)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON *const runs = cJSON_AddArrayToObject(o, "runs");
    cJSON *const rows = cJSON_AddArrayToObject(o, "rows");
    for (size_t g = 0; g < s->group_count; g++) {
        const compare_runs *const c = &s->groups[g];
        for (size_t i = 0; i < c->count; i++) {
            cJSON_AddItemToArray(runs, run_json(c, &c->runs[i]));
        }
        for (size_t i = 0; i < c->row_count; i++) {
            cJSON_AddItemToArray(rows, row_json(c, i));
        }
    }
    add_differing(s, cJSON_AddArrayToObject(o, "differing"));
    return o;
}

// "0.3012", or "0.301+-0.002" of several runs; a large number is shorter. A
// number of a sample of the test set begins with ~.
static void add_value(
    cli_table *t, compare_value v, double scale, int digits, bool sampled)
{
    const double mean = scale * v.mean, spread = scale * v.spread;
    const char *const mark = sampled ? "~" : "";
    char text[NUMBER_SIZE];
    if (!isfinite(mean)) {
        cli_table_add(t, "-");
        return;
    }
    if (mean != 0 && (fabs(mean) < 0.01 || fabs(mean) >= 1e7)) {
        (void)snprintf(text, sizeof(text), "%.1e", mean);
    } else {
        (void)snprintf(
            text, sizeof(text), "%.*f",
            fabs(mean) < 1000 ? digits - isfinite(spread) : 0, mean);
    }
    if (!isfinite(spread)) {
        cli_table_add(t, "%s%s", mark, text);
    } else if (spread == 0 || (spread >= 0.0005 && spread < 100)) {
        cli_table_add(t, "%s%s+-%.*f", mark, text, digits - 1, spread);
    } else {
        cli_table_add(t, "%s%s+-%.0e", mark, text, spread);
    }
}

static void add_times(cli_table *t, double times)
{
    if (!isfinite(times)) {
        cli_table_add(t, "-");
    } else if (times >= 0.05 && times < 99999) {
        cli_table_add(t, "%.1f x", times);
    } else {
        cli_table_add(t, "%.0e x", times);
    }
}

// The columns of the table. All runs have those after the quality of the
// models: accuracies, or perplexities of a text.
typedef struct columns {
    bool epochs, text;
    char align[COLUMNS_MAX + 1];
} columns;

static columns columns_of(const compare_runs *c, bool epochs)
{
    columns found = {
        .epochs = epochs,
        .text = compare_is_text(c),
        .align = "lrrrrrrr",
    };
    found.align[strlen(found.align) - !epochs] = '\0';
    return found;
}

static void add_numbers(
    const compare_runs *c, const columns *of, size_t row, cli_table *t)
{
    static const cli_metric accuracies[] = {
        CLI_METRIC_TEST_ACCURACY, CLI_METRIC_AVERAGED_ACCURACY};
    static const cli_metric perplexities[] = {
        CLI_METRIC_TEST_PERPLEXITY, CLI_METRIC_AVERAGED_PERPLEXITY};
    char text[CLI_BYTES_SIZE], time[PLAN_TEXT_SIZE];
    const cli_run *const run = &c->runs[c->rows[row].first];
    const bool sampled = compare_row_is_sampled(c, row);
    const double bytes =
        compare_row_value(c, row, CLI_METRIC_PAYLOAD_BYTES).mean;
    const double seconds = compare_row_value(c, row, CLI_METRIC_SECONDS).mean;
    if (of->epochs) { // the same of all runs of a row
        cli_table_add(t, "%.6g", cli_run_done(run));
    }
    for (size_t i = 0; i < 2; i++) {
        const cli_metric metric = of->text ? perplexities[i] : accuracies[i];
        add_value(
            t, compare_row_value(c, row, metric), of->text ? 1 : 100, 2,
            sampled);
    }
    add_value(
        t, compare_row_value(c, row, CLI_METRIC_TEST_LOSS), 1, 4, sampled);
    cli_table_add(t, "%s", isfinite(bytes) ? cli_bytes(bytes, text) : "-");
    add_times(t, compare_times_fewer(c, row));
    cli_table_add(t, "%s", seconds >= 0 ? plan_seconds(seconds, time) : "-");
}

static void add_heading(const columns *of, cli_table *t)
{
    const char *const names[] = {
        of->epochs ? "epochs" : NULL,
        of->text ? "perplexity" : "accuracy %",
        "averaged",
        "loss",
        "bytes",
        "fewer",
        "time"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i] != NULL) {
            cli_table_add(t, "%s", names[i]);
        }
    }
}

// The columns of the terminal that are left for the names beside the numbers.
static size_t room_for_names(const compare_runs *c, const columns *of)
{
    cli_table t = cli_table_make(of->align + 1, NULL);
    add_heading(of, &t);
    for (size_t i = 0; i < c->row_count; i++) {
        add_numbers(c, of, i, &t);
    }
    const size_t used = cli_table_width(&t) + 2;
    cli_table_free(&t);
    return used < CLI_COLUMNS ? CLI_COLUMNS - used : 0;
}

// The columns of the longest name, at most NAME_WIDTH.
static size_t width_of_names(const compare_runs *c)
{
    char name[COMPARE_NAME_SIZE], cell[CLI_CELL_SIZE];
    cli_table t = cli_table_make("l", NULL);
    cli_table_add(&t, "run");
    for (size_t i = 0; i < c->row_count; i++) {
        (void)compare_row_name(c, i, name);
        cli_table_add(&t, "%s", cli_fitted(name, NAME_WIDTH, cell));
    }
    const size_t width = cli_table_width(&t);
    cli_table_free(&t);
    return width;
}

// The epochs have a column if they differ and the names still fit beside it.
static columns choose_columns(const compare_runs *c)
{
    const compare_range epochs = compare_epochs(c);
    const columns with = columns_of(c, true);
    return epochs.least < epochs.most &&
                   room_for_names(c, &with) >= width_of_names(c)
               ? with
               : columns_of(c, false);
}

static void print_numbers(const compare_runs *c, FILE *stream)
{
    const columns of = choose_columns(c);
    const size_t room = room_for_names(c, &of);
    char name[COMPARE_NAME_SIZE], cell[CLI_CELL_SIZE];
    cli_table t = cli_table_make(of.align, NULL);
    cli_table_add(&t, "run");
    add_heading(&of, &t);
    for (size_t i = 0; i < c->row_count; i++) {
        (void)compare_row_name(c, i, name);
        cli_table_add(&t, "%s", cli_fitted(name, room, cell));
        add_numbers(c, &of, i, &t);
    }
    cli_table_print(&t, stream);
}

// Adds a text as the second column, in as many rows as it takes.
static void add_wrapped(cli_table *t, const char *text, size_t width)
{
    char line[CLI_CELL_SIZE], cell[CLI_CELL_SIZE];
    for (bool first = true; first || *text != '\0'; first = false) {
        const size_t len = cli_line(text, width);
        if (!first) {
            cli_table_add(t, "%s", "");
        }
        (void)snprintf(line, sizeof(line), "%.*s", (int)len, text);
        cli_table_add(t, "%s", cli_fitted(line, width, cell));
        text += len + strspn(text + len, " ");
    }
}

static void print_differences(const compare_runs *c, FILE *stream)
{
    char name[COMPARE_NAME_SIZE], cell[CLI_CELL_SIZE];
    char text[COMPARE_DIFFERENCES_SIZE];
    if (c->differing_count == 0) {
        return;
    }
    const size_t room = CLI_COLUMNS - width_of_names(c) - 2;
    cli_table t = cli_table_make("ll", NULL);
    cli_table_add(&t, "run");
    cli_table_add(&t, "settings that differ");
    for (size_t i = 0; i < c->row_count; i++) {
        (void)compare_row_name(c, i, name);
        cli_table_add(&t, "%s", cli_fitted(name, NAME_WIDTH, cell));
        (void)compare_differences(c, &c->runs[c->rows[i].first], text);
        add_wrapped(&t, text, room);
    }
    (void)fputc('\n', stream);
    cli_table_print(&t, stream);
}

typedef struct note_output {
    FILE *stream;
    bool begun;
} note_output;

static void print_note(void *context, const char *note)
{
    note_output *const o = context;
    (void)fputs(o->begun ? "" : "\n", o->stream);
    o->begun = true;
    cli_wrap(note, 0, o->stream);
}

static void print_group(const compare_runs *c, FILE *stream)
{
    char title[COMPARE_TITLE_SIZE];
    cli_wrap(compare_title(c, title), 0, stream);
    (void)fputc('\n', stream);
    print_numbers(c, stream);
    print_differences(c, stream);
    note_output notes = {.stream = stream};
    compare_notes(c, print_note, &notes);
}

void compare_report_print(const compare_set *s, FILE *stream)
{
    if (s->group_count > 1) {
        (void)fprintf(
            stream, "%zu groups of runs, of different models or data\n\n",
            s->group_count);
    }
    for (size_t i = 0; i < s->group_count; i++) {
        (void)fputs(i > 0 ? "\n" : "", stream);
        print_group(&s->groups[i], stream);
    }
}

lac_status compare_report_folder(
    const char *folder, double uncompressed, FILE *stream)
{
    compare_set s;
    compare_set_open(&s);
    lac_status status = compare_set_add(&s, folder);
    if (status == LAC_OK) {
        status = compare_set_arrange(&s);
    }
    if (status == LAC_OK) {
        if (s.group_count == 1 && s.groups[0].row_count == 1) {
            s.groups[0].uncompressed = uncompressed;
        }
        compare_report_print(&s, stream);
    }
    compare_set_close(&s);
    return status;
}
