// SPDX-License-Identifier: MIT
// Collects runs and makes rows of them.
#include "cli/compare/runs.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/compare/settings.h"
#include "cli/train/seeds.h"
#include "data/file.h"

static lac_status runs_no_memory(size_t count)
{
    return lac_fail(LAC_ERR_NOMEM, "no memory for %zu runs", count);
}

void compare_runs_open(compare_runs *c)
{
    *c = (compare_runs){0};
}

void compare_runs_close(compare_runs *c)
{
    for (size_t i = 0; i < c->count; i++) {
        cli_run_close(&c->runs[i]);
    }
    free(c->runs);
    free(c->rows);
    free(c->differing);
    *c = (compare_runs){0};
}

static bool is_same_folder(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 &&
           of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

static lac_status add_run(compare_runs *c, const char *folder)
{
    for (size_t i = 0; i < c->count; i++) {
        if (is_same_folder(c->runs[i].folder, folder)) {
            return LAC_OK;
        }
    }
    cli_run *const runs = realloc(c->runs, (c->count + 1) * sizeof(*runs));
    if (runs == NULL) {
        return runs_no_memory(c->count + 1);
    }
    c->runs = runs;
    return cli_run_open(&runs[c->count++], folder);
}

static lac_status add_seeds(compare_runs *c, const char *folder, uint64_t seed)
{
    char path[DATA_PATH_SIZE];
    do {
        LAC_TRY(cli_seeds_folder(folder, seed, path));
        LAC_TRY(add_run(c, path));
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

// Adds the runs of the folders in a folder, in the order of their names, and
// counts them.
static lac_status add_inner(
    compare_runs *c, const char *folder, size_t *count_out)
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
            status = compare_runs_add(c, path);
            ++*count_out;
        }
        free(names[i]);
    }
    free(names);
    return status;
}

lac_status compare_runs_add(compare_runs *c, const char *folder)
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
        return add_run(c, path);
    }
    if (cli_seeds_next(path, 0, &seed)) {
        return add_seeds(c, path, seed);
    }
    LAC_TRY(add_inner(c, path, &inner));
    return inner > 0 ? LAC_OK : add_run(c, path); // names what is missing
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

static void sort_runs(compare_runs *c, const size_t *row_of, cli_run *sorted)
{
    size_t done = 0;
    for (size_t row = 0; row < c->row_count; row++) {
        c->rows[row] = (compare_row){.first = done};
        for (size_t i = 0; i < c->count; i++) {
            if (row_of[i] == row) {
                sorted[done++] = c->runs[i];
            }
        }
        c->rows[row].count = done - c->rows[row].first;
    }
}

lac_status compare_runs_arrange(compare_runs *c)
{
    if (c->count == 0) {
        return LAC_OK;
    }
    size_t *const row_of = calloc(c->count + 1, sizeof(*row_of));
    cli_run *const sorted = malloc((c->count + 1) * sizeof(*sorted));
    lac_status status = runs_no_memory(c->count);
    c->rows = calloc(c->count + 1, sizeof(*c->rows));
    if (row_of != NULL && sorted != NULL && c->rows != NULL) {
        c->row_count = find_rows(c, row_of);
        sort_runs(c, row_of, sorted);
        memcpy(c->runs, sorted, c->count * sizeof(*sorted));
        status = compare_settings_find(c);
    }
    free(row_of);
    free(sorted);
    return status;
}

compare_value compare_row_value(
    const compare_runs *c, size_t row, cli_metric metric)
{
    const compare_row r = c->rows[row];
    double sum = 0, squares = 0;
    for (size_t i = 0; i < r.count; i++) {
        sum += cli_run_last(&c->runs[r.first + i], metric);
    }
    const double mean = sum / (double)r.count;
    for (size_t i = 0; i < r.count; i++) {
        const double away = cli_run_last(&c->runs[r.first + i], metric) - mean;
        squares += away * away;
    }
    return (compare_value){
        .mean = mean,
        .spread =
            r.count < 2 ? (double)NAN : sqrt(squares / (double)(r.count - 1)),
    };
}

// Bytes of models of different sizes have no ratio that means anything.
static double runs_times_fewer(
    const compare_runs *c, const cli_run *run, double own)
{
    const double all = compare_row_value(c, 0, CLI_METRIC_PAYLOAD_BYTES).mean;
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
