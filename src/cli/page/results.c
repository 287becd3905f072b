// SPDX-License-Identifier: MIT
// The results of runs: figures to remember, a table, and the split of time.
#include <math.h>
#include <stdlib.h>

#include "cli/compare/notes.h"
#include "cli/page/bars.h"
#include "cli/page/sections.h"
#include "cli/report/markup.h"
#include "cli/report/table.h"

// A run is as good as the baseline if its accuracy is at most one point lower,
// or its perplexity at most 5 % higher.
static const double POINT = 0.01, PART = 1.05;

enum { BEST_SIZE = 512, ABOUT_SIZE = 96 };

static compare_value quality(const compare_runs *c, size_t row)
{
    return compare_row_value(
        c, row,
        compare_is_text(c) ? CLI_METRIC_TEST_PERPLEXITY
                           : CLI_METRIC_TEST_ACCURACY);
}

static page_kind quality_kind(const compare_runs *c)
{
    return compare_is_text(c) ? PAGE_NUMBER : PAGE_PERCENT;
}

static bool is_as_good(const compare_runs *c, size_t row)
{
    const double own = quality(c, row).mean, first = quality(c, 0).mean;
    return compare_is_text(c) ? own <= PART * first : own >= first - POINT;
}

// By how much better one row is than another. NaN if one has no quality.
static double advantage(const compare_runs *c, size_t row, size_t than)
{
    const double gain = quality(c, row).mean - quality(c, than).mean;
    return compare_is_text(c) ? -gain : gain;
}

// What the quality of a row may be off by: the spread of its seeds, or the
// standard error of its test if that is larger.
static double noise(const compare_runs *c, size_t row)
{
    const compare_value v = quality(c, row);
    const double error = compare_error(
        v.mean, compare_row_value(c, row, CLI_METRIC_TEST_EXAMPLES).mean);
    const double tested = compare_is_text(c) || !isfinite(error) ? 0 : error;
    return fmax(tested, v.spread);
}

static void put_card(
    FILE *f, const char *figure, const char *about, const char *name)
{
    (void)fprintf(
        f, "<div class=\"card\"><b>%s</b><span>%s</span><i>", figure, about);
    cli_markup_text(f, name);
    (void)fputs("</i></div>\n", f);
}

// Writes the names of the rows that are as good as the best within the noise of
// both, and returns how many others there are.
static size_t name_best(
    const compare_runs *c, size_t best, char text[BEST_SIZE])
{
    char name[COMPARE_NAME_SIZE];
    size_t len = 0, others = 0;
    for (size_t i = 0; i < c->row_count; i++) {
        const bool close = i != best && advantage(c, best, i) <=
                                            fmax(noise(c, best), noise(c, i));
        others += close;
        if ((close || i == best) && len < BEST_SIZE) {
            len += (size_t)snprintf(
                text + len, BEST_SIZE - len, "%s%s", len == 0 ? "" : ", ",
                compare_row_name(c, i, name));
        }
    }
    return others;
}

static void put_best(FILE *f, const compare_runs *c)
{
    char text[PAGE_VALUE_SIZE], names[BEST_SIZE], about[ABOUT_SIZE];
    size_t best = 0;
    for (size_t i = 1; i < c->row_count; i++) {
        const bool better =
            isnan(quality(c, best).mean) || advantage(c, i, best) > 0;
        best = better ? i : best;
    }
    if (!isfinite(quality(c, best).mean)) {
        return;
    }
    const size_t others = name_best(c, best, names);
    (void)snprintf(
        about, sizeof(about), "%s%s",
        compare_is_text(c) ? "lowest perplexity" : "highest accuracy",
        others > 0 ? "; these differ by no more than their noise" : "");
    put_card(
        f, page_value(quality_kind(c), quality(c, best).mean, text), about,
        names);
}

