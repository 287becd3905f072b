// SPDX-License-Identifier: MIT
// Collects runs and makes groups and rows of them.
#include "cli/compare/runs.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/compare/settings.h"
#include "cli/options/spec.h"
#include "cli/report/table.h"
#include "cli/train/seeds.h"
#include "data/file.h"

enum { PATH_COLUMNS = 60 };

static lac_status runs_no_memory(size_t count)
{
    return lac_fail(LAC_ERR_NOMEM, "no memory for %zu runs", count);
}

void compare_set_open(compare_set *s)
{
    *s = (compare_set){0};
}

void compare_set_close(compare_set *s)
{
    for (size_t i = 0; i < s->count; i++) {
        cli_run_close(&s->runs[i]);
    }
    for (size_t i = 0; i < s->group_count; i++) {
        free(s->groups[i].rows);
        free(s->groups[i].differing);
    }
    free(s->runs);
    free(s->groups);
    *s = (compare_set){0};
}

static bool is_same_folder(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 &&
           of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

static lac_status add_run(compare_set *s, const char *folder)
{
    for (size_t i = 0; i < s->count; i++) {
        if (is_same_folder(s->runs[i].folder, folder)) {
            return LAC_OK;
        }
    }
    cli_run *const runs = realloc(s->runs, (s->count + 1) * sizeof(*runs));
    if (runs == NULL) {
        return runs_no_memory(s->count + 1);
    }
    s->runs = runs;
    return cli_run_open(&runs[s->count++], folder);
}

static lac_status add_seeds(compare_set *s, const char *folder, uint64_t seed)
{
    char path[DATA_PATH_SIZE];
    do {
        LAC_TRY(cli_seeds_folder(folder, seed, path));
        LAC_TRY(add_run(s, path));
    } while (seed < UINT64_MAX && cli_seeds_next(folder, seed + 1, &seed));
    return LAC_OK;
}

static bool holds_run(const char *folder)
{
    char manifest[DATA_PATH_SIZE];
    uint64_t seed = 0;
    return data_path_join(manifest, folder, "manifest.json") == LAC_OK &&
           (data_is_file(manifest) || cli_seeds_next(folder, 0, &seed));
}

static int runs_is_name(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

// Counts the folders in a folder that hold runs, and adds these in the order of
// their names unless `s` is NULL.
static lac_status add_inner(
    compare_set *s, const char *folder, size_t *count_out)
{
    struct dirent **names = NULL;
    const int count = scandir(folder, &names, runs_is_name, alphasort);
    lac_status status = LAC_OK;
    *count_out = 0;
    for (int i = 0; i < count; i++) {
        char path[DATA_PATH_SIZE];
        if (status == LAC_OK &&
            data_path_join(path, folder, names[i]->d_name) == LAC_OK &&
            holds_run(path)) {
            status = s == NULL ? LAC_OK : compare_set_add(s, path);
            ++*count_out;
        }
        free(names[i]);
    }
    free(names);
    return status;
}

lac_status compare_set_add(compare_set *s, const char *folder)
{
    char path[DATA_PATH_SIZE], manifest[DATA_PATH_SIZE];
    size_t len = strlen(folder), inner = 0;
    uint64_t seed = 0;
    while (len > 1 && folder[len - 1] == '/') {
        len--;
    }
    if (len >= sizeof(path)) {
        return cli_run_file(folder, "manifest.json", path);
    }
    memcpy(path, folder, len);
    path[len] = '\0';
    LAC_TRY(data_path_join(manifest, path, "manifest.json"));
    if (data_is_file(manifest)) {
        return add_run(s, path);
    }
    if (cli_seeds_next(path, 0, &seed)) {
        return add_seeds(s, path, seed);
    }
    LAC_TRY(add_inner(s, path, &inner));
    return inner > 0 ? LAC_OK : add_run(s, path); // names what is missing
}

lac_status compare_set_name_baseline(compare_set *s, const char *folder)
{
    if (*folder != '\0') {
        LAC_TRY(compare_set_add(s, folder));
        s->named = s->count;
    }
    return LAC_OK;
}

bool compare_is_no_run(const char *path)
{
    size_t inner = 0;
    return data_is_file(path) ||
           (data_is_folder(path) && !holds_run(path) &&
            add_inner(NULL, path, &inner) == LAC_OK && inner == 0);
}

void compare_skip(const char *path)
{
    char cell[CLI_CELL_SIZE];
    (void)fprintf(
        stderr, "laconic: %s is no run of `laconic train`, skipped\n",
        cli_fitted(path, PATH_COLUMNS, cell));
}

// The length of the folder above that of a run of --seeds; 0 for others.
static size_t seeds_folder(const cli_run *run)
{
    const char *const slash = strrchr(run->folder, '/');
    return slash != NULL && cli_seeds_is_name(slash + 1)
               ? (size_t)(slash - run->folder)
               : 0;
}

// Whether two runs may share a row: not if they are runs of --seeds in
// different folders, or only one of them is.
static bool may_share_row(const cli_run *a, const cli_run *b)
{
    const size_t len = seeds_folder(a);
    return len == seeds_folder(b) && strncmp(a->folder, b->folder, len) == 0;
}

// Whether a run belongs to a row: another seed, and all else the same.
static bool belongs(
    const compare_runs *c, const cli_run *run, const size_t *row_of, size_t row,
    size_t end)
{
    for (size_t i = 0; i < end; i++) {
        const cli_run *const other = &c->runs[i];
        if (row_of[i] == row &&
            (other->seed == run->seed || !may_share_row(other, run) ||
             other->count != run->count ||
             cli_run_done(other) != cli_run_done(run) ||
             !compare_settings_same(other, run))) {
            return false;
        }
    }
    return true;
}

// Writes the row of every run, and returns the number of rows.
static size_t find_rows(const compare_runs *c, size_t *row_of)
{
    size_t rows = 0;
    for (size_t i = 0; i < c->count; i++) {
        size_t row = 0;
        while (row < rows && !belongs(c, &c->runs[i], row_of, row, i)) {
            row++;
        }
        row_of[i] = row;
        rows += row == rows;
    }
    return rows;
}

// Whether two runs can be compared: the same model on the same data.
static bool is_same_task(const cli_run *a, const cli_run *b)
{
    return strcmp(a->model, b->model) == 0 && strcmp(a->data, b->data) == 0;
}

// Writes the group of every run, and returns the number of groups.
static size_t find_groups(const compare_set *s, size_t *group_of)
{
    size_t groups = 0;
    for (size_t i = 0; i < s->count; i++) {
        size_t same = 0;
        while (same < i && !is_same_task(&s->runs[same], &s->runs[i])) {
            same++;
        }
        group_of[i] = same < i ? group_of[same] : groups++;
    }
    return groups;
}

static bool is_uncompressed(const cli_run *run)
{
    return run->compressor == NULL && cli_spec_is_exact(run->algorithm);
}

// Makes the row of the baseline the first one.
static void move_baseline(const compare_runs *c, size_t *row_of)
{
    size_t first = 0;
    while (first < c->count &&
           !(is_uncompressed(&c->runs[first]) && c->runs[first].count > 0)) {
        first++;
    }
    const size_t baseline = first < c->count ? row_of[first] : 0;
    for (size_t i = 0; i < c->count; i++) {
        row_of[i] = row_of[i] == baseline  ? 0
                    : row_of[i] < baseline ? row_of[i] + 1
                                           : row_of[i];
    }
}

// Sorts runs by the number of each, those with the same one in their order.
static void sort_runs(
    cli_run *runs, size_t count, const size_t *number_of, size_t numbers,
    cli_run *sorted)
{
    size_t done = 0;
    for (size_t number = 0; number < numbers; number++) {
        for (size_t i = 0; i < count; i++) {
            if (number_of[i] == number) {
                sorted[done++] = runs[i];
            }
        }
    }
    memcpy(runs, sorted, count * sizeof(*runs));
}

// Memory to arrange runs.
typedef struct arrangement {
    size_t *number_of;
    cli_run *sorted;
} arrangement;

// Makes the rows of a group, whose runs begin at `runs`.
static lac_status arrange_group(
    compare_runs *c, cli_run *runs, bool named, const arrangement *a)
{
    c->rows = calloc(c->count, sizeof(*c->rows));
    if (c->rows == NULL) {
        return runs_no_memory(c->count);
    }
    c->runs = runs;
    c->row_count = find_rows(c, a->number_of);
    if (!named) {
        move_baseline(c, a->number_of);
    }
    for (size_t i = 0; i < c->count; i++) {
        c->rows[a->number_of[i]].count++;
    }
    for (size_t i = 1; i < c->row_count; i++) {
        c->rows[i].first = c->rows[i - 1].first + c->rows[i - 1].count;
    }
    sort_runs(runs, c->count, a->number_of, c->row_count, a->sorted);
    return compare_settings_find(c);
}

static lac_status arrange_groups(compare_set *s, const arrangement *a)
{
    const size_t groups = find_groups(s, a->number_of);
    size_t named = 0, first = 0, rows = 0;
    s->groups = calloc(groups, sizeof(*s->groups));
    if (s->groups == NULL) {
        return runs_no_memory(s->count);
    }
    s->group_count = groups;
    for (size_t i = 0; i < s->count; i++) {
        s->groups[a->number_of[i]].count++;
        if (i < s->named && a->number_of[i] >= named) {
            named = a->number_of[i] + 1;
        }
    }
    sort_runs(s->runs, s->count, a->number_of, groups, a->sorted);
    for (size_t i = 0; i < groups; i++) {
        compare_runs *const c = &s->groups[i];
        c->group = i;
        c->earlier_rows = rows;
        // The runs of the baseline are the first, and so are their groups.
        LAC_TRY(arrange_group(c, s->runs + first, i < named, a));
        first += c->count;
        rows += c->row_count;
    }
    return LAC_OK;
}

lac_status compare_set_arrange(compare_set *s)
{
    if (s->count == 0) {
        return LAC_OK;
    }
    const arrangement a = {
        .number_of = calloc(s->count, sizeof(*a.number_of)),
        .sorted = malloc(s->count * sizeof(*a.sorted)),
    };
    const lac_status status = a.number_of == NULL || a.sorted == NULL
                                  ? runs_no_memory(s->count)
                                  : arrange_groups(s, &a);
    free(a.number_of);
    free(a.sorted);
    return status;
}

compare_value compare_row_value(
    const compare_runs *c, size_t row, cli_metric metric)
{
    const compare_row r = c->rows[row];
    double sum = 0, squares = 0;
    for (size_t i = 0; i < r.count; i++) {
        sum += cli_run_end(&c->runs[r.first + i], metric);
    }
    const double mean = sum / (double)r.count;
    for (size_t i = 0; i < r.count; i++) {
        const double away = cli_run_end(&c->runs[r.first + i], metric) - mean;
        squares += away * away;
    }
    return (compare_value){
        .mean = mean,
        .spread =
            r.count < 2 ? (double)NAN : sqrt(squares / (double)(r.count - 1)),
    };
}

bool compare_row_is_sampled(const compare_runs *c, size_t row)
{
    const compare_row r = c->rows[row];
    for (size_t i = 0; i < r.count; i++) {
        if (cli_run_is_sampled(&c->runs[r.first + i])) {
            return true;
        }
    }
    return false;
}

double compare_error(double accuracy, double examples)
{
    return sqrt(accuracy * (1 - accuracy) / examples);
}

// Bytes of models of different sizes have no ratio that means anything.
static double runs_times_fewer(
    const compare_runs *c, const cli_run *run, double own)
{
    const double all =
        c->uncompressed > 0
            ? c->uncompressed
            : compare_row_value(c, 0, CLI_METRIC_PAYLOAD_BYTES).mean;
    return run->parameters == c->runs[0].parameters && all > 0 && own > 0
               ? all / own
               : (double)NAN;
}

double compare_times_fewer(const compare_runs *c, size_t row)
{
    return runs_times_fewer(
        c, &c->runs[c->rows[row].first],
        compare_row_value(c, row, CLI_METRIC_PAYLOAD_BYTES).mean);
}

double compare_run_times_fewer(const compare_runs *c, const cli_run *run)
{
    return runs_times_fewer(
        c, run, cli_run_last(run, CLI_METRIC_PAYLOAD_BYTES));
}

// The length of the folders, up to a slash, that all runs are in.
static size_t common_folder(const compare_runs *c)
{
    const char *const first = c->runs[0].folder;
    const char *const slash = strrchr(first, '/');
    size_t len = slash == NULL ? 0 : (size_t)(slash - first) + 1;
    for (size_t i = 1; i < c->count; i++) {
        while (len > 0 && (strncmp(first, c->runs[i].folder, len) != 0 ||
                           first[len - 1] != '/')) {
            len--;
        }
    }
    return len;
}

const char *compare_row_name(
    const compare_runs *c, size_t row, char text[COMPARE_NAME_SIZE])
{
    const compare_row r = c->rows[row];
    const size_t skip = common_folder(c);
    const char *const first = c->runs[r.first].folder;
    size_t len = strlen(first);
    for (size_t i = 1; i < r.count; i++) {
        while (strncmp(first, c->runs[r.first + i].folder, len) != 0) {
            len--;
        }
    }
    if (r.count == 1) {
        (void)snprintf(text, COMPARE_NAME_SIZE, "%s", first + skip);
    } else if (len > skip) {
        (void)snprintf(
            text, COMPARE_NAME_SIZE, "%.*s* (%zu)", (int)(len - skip),
            first + skip, r.count);
    } else {
        (void)snprintf(
            text, COMPARE_NAME_SIZE, "%s (%zu)", c->runs[r.first].algorithm,
            r.count);
    }
    return text;
}
