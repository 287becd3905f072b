// SPDX-License-Identifier: MIT
// Reads the arguments of `laconic report`. A folder is a run; the first bytes
// of a file show whether it is a trace or a plan.
#include "cli/page/inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/option.h"
#include "data/file.h"

static const char trace_header[] = "round,error,mean_drift,payload_bytes";
enum { HEADER_LEN = sizeof(trace_header) - 1, TRACE_COLUMNS = 4 };

// Reads the number at *text, and the comma or line feed behind it.
static bool take_value(const char **text, bool last, double *out)
{
    char *end = NULL;
    // strtod would skip the end of a line.
    if (**text == '\n' || **text == ' ') {
        return false;
    }
    *out = strtod(*text, &end);
    if (end == *text || (*end != ',' && !(last && *end == '\n'))) {
        return false;
    }
    *text = end + (*end == ',' && !last);
    return true;
}

// Reads a line and moves to the next. Later versions may have more columns.
static bool take_round(const char **text, page_trace *t)
{
    double v[TRACE_COLUMNS];
    for (size_t i = 0; i < TRACE_COLUMNS; i++) {
        if (!take_value(text, i + 1 == TRACE_COLUMNS, &v[i])) {
            return false;
        }
    }
    const double before = t->count == 0 ? -1 : t->rounds[t->count - 1].round;
    if (!(v[0] > before) || v[0] != floor(v[0]) || !isfinite(v[0]) ||
        !(v[3] >= 0)) {
        return false;
    }
    t->rounds[t->count++] = (page_round){v[0], v[1], v[2], v[3]};
    *text += strcspn(*text, "\n");
    if (**text != '\n') {
        return false;
    }
    (*text)++;
    return true;
}

// The bytes end with a zero byte. A last line without a line feed is ignored.
static lac_status read_trace(page_trace *t, const char *text, size_t len)
{
    size_t lines = 0;
    for (size_t i = 0; i < len; i++) {
        lines += text[i] == '\n';
    }
    t->rounds = calloc(lines + 1, sizeof(*t->rounds));
    if (t->rounds == NULL) {
        return data_no_memory(t->path, lines);
    }
    const char *at = text + strcspn(text, "\n");
    at += *at == '\n';
    for (size_t line = 2; line <= lines; line++) {
        if (!take_round(&at, t)) {
            return lac_fail(
                LAC_ERR_CORRUPT,
                "%s: line %zu is damaged, expected a later round than the line "
                "before, its error, drift and bytes",
                t->path, line);
        }
    }
    return t->count > 0
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_INVALID,
                     "%s: has no round, expected a line for each", t->path);
}

static bool is_candidate(const cJSON *item)
{
    return cJSON_IsString(
               cJSON_GetObjectItemCaseSensitive(item, "algorithm")) &&
           cJSON_IsNumber(
               cJSON_GetObjectItemCaseSensitive(item, "step_seconds"));
}

static bool is_epoch(const cJSON *item)
{
    return cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(item, "seconds"));
}

static bool is_list_of(const cJSON *list, bool (*is_good)(const cJSON *))
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (!is_good(item)) {
            return false;
        }
    }
    return cJSON_IsArray(list) && list->child != NULL;
}

// Whether it is a result of `average --json`, with --sweep or without.
static bool is_average(const cJSON *object)
{
    return cJSON_HasObjectItem(object, "final_error") ||
           (cJSON_HasObjectItem(object, "setting") &&
            cJSON_HasObjectItem(object, "results"));
}

static bool is_planned_run(const cJSON *item)
{
    return cJSON_IsString(cJSON_GetObjectItemCaseSensitive(item, "dir")) &&
           is_list_of(
               cJSON_GetObjectItemCaseSensitive(item, "epochs"), is_epoch);
}