static void put_fewest(FILE *f, const compare_runs *c)
{
    char figure[PAGE_VALUE_SIZE], name[COMPARE_NAME_SIZE];
    double most = 0;
    size_t fewest = 0;
    for (size_t i = 1; i < c->row_count; i++) {
        const double times = compare_times_fewer(c, i);
        if (is_as_good(c, i) && times > most) {
            most = times;
            fewest = i;
        }
    }
    if (most > 1) {
        (void)snprintf(figure, sizeof(figure), "%.1f \xc3\x97", most);
        put_card(
            f, figure,
            compare_is_text(c)
                ? "fewer bytes than the baseline, perplexity within 5 %"
                : "fewer bytes than the baseline, accuracy within one point",
            compare_row_name(c, fewest, name));
    }
}

static void put_cards(FILE *f, const compare_runs *c)
{
    char text[PAGE_VALUE_SIZE], name[COMPARE_NAME_SIZE];
    (void)fputs("<div class=\"cards\">\n", f);
    put_best(f, c);
    put_fewest(f, c);
    const double bytes = compare_row_value(c, 0, CLI_METRIC_PAYLOAD_BYTES).mean;
    if (c->row_count > 1 && isfinite(bytes)) {
        put_card(
            f, page_value(PAGE_BYTES, bytes, text), "sent by the baseline",
            compare_row_name(c, 0, name));
    }
    (void)fputs("</div>\n", f);
}

// Prints a cell with a mean and the spread of the seeds, which may be in a line
// of its own: "89.28 +- 0.39 %".
static void put_pair(FILE *f, compare_value v, page_kind kind, const char *mark)
{
    const bool percent = kind == PAGE_PERCENT;
    (void)fprintf(
        f,
        percent ? "<td class=\"n pair\">%s%.2f <span>\xc2\xb1 %.2f %%</span>"
                : "<td class=\"n pair\">%s%.4g <span>\xc2\xb1 %.2g</span>",
        mark, percent ? 100 * v.mean : v.mean,
        percent ? 100 * v.spread : v.spread);
    (void)fputs("</td>", f);
}

// Prints a cell, with ~ before the number of a sample of the test set. Bytes
// and times have no spread: it would measure the machine.
static void put_value(FILE *f, compare_value v, page_kind kind, bool sampled)
{
    char text[PAGE_VALUE_SIZE], cell[2 * PAGE_VALUE_SIZE];
    const char *const mark = sampled && isfinite(v.mean) ? "~" : "";
    if (isfinite(v.mean) && isfinite(v.spread) &&
        (kind == PAGE_PERCENT || kind == PAGE_NUMBER)) {
        put_pair(f, v, kind, mark);
        return;
    }
    (void)snprintf(
        cell, sizeof(cell), "%s%s", mark, page_value(kind, v.mean, text));
    page_cell(f, true, cell);
}

// The columns of numbers. A metric of CLI_METRICS is how many times fewer bytes
// were sent. Those of a test may be of a sample.
typedef struct column {
    const char *heading;
    cli_metric metric;
    page_kind kind;
    enum { OF_ALL, OF_IMAGES, OF_TEXTS } of;
    bool tested;
} column;

