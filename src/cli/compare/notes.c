// SPDX-License-Identifier: MIT
// Titles and notes of compared runs.
#include "cli/compare/notes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/compare/settings.h"
#include "cli/report/table.h"

enum { SHARED_WIDTH = 60, NOTE_SIZE = 256 };

bool compare_is_text(const compare_runs *c)
{
    for (size_t i = 0; i < c->count; i++) {
        if (c->runs[i].text) {
            return true;
        }
    }
    return false;
}

const char *compare_title(const compare_runs *c, char text[COMPARE_TITLE_SIZE])
{
    static const struct {
        const char *name, *before, *after;
    } parts[] = {
        {"model", ", ", ""},          {"data", " on ", ""},
        {"workers", ", ", " worker"}, {"algorithm", ", ", ""},
        {"compressor", ", ", ""},     {"topology", ", ", ""},
        {"epochs", ", ", " epoch"},
    };
    size_t len = 0;
    *text = '\0';
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        char value[COMPARE_SETTING_SIZE], cell[CLI_CELL_SIZE];
        if (!compare_setting_differs(c, parts[i].name) &&
            compare_setting(&c->runs[0], parts[i].name, value) != NULL &&
            *value != '\0' && len < COMPARE_TITLE_SIZE) {
            len += (size_t)snprintf(
                text + len, COMPARE_TITLE_SIZE - len, "%s%s%s%s",
                len == 0 ? "" : parts[i].before,
                cli_fitted(value, SHARED_WIDTH, cell), parts[i].after,
                *parts[i].after != '\0' && strcmp(value, "1") != 0 ? "s" : "");
        }
    }
    return text;
}

static void note_unfinished(
    const compare_runs *c, compare_put *put, void *context)
{
    char note[NOTE_SIZE], name[COMPARE_NAME_SIZE], cell[CLI_CELL_SIZE];
    for (size_t i = 0; i < c->row_count; i++) {
        const cli_run *const run = &c->runs[c->rows[i].first];
        if (cli_run_done(run) < (double)run->planned) {
            (void)compare_row_name(c, i, name);
            (void)snprintf(
                note, sizeof(note), "%s has %.6g of %" PRIu64 " epochs",
                cli_fitted(name, SHARED_WIDTH, cell), cli_run_done(run),
                run->planned);
            put(context, note);
        }
    }
}

static compare_range range_with(compare_range range, double value, bool first)
{
    return (compare_range){
        first ? value : fmin(range.least, value),
        first ? value : fmax(range.most, value),
    };
}

compare_range compare_epochs(const compare_runs *c)
{
    compare_range range = {0};
    for (size_t i = 0; i < c->count; i++) {
        range = range_with(range, cli_run_done(&c->runs[i]), i == 0);
    }
    return range;
}

compare_range compare_steps(const compare_runs *c)
{
    compare_range range = {0};
    for (size_t i = 0; i < c->count; i++) {
        range = range_with(range, (double)cli_run_steps(&c->runs[i]), i == 0);
    }
    return range;
}

// A run that is shorter, or has larger batches, sends fewer bytes in any case.
static void note_lengths(const compare_runs *c, compare_put *put, void *context)
{
    char note[NOTE_SIZE], epochs[NOTE_SIZE / 4] = "", steps[NOTE_SIZE / 4] = "";
    const compare_range e = compare_epochs(c), s = compare_steps(c);
    if (e.least < e.most) {
        (void)snprintf(
            epochs, sizeof(epochs), "%.6g to %.6g epochs", e.least, e.most);
    }
    if (s.least < s.most) {
        (void)snprintf(
            steps, sizeof(steps), "%.15g to %.15g steps", s.least, s.most);
    }
    if (*epochs != '\0' || *steps != '\0') {
        (void)snprintf(
            note, sizeof(note),
            "the runs have %s%s%s; bytes, fewer and time are of whole runs",
            epochs, *epochs != '\0' && *steps != '\0' ? ", " : "", steps);
        put(context, note);
    }
}

static bool has_spread(const compare_runs *c)
{
    return c->row_count < c->count;
}

// The examples of the tests of the runs of a row; NaN if that is unknown.
static compare_range row_examples(const compare_runs *c, size_t row)
{
    compare_range range = {0};
    for (size_t i = 0; i < c->rows[row].count; i++) {
        const cli_run *const run = &c->runs[c->rows[row].first + i];
        range = range_with(
            range, cli_run_end(run, CLI_METRIC_TEST_EXAMPLES), i == 0);
    }
    return range;
}

// "~ few: accuracy on a sample of 1,000 examples, with a standard error of 1.1
// points".
static void note_sample(
    const compare_runs *c, size_t row, compare_put *put, void *context)
{
    char note[NOTE_SIZE], name[COMPARE_NAME_SIZE], cell[CLI_CELL_SIZE],
        count[CLI_GROUPED_SIZE] = "", error[NOTE_SIZE / 4] = "";
    const double examples = row_examples(c, row).least;
    const double accuracy =
        compare_row_value(c, row, CLI_METRIC_TEST_ACCURACY).mean;
    if (!(examples > 0)) {
        (void)snprintf(count, sizeof(count), "unknown size");
    } else {
        (void)cli_grouped((size_t)examples, count);
        if (!compare_is_text(c) && isfinite(accuracy)) {
            (void)snprintf(
                error, sizeof(error), ", with a standard error of %.2f points",
                100 * compare_error(accuracy, examples));
        }
    }
    (void)compare_row_name(c, row, name);
    (void)snprintf(
        note, sizeof(note), "~ %s: %s on a sample of %s%s%s",
        cli_fitted(name, SHARED_WIDTH, cell),
        compare_is_text(c) ? "perplexity" : "accuracy", count,
        examples > 0 ? (compare_is_text(c) ? " words" : " examples") : "",
        error);
    put(context, note);
}

// Runs that were tested on different parts of the test set.
static void note_tests(const compare_runs *c, compare_put *put, void *context)
{
    char note[NOTE_SIZE];
    double least = (double)NAN, most = (double)NAN;
    for (size_t i = 0; i < c->row_count; i++) {
        const compare_range range = row_examples(c, i);
        least = fmin(least, range.least);
        most = fmax(most, range.most);
        if (compare_row_is_sampled(c, i) &&
            isfinite(compare_row_value(c, i, CLI_METRIC_TEST_LOSS).mean)) {
            note_sample(c, i, put, context);
        }
    }
    if (least < most) {
        (void)snprintf(
            note, sizeof(note),
            "the models were tested with %.15g to %.15g examples", least, most);
        put(context, note);
    }
}

void compare_notes(const compare_runs *c, compare_put *put, void *context)
{
    char note[NOTE_SIZE], name[COMPARE_NAME_SIZE], cell[CLI_CELL_SIZE];
    if (c->row_count > 1) {
        (void)compare_row_name(c, 0, name);
        (void)snprintf(
            note, sizeof(note), "fewer: times fewer bytes than %s",
            cli_fitted(name, SHARED_WIDTH, cell));
        put(context, note);
    } else if (c->uncompressed > 0) {
        put(context, "fewer: times fewer bytes than without compression");
    }
    if (has_spread(c)) {
        put(context, "spread: standard deviation over runs that differ only by "
                     "their seed");
    }
    note_tests(c, put, context);
    note_lengths(c, put, context);
    note_unfinished(c, put, context);
}
