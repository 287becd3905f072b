// SPDX-License-Identifier: MIT
// Reads the folder of a run. Everything in it may be damaged, or of another
// program.
#include "cli/plan/run_files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/launch/launch.h"
#include "cli/train/config.h"
#include "data/dataset.h"
#include "data/file.h"
#include "nn/layouts.h"
#include "train/safetensors_file.h"

static lac_status open_file(
    const plan_run *run, const char *name, char path[DATA_PATH_SIZE])
{
    const char *const folder = run->options->folder;
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
static const char *setting(const plan_run *run, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(run->manifest, "settings"), name));
}

// Returns a number that was recorded at the start, NaN if there is none.
static double fact(const plan_run *run, const char *name)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(run->manifest, "facts"), name));
}

// Reads a whole setting. Older manifests have digits in a string.
static bool whole(
    const plan_run *run, const char *name, uint64_t most, uint64_t *out)
{
    char digits[CLI_OPTION_TEXT_SIZE];
    const char *text = cli_config_text(
        cJSON_GetObjectItemCaseSensitive(
            cJSON_GetObjectItemCaseSensitive(run->manifest, "settings"), name),
        digits);
    return text != NULL && train_take_number(&text, out) && *text == '\0' &&
           *out <= most;
}

static bool take_settings(plan_run *run)
{
    uint64_t workers = 0;
    const char *const overlap = setting(run, "overlap");
    const char *const compressor = setting(run, "compressor");
    run->model = setting(run, "model");
    run->data = setting(run, "data");
    run->algorithm = setting(run, "algorithm");
    run->topology = setting(run, "topology");
    if (run->model == NULL || run->data == NULL || run->algorithm == NULL ||
        run->topology == NULL || overlap == NULL || compressor == NULL ||
        !whole(run, "workers", CLI_WORKERS_MAX, &workers) || workers == 0 ||
        !whole(run, "seed", UINT64_MAX, &run->seed) ||
        !whole(run, "epochs", UINT64_MAX, &run->planned) ||
        isnan(fact(run, "parameters"))) {
        return false;
    }
    run->compressor = *compressor == '\0' ? NULL : compressor;
    run->workers = (uint32_t)workers;
    run->overlap = strcmp(overlap, "yes") == 0;
    return true;
}

lac_status plan_run_read_manifest(plan_run *run)
{
    char path[DATA_PATH_SIZE];
    data_bytes bytes;
    LAC_TRY(open_file(run, "manifest.json", path));
    LAC_TRY(data_file_read(path, &bytes));
    run->manifest = cJSON_ParseWithLength((const char *)bytes.data, bytes.len);
    data_bytes_free(&bytes);
    return take_settings(run)
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_CORRUPT,
                     "%s: is not the manifest of a run, expected a JSON object "
                     "with the settings and facts of `laconic train`",
                     path);
}

// Returns a member of an object of metrics, NaN if it is null or missing.
static double metric(const cJSON *line, const char *name)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(line, name));
}

// Reads one line. Epochs and steps are whole and later than those before.
static bool take_epoch(
    const char *line, size_t len, plan_run *run, plan_run_usage *usage)
{
    const char *end = NULL;
    const plan_run_epoch none = {0};
    const plan_run_epoch *const before =
        run->count == 0 ? &none : &run->epochs[run->count - 1];
    cJSON *const o = cJSON_ParseWithLengthOpts(line, len, &end, 0);
    const double epoch = metric(o, "epoch"), step = metric(o, "step");
    const double payload = metric(o, "payload_bytes");
    // At most 2^53, beyond which doubles are not exact.
    const bool good = end == line + len && epoch > before->epoch &&
                      step > (double)before->step && epoch < 0x1p53 &&
                      step < 0x1p53 && payload >= before->payload;
    if (good) {
        run->text = cJSON_HasObjectItem(o, "test_perplexity");
        run->epochs[run->count++] = (plan_run_epoch){
            .epoch = epoch,
            .step = (uint64_t)step,
            .accuracy = metric(o, "test_accuracy"),
            .perplexity = metric(o, "test_perplexity"),
            .payload = payload,
        };
        *usage = (plan_run_usage){
            metric(o, "compute_seconds"), metric(o, "compress_seconds")};
    }
    cJSON_Delete(o);
    return good;
}