static const column columns[] = {
    {"accuracy", CLI_METRIC_TEST_ACCURACY, PAGE_PERCENT, OF_IMAGES, true},
    {"averaged model", CLI_METRIC_AVERAGED_ACCURACY, PAGE_PERCENT, OF_IMAGES,
     true},
    {"perplexity", CLI_METRIC_TEST_PERPLEXITY, PAGE_NUMBER, OF_TEXTS, true},
    {"averaged model", CLI_METRIC_AVERAGED_PERPLEXITY, PAGE_NUMBER, OF_TEXTS,
     true},
    {"test loss", CLI_METRIC_TEST_LOSS, PAGE_NUMBER, OF_ALL, true},
    {"training loss", CLI_METRIC_TRAIN_LOSS, PAGE_NUMBER, OF_ALL, false},
    {"bytes", CLI_METRIC_PAYLOAD_BYTES, PAGE_BYTES, OF_ALL, false},
    {"times fewer", CLI_METRICS, PAGE_NUMBER, OF_ALL, false},
    {"time", CLI_METRIC_SECONDS, PAGE_SECONDS, OF_ALL, false},
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static bool is_shown(const compare_runs *c, const column *of)
{
    return of->of == OF_ALL || compare_is_text(c) == (of->of == OF_TEXTS);
}

static void put_times(FILE *f, double times)
{
    char text[PAGE_VALUE_SIZE];
    (void)snprintf(
        text, sizeof(text), times < 1e6 ? "%.1f \xc3\x97" : "%.1e \xc3\x97",
        times);
    page_cell(f, true, isfinite(times) ? text : "-");
}

static void results_row(FILE *f, const compare_runs *c, size_t row)
{
    char name[COMPARE_NAME_SIZE], text[PAGE_VALUE_SIZE];
    const cli_run *const run = &c->runs[c->rows[row].first];
    (void)fprintf(f, "<tr class=\"r%zu\">", page_row_style(c, row));
    page_cell(f, false, compare_row_name(c, row, name));
    page_cell(f, true, page_value(PAGE_COUNT, cli_run_done(run), text));
    for (size_t i = 0; i < COLUMNS; i++) {
        const column *const of = &columns[i];
        if (!is_shown(c, of)) {
            continue;
        }
        if (of->metric == CLI_METRICS) {
            put_times(f, compare_times_fewer(c, row));
        } else {
            put_value(
                f, compare_row_value(c, row, of->metric), of->kind,
                of->tested && compare_row_is_sampled(c, row));
        }
    }
    (void)fputs("</tr>\n", f);
}

static void put_note(void *f, const char *note)
{
    (void)fputs("<li>", f);
    cli_markup_text(f, note);
    (void)fputs("</li>\n", f);
}

lac_status page_results(FILE *f, const compare_runs *c)
{
    page_runs_heading(f, c, "results", "Results");
    put_cards(f, c);
    page_table(f);
    page_column(f, false, "run");
    page_column(f, true, "epoch");
    for (size_t i = 0; i < COLUMNS; i++) {
        if (is_shown(c, &columns[i])) {
            page_column(f, true, columns[i].heading);
        }
    }
    page_table_body(f);
    for (size_t i = 0; i < c->row_count; i++) {
        results_row(f, c, i);
    }
    page_table_end(f);
    (void)fputs("<ul class=\"notes\">\n", f);
    compare_notes(c, put_note, f);
    (void)fputs("</ul>\n", f);
    return LAC_OK;
}

static lac_status put_time_bars(FILE *f, const compare_runs *c)
{
    static const cli_metric parts[] = {
        CLI_METRIC_COMPUTE_SECONDS, CLI_METRIC_COMPRESS_SECONDS,
        CLI_METRIC_WAIT_SECONDS, CLI_METRIC_TEST_SECONDS};
    static const char *const names[] = {
        "computation", "compression", "waiting", "testing", NULL};
    page_bar *const bars = calloc(c->row_count, sizeof(*bars));
    char(*const labels)[COMPARE_NAME_SIZE] =
        calloc(c->row_count, sizeof(*labels));
    const bool good = bars != NULL && labels != NULL;
    size_t count = 0;
    for (size_t i = 0; good && i < c->row_count; i++) {
        if (c->runs[c->rows[i].first].count == 0) {
            continue;
        }
        page_bar *const bar = &bars[count++];
        bar->name = compare_row_name(c, i, labels[i]);
        for (size_t k = 0; k < PAGE_PARTS_MAX; k++) {
            bar->parts[k] = compare_row_value(c, i, parts[k]).mean;
        }
    }
    if (good) {
        page_bars_put(f, "Split of time", names, bars, count);
    }
    free(bars);
    free(labels);
    return good ? LAC_OK : lac_fail(LAC_ERR_NOMEM, "no memory for bars");
}

lac_status page_time(FILE *f, const compare_runs *c)
{
    bool any = false;
    for (size_t i = 0; i < c->count; i++) {
        any = any || cli_run_last(&c->runs[i], CLI_METRIC_SECONDS) > 0;
    }
    if (!any) {
        return LAC_OK;
    }
    page_runs_heading(f, c, "time", "Time");
    (void)fputs(
        "<p>Of a mean worker, on the machine and network of the run. "
        "Computation that overlaps with the exchange is counted in "
        "both.</p>\n",
        f);
    return put_time_bars(f, c);
}
