// SPDX-License-Identifier: MIT
// Reads the folder of a run. Everything in it may be damaged, or of another
// program.
#include "cli/files/run.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/launch/launch.h"
#include "cli/train/config.h"
#include "data/file.h"
#include "train/safetensors_file.h"

// Above 2^53 doubles are not exact.
#define WHOLE_MAX 0x1p53

// The numbers that a metric can have: from 0, or what the line before has.
typedef struct limits {
    const char *key;
    double most;
    bool whole;
} limits;

static const limits metrics[CLI_METRICS] = {
    [CLI_METRIC_TRAIN_LOSS] = {"train_loss", DBL_MAX, false},
    [CLI_METRIC_TEST_LOSS] = {"test_loss", DBL_MAX, false},
    [CLI_METRIC_TEST_ACCURACY] = {"test_accuracy", 1, false},
    [CLI_METRIC_WORST_ACCURACY] = {"worst_accuracy", 1, false},
    [CLI_METRIC_AVERAGED_ACCURACY] = {"averaged_accuracy", 1, false},
    [CLI_METRIC_TEST_PERPLEXITY] = {"test_perplexity", DBL_MAX, false},
    [CLI_METRIC_AVERAGED_PERPLEXITY] = {"averaged_perplexity", DBL_MAX, false},
    [CLI_METRIC_TEST_EXAMPLES] = {"test_examples", WHOLE_MAX, true},
    [CLI_METRIC_FINAL_LOSS] = {"final_loss", DBL_MAX, false},
    [CLI_METRIC_FINAL_ACCURACY] = {"final_accuracy", 1, false},
    [CLI_METRIC_FINAL_WORST_ACCURACY] = {"final_worst_accuracy", 1, false},
    [CLI_METRIC_FINAL_AVERAGED_ACCURACY] =
        {"final_averaged_accuracy", 1, false},
    [CLI_METRIC_FINAL_PERPLEXITY] = {"final_perplexity", DBL_MAX, false},
    [CLI_METRIC_FINAL_AVERAGED_PERPLEXITY] =
        {"final_averaged_perplexity", DBL_MAX, false},
    [CLI_METRIC_FINAL_EXAMPLES] = {"final_examples", WHOLE_MAX, true},
    [CLI_METRIC_PAYLOAD_BYTES] = {"payload_bytes", WHOLE_MAX, true},
    [CLI_METRIC_CONSENSUS] = {"consensus", DBL_MAX, false},
    [CLI_METRIC_COMPUTE_SECONDS] = {"compute_seconds", DBL_MAX, false},
    [CLI_METRIC_COMPRESS_SECONDS] = {"compress_seconds", DBL_MAX, false},
    [CLI_METRIC_WAIT_SECONDS] = {"wait_seconds", DBL_MAX, false},
    [CLI_METRIC_TEST_SECONDS] = {"test_seconds", DBL_MAX, false},
    [CLI_METRIC_SECONDS] = {"seconds", DBL_MAX, false},
};

const char *cli_metric_key(cli_metric metric)
{
    return metrics[metric].key;
}

lac_status cli_run_file(
    const char *folder, const char *name, char path[DATA_PATH_SIZE])
{
    LAC_TRY(data_path_join(path, folder, name));
    if (data_is_file(path)) {
        return LAC_OK;
    }
    return data_is_folder(folder)
               ? lac_fail(
                     LAC_ERR_INVALID,
                     "%s: is missing or no file, expected the folder of a run "
                     "of `laconic train`",
                     path)
               : lac_fail(
                     LAC_ERR_INVALID,
                     "%s: is no folder, expected that of a run of `laconic "
                     "train`",
                     folder);
}

// Returns the text of a setting, NULL if the manifest has none.
static const char *setting_text(const cli_run *run, const char *name)
{
    return cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(run->settings, name));
}

// Reads a whole setting. Older manifests have digits in a string.
static bool setting_whole(
    const cli_run *run, const char *name, uint64_t most, uint64_t *out)
{
    char digits[CLI_OPTION_TEXT_SIZE];
    const char *text = cli_config_text(
        cJSON_GetObjectItemCaseSensitive(run->settings, name), digits);
    return text != NULL && train_take_number(&text, out) && *text == '\0' &&
           *out <= most;
}

static bool setting_flag(const cli_run *run, const char *name)
{
    char word[CLI_OPTION_TEXT_SIZE];
    const char *const text = cli_config_text(
        cJSON_GetObjectItemCaseSensitive(run->settings, name), word);
    return text != NULL && strcmp(text, "yes") == 0;
}