static size_t run_count_lines(const data_bytes *bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes->len; i++) {
        count += bytes->data[i] == '\n';
    }
    return count;
}

static lac_status take_lines(
    const data_bytes *bytes, plan_run *run, plan_run_usage *usage)
{
    const size_t lines = run_count_lines(bytes);
    const char *line = (const char *)bytes->data;
    run->epochs = calloc(lines + 1, sizeof(*run->epochs));
    if (run->epochs == NULL) {
        return data_no_memory(bytes->name, lines);
    }
    for (size_t i = 1; i <= lines; i++) {
        const size_t len = strcspn(line, "\n");
        if (line[len] != '\n' || !take_epoch(line, len, run, usage)) {
            return lac_fail(
                LAC_ERR_CORRUPT,
                "%s: line %zu is damaged, expected an object with a later "
                "epoch and step than the line before",
                bytes->name, i);
        }
        line += len + 1;
    }
    return run->count > 0
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_INVALID,
                     "%s: has no epoch yet, expected a line for each",
                     bytes->name);
}

lac_status plan_run_read_metrics(plan_run *run, plan_run_usage *usage_out)
{
    char path[DATA_PATH_SIZE];
    data_bytes bytes;
    LAC_TRY(open_file(run, "metrics.jsonl", path));
    LAC_TRY(data_file_read(path, &bytes));
    const lac_status status = take_lines(&bytes, run, usage_out);
    data_bytes_free(&bytes);
    return status;
}

// Reads a shape as the layouts have it: a convolution is out x all else.
static bool take_shape(const cJSON *entry, lac_shape *out)
{
    const cJSON *const sizes = cJSON_GetObjectItemCaseSensitive(entry, "shape");
    const cJSON *size;
    lac_shape shape = {1, 1};
    bool first = true;
    cJSON_ArrayForEach(size, sizes)
    {
        const double n = cJSON_GetNumberValue(size);
        size_t *const side = first ? &shape.rows : &shape.cols;
        if (!(n >= 0 && n < 0x1p40) ||
            __builtin_mul_overflow(*side, (size_t)n, side)) {
            return false;
        }
        first = false;
    }
    *out = shape;
    return cJSON_IsArray(sizes);
}

// Lists the tensors of a file until they have `values` values: the parameters
// come before the statistics of batch norms. Returns their number, 0 if there
// are no such tensors.
static size_t list_parameters(
    const cJSON *header, double values, lac_tensor *tensors)
{
    size_t count = 0;
    double left = values;
    for (const cJSON *e = header->child; e != NULL && left > 0; e = e->next) {
        if (strcmp(e->string, TRAIN_METADATA) == 0) {
            continue;
        }
        lac_tensor *const t = &tensors[count++];
        t->name = e->string;
        if (!take_shape(e, &t->shape)) {
            return 0;
        }
        left -= (double)t->shape.rows * (double)t->shape.cols;
    }
    return left == 0 ? count : 0;
}

static lac_status layout_of_file(
    const train_file *f, double values, lac_layout **out)
{
    const int entries = cJSON_GetArraySize(f->header);
    lac_tensor *const tensors = calloc((size_t)entries + 1, sizeof(*tensors));
    if (tensors == NULL) {
        return data_no_memory(f->bytes.name, (size_t)entries);
    }
    const size_t count = list_parameters(f->header, values, tensors);
    const lac_status status =
        count > 0 ? lac_layout_open(out, tensors, count)
                  : lac_fail(
                        LAC_ERR_CORRUPT,
                        "%s: its tensors are not the %.0f parameters of the "
                        "manifest",
                        f->bytes.name, values);
    free(tensors);
    return status;
}

lac_status plan_run_layout(const plan_run *run, lac_layout **out)
{
    const double values = fact(run, "parameters");
    char path[DATA_PATH_SIZE];
    data_bytes bytes;
    train_file file;
    *out = NULL;
    LAC_TRY(nn_layout_open(out, run->model));
    if ((double)lac_layout_values(*out) == values) {
        return LAC_OK;
    }
    lac_layout_close(*out);
    *out = NULL;
    LAC_TRY(open_file(run, "model.safetensors", path));
    LAC_TRY(data_file_read(path, &bytes));
    LAC_TRY(train_file_open(&file, bytes));
    const lac_status status = layout_of_file(&file, values, out);
    train_file_close(&file);
    return status;
}