// Adds a plan, whose object is then owned by the inputs in any case.
static lac_status append_plan(page_inputs *in, page_plan plan)
{
    page_plan *const grown =
        realloc(in->plans, (in->plan_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        const lac_status status = data_no_memory(plan.path, sizeof(*grown));
        cJSON_Delete(plan.object);
        return status;
    }
    in->plans = grown;
    grown[in->plan_count++] = plan;
    return LAC_OK;
}

// Adds every run of a list as if it had a file of its own.
static lac_status append_runs(page_inputs *in, cJSON *list)
{
    cJSON *item = NULL;
    while ((item = cJSON_DetachItemFromArray(list, 0)) != NULL) {
        LAC_TRY(append_plan(
            in,
            (page_plan){
                .path =
                    cJSON_GetObjectItemCaseSensitive(item, "dir")->valuestring,
                .object = item,
                .run = true}));
    }
    return LAC_OK;
}

static lac_status reject_plan(const char *path, const cJSON *object)
{
    return is_average(object)
               ? lac_fail(
                     LAC_ERR_INVALID,
                     "%s: is a result of `laconic average --json`, expected a "
                     "file of its --trace",
                     path)
               : lac_fail(
                     LAC_ERR_CORRUPT,
                     "%s: is no result of `laconic plan --json`, expected an "
                     "object with candidates or epochs",
                     path);
}

// `laconic plan` writes no more runs.
static bool are_planned_runs(const cJSON *list)
{
    return cJSON_GetArraySize(list) <= CLI_TEXTS_MAX &&
           is_list_of(list, is_planned_run);
}

// Other objects are skipped if that is allowed, but for what a user may mean.
static lac_status refuse_plan(
    const char *path, const cJSON *object, bool may_skip)
{
    if (may_skip && object != NULL && !is_average(object)) {
        compare_skip(path);
        return LAC_OK;
    }
    return reject_plan(path, object);
}

static lac_status add_plan(
    page_inputs *in, const data_bytes *bytes, bool may_skip)
{
    cJSON *const object =
        cJSON_ParseWithLength((const char *)bytes->data, bytes->len);
    cJSON *const runs = cJSON_GetObjectItemCaseSensitive(object, "runs");
    const bool run = is_list_of(
        cJSON_GetObjectItemCaseSensitive(object, "epochs"), is_epoch);
    if (run || is_list_of(
                   cJSON_GetObjectItemCaseSensitive(object, "candidates"),
                   is_candidate)) {
        return append_plan(
            in, (page_plan){.path = bytes->name, .object = object, .run = run});
    }
    const lac_status status = are_planned_runs(runs)
                                  ? append_runs(in, runs)
                                  : refuse_plan(bytes->name, object, may_skip);
    cJSON_Delete(object);
    return status;
}

static lac_status add_trace(page_inputs *in, const data_bytes *bytes)
{
    page_trace *const grown =
        realloc(in->traces, (in->trace_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return data_no_memory(bytes->name, sizeof(*grown));
    }
    in->traces = grown;
    page_trace *const t = &grown[in->trace_count++];
    *t = (page_trace){.path = bytes->name};
    return read_trace(t, (const char *)bytes->data, bytes->len);
}

static bool is_trace(const data_bytes *bytes)
{
    return bytes->len > HEADER_LEN &&
           memcmp(bytes->data, trace_header, HEADER_LEN) == 0;
}

static bool is_object(const data_bytes *bytes)
{
    return bytes->len > 0 && *bytes->data == '{';
}

static lac_status sort_file(
    page_inputs *in, const data_bytes *bytes, bool may_skip)
{
    if (is_trace(bytes)) {
        return add_trace(in, bytes);
    }
    if (is_object(bytes)) {
        return add_plan(in, bytes, may_skip);
    }
    if (may_skip) {
        compare_skip(bytes->name);
        return LAC_OK;
    }
    return lac_fail(
        LAC_ERR_INVALID,
        "%s: is neither a trace of `laconic average` nor a result of `laconic "
        "plan --json`",
        bytes->name);
}

static lac_status add_file(page_inputs *in, const char *path, bool may_skip)
{
    data_bytes bytes;
    LAC_TRY(data_file_read(path, &bytes));
    // A zero byte behind the text.
    uint8_t *const grown = realloc(bytes.data, bytes.len + 1);
    lac_status status = LAC_OK;
    if (grown == NULL) {
        status = data_no_memory(path, bytes.len);
    } else {
        bytes.data = grown;
        bytes.data[bytes.len] = '\0';
        status = sort_file(in, &bytes, may_skip);
    }
    data_bytes_free(&bytes);
    return status;
}

static lac_status add_path(page_inputs *in, const char *path, bool may_skip)
{
    if (data_is_file(path)) {
        return add_file(in, path, may_skip);
    }
    if (may_skip && compare_is_no_run(path)) {
        compare_skip(path);
        return LAC_OK;
    }
    return compare_set_add(&in->runs, path);
}

lac_status page_inputs_open(
    page_inputs *in, char *const *paths, size_t count, const char *baseline,
    const char *out)
{
    *in = (page_inputs){0};
    LAC_TRY(compare_set_name_baseline(&in->runs, baseline));
    for (size_t i = 0; i < count; i++) {
        // A pattern such as runs/* finds the page of an earlier call too.
        LAC_TRY(
            data_is_same_file(paths[i], out)
                ? LAC_OK
                : add_path(in, paths[i], count > 1));
    }
    if (in->runs.count + in->trace_count + in->plan_count == 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "none of the %zu arguments is a run, a trace or a plan", count);
    }
    return compare_set_arrange(&in->runs);
}

void page_inputs_close(page_inputs *in)
{
    for (size_t i = 0; i < in->trace_count; i++) {
        free(in->traces[i].rounds);
    }
    for (size_t i = 0; i < in->plan_count; i++) {
        cJSON_Delete(in->plans[i].object);
    }
    free(in->traces);
    free(in->plans);
    compare_set_close(&in->runs);
    *in = (page_inputs){0};
}

size_t page_trace_style(const page_inputs *in, size_t trace)
{
    size_t rows = 0;
    for (size_t i = 0; i < in->runs.group_count; i++) {
        rows += in->runs.groups[i].row_count;
    }
    return rows + trace;
}

size_t page_plan_style(const page_inputs *in, size_t plan)
{
    size_t style = page_trace_style(in, in->trace_count);
    for (size_t i = 0; i < plan; i++) {
        style += in->plans[i].run;
    }
    return style;
}

size_t page_style_count(const page_inputs *in)
{
    return page_plan_style(in, in->plan_count);
}