static bool take_settings(cli_run *run)
{
    uint64_t workers = 0;
    const cJSON *const facts =
        cJSON_GetObjectItemCaseSensitive(run->manifest, "facts");
    const char *const family =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(facts, "family"));
    const char *const compressor = setting_text(run, "compressor");
    run->model = setting_text(run, "model");
    run->data = setting_text(run, "data");
    run->algorithm = setting_text(run, "algorithm");
    run->topology = setting_text(run, "topology");
    run->parameters = cJSON_GetNumberValue(
        cJSON_GetObjectItemCaseSensitive(facts, "parameters"));
    if (run->model == NULL || run->data == NULL || run->algorithm == NULL ||
        run->topology == NULL || isnan(run->parameters) ||
        !setting_whole(run, "workers", CLI_WORKERS_MAX, &workers) ||
        workers == 0 || !setting_whole(run, "seed", UINT64_MAX, &run->seed) ||
        !setting_whole(run, "epochs", UINT64_MAX, &run->planned)) {
        return false;
    }
    run->compressor =
        compressor == NULL || *compressor == '\0' ? NULL : compressor;
    run->workers = (uint32_t)workers;
    run->overlap = setting_flag(run, "overlap");
    run->gradient = family != NULL && strcmp(family, "gradient") == 0;
    return true;
}

static lac_status run_manifest(cli_run *run)
{
    char path[DATA_PATH_SIZE];
    data_bytes bytes;
    LAC_TRY(cli_run_file(run->folder, "manifest.json", path));
    LAC_TRY(data_file_read(path, &bytes));
    run->manifest = cJSON_ParseWithLength((const char *)bytes.data, bytes.len);
    run->settings = cJSON_GetObjectItemCaseSensitive(run->manifest, "settings");
    data_bytes_free(&bytes);
    return take_settings(run)
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_CORRUPT,
                     "%s: is not the manifest of a run, expected a JSON object "
                     "with the settings and facts of `laconic train`",
                     path);
}

// The computation may overlap with the rest; then the sum is an upper bound.
static double total_seconds(const double *values)
{
    const double test = values[CLI_METRIC_TEST_SECONDS];
    return values[CLI_METRIC_COMPUTE_SECONDS] +
           values[CLI_METRIC_COMPRESS_SECONDS] +
           values[CLI_METRIC_WAIT_SECONDS] + (isnan(test) ? 0 : test);
}

// A line of the metrics, and the one before.
typedef struct run_line {
    const char *path;
    size_t number;
    const cJSON *object;
    const cli_run_epoch *before;
} run_line;

static lac_status reject_number(
    const run_line *line, const limits *l, double least, bool above)
{
    const cJSON *const item =
        cJSON_GetObjectItemCaseSensitive(line->object, l->key);
    char found[32], most[32] = "";
    (void)snprintf(found, sizeof(found), "%.15g", cJSON_GetNumberValue(item));
    if (l->most == 1) {
        (void)snprintf(most, sizeof(most), " and at most 1");
    }
    return lac_fail(
        LAC_ERR_CORRUPT,
        "%s: line %zu: %s is %s, expected a %snumber %s %.15g%s", line->path,
        line->number, l->key,
        item == NULL           ? "missing"
        : cJSON_IsNumber(item) ? found
                               : "no number",
        l->whole ? "whole " : "", above ? "above" : "of at least", least, most);
}

// Reads a number of at least, or above, another one.
static lac_status take_number(
    const run_line *line, const limits *l, double least, bool above,
    double *out)
{
    const double value = cJSON_GetNumberValue(
        cJSON_GetObjectItemCaseSensitive(line->object, l->key));
    if (!(above ? value > least : value >= least) || value > l->most ||
        (l->whole && value != floor(value))) {
        return reject_number(line, l, least, above);
    }
    *out = value;
    return LAC_OK;
}

// A metric that is missing or null is NaN: null is what was not finite.
static lac_status take_metric(
    const run_line *line, const limits *l, double *out)
{
    const cJSON *const item =
        cJSON_GetObjectItemCaseSensitive(line->object, l->key);
    *out = (double)NAN;
    return item == NULL || cJSON_IsNull(item)
               ? LAC_OK
               : take_number(line, l, 0, false, out);
}

// Epochs and steps are later than those before, and bytes no fewer.
static lac_status take_epoch(const run_line *line, cli_run_epoch *e)
{
    static const limits epochs = {"epoch", WHOLE_MAX, false};
    static const limits steps = {"step", WHOLE_MAX, true};
    const cli_run_epoch *const before = line->before;
    double step = 0;
    for (size_t i = 0; i < CLI_METRICS; i++) {
        LAC_TRY(take_metric(line, &metrics[i], &e->values[i]));
    }
    LAC_TRY(take_number(line, &epochs, before->epoch, true, &e->epoch));
    LAC_TRY(take_number(line, &steps, (double)before->step, true, &step));
    LAC_TRY(take_number(
        line, &metrics[CLI_METRIC_PAYLOAD_BYTES],
        before->values[CLI_METRIC_PAYLOAD_BYTES], false,
        &e->values[CLI_METRIC_PAYLOAD_BYTES]));
    e->step = (uint64_t)step;
    if (isnan(e->values[CLI_METRIC_SECONDS])) {
        e->values[CLI_METRIC_SECONDS] = total_seconds(e->values);
    }
    return LAC_OK;
}

