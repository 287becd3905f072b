// SPDX-License-Identifier: MIT
// Reads the JSON of `laconic bench`, and selects rows of it.
#include "cli/bench/saved.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/bench/step.h"
#include "cli/report/processor.h"
#include "cli/report/table.h"
#include "data/file.h"

enum {
    EXPECTED_SIZE = 64,
    ROW_SIZE = 32,
    SHOWN = 48, // columns of a text of the file in a message
};

// An object of the file, and what messages call it.
typedef struct source {
    const char *path;
    const cJSON *object;
    char row[ROW_SIZE]; // " of compressor 3", or "" for the whole
} source;

// Describes a value that is not what was expected.
static const char *saved_describe(const cJSON *item, char text[CLI_CELL_SIZE])
{
    char fitted[CLI_CELL_SIZE];
    if (cJSON_IsNumber(item)) {
        (void)snprintf(text, CLI_CELL_SIZE, "%.6g", item->valuedouble);
    } else if (cJSON_IsString(item)) {
        (void)snprintf(
            text, CLI_CELL_SIZE, "\"%s\"",
            cli_fitted(item->valuestring, SHOWN, fitted));
    } else {
        (void)snprintf(
            text, CLI_CELL_SIZE, "%s",
            item == NULL           ? "missing"
            : cJSON_IsArray(item)  ? "a list"
            : cJSON_IsObject(item) ? "an object"
            : cJSON_IsTrue(item)   ? "true"
            : cJSON_IsFalse(item)  ? "false"
                                   : "null");
    }
    return text;
}

static lac_status bad_value(
    const source *s, const char *key, const char *expected)
{
    char found[CLI_CELL_SIZE];
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(s->object, key);
    return lac_fail(
        LAC_ERR_CORRUPT, "%s: \"%s\"%s is %s, expected %s", s->path, key,
        s->row, saved_describe(item, found), expected);
}

static lac_status saved_text(const source *s, const char *key, const char **out)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(s->object, key);
    if (!cJSON_IsString(item)) {
        return bad_value(s, key, "a text");
    }
    *out = item->valuestring;
    return LAC_OK;
}

static lac_status saved_text_or_null(
    const source *s, const char *key, const char **out)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(s->object, key);
    if (!cJSON_IsString(item) && !cJSON_IsNull(item)) {
        return bad_value(s, key, "a text or null");
    }
    *out = cJSON_GetStringValue(item);
    return LAC_OK;
}

static lac_status saved_whole(
    const source *s, const char *key, uint64_t min, uint64_t max, uint64_t *out)
{
    char expected[EXPECTED_SIZE];
    const double value =
        cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(s->object, key));
    // False for NaN, which stands for what is no number.
    if (!(value >= (double)min && value <= (double)max) ||
        value != floor(value)) {
        (void)snprintf(
            expected, sizeof(expected),
            "a whole number from %" PRIu64 " to %" PRIu64, min, max);
        return bad_value(s, key, expected);
    }
    *out = (uint64_t)value;
    return LAC_OK;
}

static lac_status saved_memcpys(const source *s, const char *key, double *out)
{
    const double value =
        cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(s->object, key));
    if (!isfinite(value) || value <= 0) {
        return bad_value(s, key, "a number above 0");
    }
    *out = value;
    return LAC_OK;
}

static lac_status take_compressor(const source *s, cli_bench_row *row)
{
    static const char *const keys[CLI_BENCH_FIGURES] = {
        "encode_memcpys", "decode_add_memcpys", "encode_add_memcpys"};
    LAC_TRY(saved_text(s, "spec", &row->spec));
    for (size_t i = 0; i < CLI_BENCH_FIGURES; i++) {
        LAC_TRY(saved_memcpys(s, keys[i], &row->memcpys[i]));
    }
    return LAC_OK;
}

static lac_status take_algorithm(const source *s, cli_bench_row *row)
{
    uint64_t values = 0, degree = 0;
    LAC_TRY(saved_text(s, "spec", &row->spec));
    LAC_TRY(saved_text_or_null(s, "compressor", &row->compressor));
    LAC_TRY(saved_text_or_null(s, "model", &row->model));
    LAC_TRY(saved_text(s, "layout", &row->layout));
    LAC_TRY(saved_whole(s, "values", 1, SIZE_MAX / sizeof(float), &values));
    LAC_TRY(saved_whole(s, "degree", 0, CLI_BENCH_DEGREE_MAX, &degree));
    LAC_TRY(saved_memcpys(s, "memcpy_ratio", &row->memcpys[0]));
    row->is_algorithm = true;
    row->values = (size_t)values;
    row->degree = (uint32_t)degree;
    return LAC_OK;
}

// Adds the rows of the list `key`, which messages call `one` each.
static lac_status take_rows(
    cli_bench_saved *saved, const source *s, const char *key, const char *one,
    lac_status (*take)(const source *, cli_bench_row *))
{
    const cJSON *const list = cJSON_GetObjectItemCaseSensitive(s->object, key);
    const int length = cJSON_GetArraySize(list);
    const cJSON *item;
    size_t count = 0;
    if (!cJSON_IsArray(list)) {
        return bad_value(s, key, "a list");
    }
    if (length > CLI_BENCH_MAX) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: \"%s\" has %d rows, expected at most %d",
            s->path, key, length, CLI_BENCH_MAX);
    }
    cJSON_ArrayForEach(item, list)
    {
        source row = {s->path, item, ""};
        (void)snprintf(row.row, sizeof(row.row), " of %s %zu", one, ++count);
        LAC_TRY(take(&row, &saved->rows[saved->count]));
        saved->count++;
    }
    return LAC_OK;
}

