// SPDX-License-Identifier: MIT
// Reads the runs, and finds goals that are worth a column.
#include "cli/plan/runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/plan/run_plot.h"

// 100 times 0.57 is less than 57.
static const double ROUNDING = 1e-9;

// Curves of other data have nothing in common.
static lac_status check_task(const plan_runs *r, size_t i)
{
    const cli_run *const first = &r->runs[0].trained;
    const cli_run *const other = &r->runs[i].trained;
    return strcmp(first->data, other->data) == 0 && first->text == other->text
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_INVALID,
                     "%s: was trained on %s, expected %s as %s", other->folder,
                     other->data, first->data, first->folder);
}

// "90%" is an accuracy, "120" a perplexity.
static lac_status parse_goal(const plan_runs *r, const char *text, double *out)
{
    char *end = NULL;
    const double value = strtod(text, &end);
    const bool accuracy = strcmp(end, "%") == 0;
    const bool number = end != text && isfinite(value) && value > 0;
    if (!number || accuracy == plan_runs_is_text(r) ||
        (accuracy ? value > 100 : *end != '\0')) {
        return lac_fail(
            LAC_ERR_INVALID, "--goal is \"%.40s\", expected %s", text,
            plan_runs_is_text(r)
                ? "a perplexity, such as 120: the runs are of a text"
                : "an accuracy up to 100%, such as 90%");
    }
    *out = value;
    return LAC_OK;
}

static bool is_repeated(const cli_texts *folders, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (strcmp(folders->items[i], folders->items[index]) == 0) {
            return true;
        }
    }
    return false;
}

static lac_status add_folder(
    plan_runs *r, const char *folder, const plan_run_options *common)
{
    const size_t i = r->count++;
    r->options[i] = *common;
    r->options[i].folder = folder;
    LAC_TRY(plan_run_open(&r->runs[i], &r->options[i]));
    return check_task(r, i);
}

lac_status plan_runs_open(
    plan_runs *r, const cli_texts *folders, const plan_run_options *common,
    const char *goal)
{
    *r = (plan_runs){
        .options = calloc(folders->count, sizeof(*r->options)),
        .runs = calloc(folders->count, sizeof(*r->runs)),
        .goal = (double)NAN,
    };
    if (r->options == NULL || r->runs == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "no memory for %zu runs", folders->count);
    }
    for (size_t i = 0; i < folders->count; i++) {
        if (!is_repeated(folders, i)) {
            LAC_TRY(add_folder(r, folders->items[i], common));
        }
    }
    return *goal == '\0' ? LAC_OK : parse_goal(r, goal, &r->goal);
}

void plan_runs_close(plan_runs *r)
{
    for (size_t i = 0; i < r->count; i++) {
        plan_run_close(&r->runs[i]);
    }
    free(r->options);
    free(r->runs);
    *r = (plan_runs){0};
}

bool plan_runs_is_text(const plan_runs *r)
{
    return r->runs[0].trained.text;
}

double plan_run_seconds_to(const plan_run *run, double goal)
{
    for (size_t i = 0; i < run->trained.count; i++) {
        const cli_run_epoch *const e = &run->trained.epochs[i];
        const double value = plan_run_value(run, e);
        if (run->trained.text ? value <= goal + ROUNDING
                              : value >= goal - ROUNDING) {
            return plan_run_seconds(run, e);
        }
    }
    return (double)NAN;
}

// The best value of all tests, and the worst of the first ones.
typedef struct extent {
    double best, worst;
} extent;

static extent find_extent(const plan_runs *r)
{
    const bool text = plan_runs_is_text(r);
    extent found = {(double)NAN, (double)NAN};
    for (size_t i = 0; i < r->count; i++) {
        const plan_run *const run = &r->runs[i];
        for (size_t k = 0; k < run->trained.count; k++) {
            const double value = plan_run_value(run, &run->trained.epochs[k]);
            found.best =
                text ? fmin(found.best, value) : fmax(found.best, value);
            if (k == 0) {
                found.worst =
                    text ? fmax(found.worst, value) : fmin(found.worst, value);
            }
        }
    }
    return found;
}

// The least of 1, 2, 5, 10, 20 and so on that is at least `least`.
static double round_up(double least)
{
    static const double factors[] = {1, 2, 5, 10};
    const double power = pow(10, floor(log10(least)));
    size_t i = 0;
    while (factors[i] * power < least) {
        i++;
    }
    return factors[i] * power;
}

// Multiples of a round number up to the best accuracy.
static size_t accuracy_levels(extent e, double out[PLAN_LEVELS_MAX])
{
    const double span = e.best - e.worst;
    if (!(span > 0)) {
        return 0;
    }
    const double step = round_up(span / PLAN_LEVELS_MAX);
    const double last = floor((e.best + ROUNDING) / step);
    size_t count = 0;
    while (count < PLAN_LEVELS_MAX && (last - (double)count) * step > e.worst) {
        count++;
    }
    for (size_t i = 0; i < count; i++) {
        out[i] = (last - (double)(count - 1 - i)) * step;
    }
    return count;
}

// The round numbers next to the best perplexity, which falls by factors.
static size_t perplexity_levels(extent e, double out[PLAN_LEVELS_MAX])
{
    static const double factors[] = {1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8};
    enum { FACTORS = sizeof(factors) / sizeof(factors[0]) };
    double levels[PLAN_LEVELS_MAX];
    size_t count = 0;
    if (!(e.best >= 1) || !(e.worst > e.best)) {
        return 0;
    }
    double power = pow(10, floor(log10(e.best)));
    for (size_t i = 0; count < PLAN_LEVELS_MAX; i++) {
        power *= i > 0 && i % FACTORS == 0 ? 10 : 1;
        const double level = factors[i % FACTORS] * power;
        if (level >= e.worst) {
            break;
        }
        if (level >= e.best) {
            levels[count++] = level;
        }
    }
    for (size_t i = 0; i < count; i++) {
        out[i] = levels[count - 1 - i];
    }
    return count;
}

size_t plan_runs_levels(const plan_runs *r, double out[PLAN_LEVELS_MAX])
{
    if (!isnan(r->goal)) {
        out[0] = r->goal;
        return 1;
    }
    const extent e = find_extent(r);
    return plan_runs_is_text(r) ? perplexity_levels(e, out)
                                : accuracy_levels(e, out);
}

// The bytes up to the last slash that the folders of all runs share.
static size_t shared_bytes(const plan_runs *r)
{
    const char *const first = r->options[0].folder;
    size_t shared = 0;
    for (size_t len = 0; first[len] != '\0'; len++) {
        for (size_t i = 1; i < r->count; i++) {
            const char *const other = r->options[i].folder;
            if (strncmp(first, other, len + 1) != 0 || other[len + 1] == '\0') {
                return shared;
            }
        }
        shared = first[len] == '/' && first[len + 1] != '\0' ? len + 1 : shared;
    }
    return shared;
}

const char *plan_runs_name(const plan_runs *r, size_t i)
{
    return r->options[i].folder + shared_bytes(r);
}