static lac_status take_line(
    const char *path, const char *text, size_t len, cli_run *run)
{
    static const cli_run_epoch none = {0};
    const char *end = NULL;
    cJSON *const object = cJSON_ParseWithLengthOpts(text, len, &end, 0);
    const run_line line = {
        .path = path,
        .number = run->count + 1,
        .object = object,
        .before = run->count == 0 ? &none : &run->epochs[run->count - 1],
    };
    const bool other = object != NULL && !cJSON_IsObject(object);
    const lac_status status =
        cJSON_IsObject(object) && end == text + len
            ? take_epoch(&line, &run->epochs[run->count])
            : lac_fail(
                  LAC_ERR_CORRUPT,
                  "%s: line %zu is damaged at byte %zu, expected a JSON object",
                  path, line.number, other ? 1 : (size_t)(end - text) + 1);
    run->text = run->text || cJSON_HasObjectItem(object, "test_perplexity");
    run->count += status == LAC_OK;
    cJSON_Delete(object);
    return status;
}

static size_t run_lines(const data_bytes *bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes->len; i++) {
        count += bytes->data[i] == '\n';
    }
    return count;
}

static lac_status take_lines(const data_bytes *bytes, cli_run *run)
{
    const size_t lines = run_lines(bytes);
    const char *line = (const char *)bytes->data;
    run->epochs = calloc(lines + 1, sizeof(*run->epochs));
    if (run->epochs == NULL) {
        return data_no_memory(bytes->name, lines);
    }
    const char *const last = line + bytes->len;
    const char *end;
    while ((end = memchr(line, '\n', (size_t)(last - line))) != NULL) {
        LAC_TRY(take_line(bytes->name, line, (size_t)(end - line), run));
        line = end + 1;
    }
    return LAC_OK;
}

// The first epoch creates the file.
static lac_status run_metrics(cli_run *run)
{
    char path[DATA_PATH_SIZE];
    struct stat info;
    data_bytes bytes;
    LAC_TRY(data_path_join(path, run->folder, "metrics.jsonl"));
    if (lstat(path, &info) != 0) {
        return LAC_OK;
    }
    LAC_TRY(cli_run_file(run->folder, "metrics.jsonl", path));
    LAC_TRY(data_file_read(path, &bytes));
    const lac_status status = take_lines(&bytes, run);
    data_bytes_free(&bytes);
    return status;
}

lac_status cli_run_open(cli_run *run, const char *folder)
{
    const size_t len = strlen(folder);
    *run = (cli_run){0};
    if (len == 0 || len >= sizeof(run->folder)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "the path of a run has %zu bytes, expected 1 to %d", len,
            DATA_PATH_SIZE - 1);
    }
    memcpy(run->folder, folder, len + 1);
    LAC_TRY(run_manifest(run));
    return run_metrics(run);
}

void cli_run_close(cli_run *run)
{
    free(run->epochs);
    cJSON_Delete(run->manifest);
    *run = (cli_run){0};
}

double cli_run_done(const cli_run *run)
{
    return run->count == 0 ? 0 : run->epochs[run->count - 1].epoch;
}

uint64_t cli_run_steps(const cli_run *run)
{
    return run->count == 0 ? 0 : run->epochs[run->count - 1].step;
}

double cli_run_last(const cli_run *run, cli_metric metric)
{
    return run->count == 0 ? (double)NAN
                           : run->epochs[run->count - 1].values[metric];
}

bool cli_run_is_sampled(const cli_run *run)
{
    return run->count > 0 &&
           !(cli_run_last(run, CLI_METRIC_FINAL_EXAMPLES) > 0);
}

double cli_run_end(const cli_run *run, cli_metric metric)
{
    static const struct {
        cli_metric sample, whole;
    } pairs[] = {
        {CLI_METRIC_TEST_LOSS, CLI_METRIC_FINAL_LOSS},
        {CLI_METRIC_TEST_ACCURACY, CLI_METRIC_FINAL_ACCURACY},
        {CLI_METRIC_WORST_ACCURACY, CLI_METRIC_FINAL_WORST_ACCURACY},
        {CLI_METRIC_AVERAGED_ACCURACY, CLI_METRIC_FINAL_AVERAGED_ACCURACY},
        {CLI_METRIC_TEST_PERPLEXITY, CLI_METRIC_FINAL_PERPLEXITY},
        {CLI_METRIC_AVERAGED_PERPLEXITY, CLI_METRIC_FINAL_AVERAGED_PERPLEXITY},
        {CLI_METRIC_TEST_EXAMPLES, CLI_METRIC_FINAL_EXAMPLES},
    };
    const bool sampled = cli_run_is_sampled(run);
    for (size_t i = 0; !sampled && i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if (pairs[i].sample == metric) {
            return cli_run_last(run, pairs[i].whole);
        }
    }
    return cli_run_last(run, metric);
}