static lac_status take_saved(cli_bench_saved *saved)
{
    const source s = {saved->path, saved->object, ""};
    const cJSON *const prefetch =
        cJSON_GetObjectItemCaseSensitive(s.object, "prefetch");
    LAC_TRY(saved_text(&s, "version", &saved->version));
    LAC_TRY(saved_text(&s, "processor", &saved->processor));
    LAC_TRY(saved_text(&s, "processor_id", &saved->processor_id));
    LAC_TRY(saved_text(&s, "kernels", &saved->kernels));
    if (!cJSON_IsBool(prefetch)) {
        return bad_value(&s, "prefetch", "true or false");
    }
    saved->prefetch = cJSON_IsTrue(prefetch);
    LAC_TRY(
        saved_whole(&s, "threads", 1, CLI_BENCH_THREADS_MAX, &saved->threads));
    LAC_TRY(saved_whole(&s, "values", 1, CLI_BENCH_VALUES_MAX, &saved->values));
    LAC_TRY(saved_whole(&s, "runs", 1, CLI_BENCH_RUNS_MAX, &saved->runs));
    LAC_TRY(take_rows(saved, &s, "compressors", "compressor", take_compressor));
    LAC_TRY(take_rows(saved, &s, "algorithms", "algorithm", take_algorithm));
    return saved->count > 0
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_CORRUPT,
                     "%s: has no compressor and no algorithm, expected some to "
                     "compare with",
                     s.path);
}

static bool only_blanks(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (strchr(" \t\r\n", text[i]) == NULL || text[i] == '\0') {
            return false;
        }
    }
    return true;
}

lac_status cli_bench_saved_parse(
    const char *path, const char *text, size_t len, cli_bench_saved *out)
{
    const char *end = NULL;
    *out = (cli_bench_saved){.path = path};
    out->object = cJSON_ParseWithLengthOpts(text, len, &end, 0);
    const bool whole = cJSON_IsObject(out->object) &&
                       only_blanks(end, (size_t)(text + len - end));
    const lac_status status =
        whole ? take_saved(out)
              : lac_fail(
                    LAC_ERR_CORRUPT,
                    "%s: is not one JSON object, or is truncated, expected the "
                    "output of `laconic bench --json`",
                    path);
    if (status != LAC_OK) {
        cli_bench_saved_free(out);
    }
    return status;
}

lac_status cli_bench_saved_read(const char *path, cli_bench_saved *out)
{
    data_bytes bytes;
    *out = (cli_bench_saved){0};
    LAC_TRY(data_file_read_like(path, "{", 1, &bytes));
    const lac_status status =
        cli_bench_saved_parse(path, (const char *)bytes.data, bytes.len, out);
    data_bytes_free(&bytes);
    return status;
}

void cli_bench_saved_free(cli_bench_saved *s)
{
    cJSON_Delete(s->object);
    *s = (cli_bench_saved){0};
}

lac_status cli_bench_saved_check(const cli_bench_saved *s)
{
    char name[CLI_PROCESSOR_SIZE], id[CLI_PROCESSOR_SIZE];
    char their_name[CLI_CELL_SIZE], their_id[CLI_CELL_SIZE];
    cli_processor(name);
    cli_processor_id(id);
    if (strcmp(s->processor, name) == 0 && strcmp(s->processor_id, id) == 0) {
        return LAC_OK;
    }
    return lac_fail(
        LAC_ERR_INVALID,
        "%s: was measured on another processor, %s (%s), expected that of this "
        "machine, %s (%s)",
        s->path, cli_fitted(s->processor, SHOWN, their_name),
        cli_fitted(s->processor_id, SHOWN, their_id), name, id);
}

// Whether a row of an algorithm has the value of an option, if it was given.
static bool has_text(const char *wanted, const char *found)
{
    return *wanted == '\0' || (found != NULL && strcmp(wanted, found) == 0);
}

static bool is_wanted(const cli_bench_row *row, const cli_bench_choice *choice)
{
    bool named = choice->count == 0;
    for (size_t i = 0; i < choice->count; i++) {
        named = named || strcmp(choice->specs[i], row->spec) == 0;
    }
    return named &&
           (!row->is_algorithm ||
            (has_text(choice->compressor, row->compressor) &&
             has_text(choice->model, row->model) &&
             // A model is no file.
             has_text(
                 choice->layout, row->model == NULL ? row->layout : NULL) &&
             (choice->degree == 0 || choice->degree == row->degree)));
}

static bool has_spec(const cli_bench_saved *s, const char *spec)
{
    for (size_t i = 0; i < s->count; i++) {
        if (strcmp(s->rows[i].spec, spec) == 0) {
            return true;
        }
    }
    return false;
}

lac_status cli_bench_saved_choose(
    cli_bench_saved *s, const cli_bench_choice *choice)
{
    const bool narrowed = *choice->compressor != '\0' ||
                          *choice->model != '\0' || *choice->layout != '\0' ||
                          choice->degree != 0;
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (is_wanted(&s->rows[i], choice)) {
            s->rows[count++] = s->rows[i];
        }
    }
    s->count = count;
    for (size_t i = 0; i < choice->count; i++) {
        if (!has_spec(s, choice->specs[i])) {
            return lac_fail(
                LAC_ERR_INVALID,
                "%s: has no row of \"%s\"%s, expected a SPEC that it has",
                s->path, choice->specs[i],
                narrowed ? " with these options" : "");
        }
    }
    return count > 0 ? LAC_OK
                     : lac_fail(
                           LAC_ERR_INVALID,
                           "%s: has no row with these options, expected those "
                           "of a row",
                           s->path);
}
