// SPDX-License-Identifier: MIT
// The layout of a run: by its model's name, or as the file of its model has it.
#include "cli/plan/run_layout.h"

#include <stdlib.h>
#include <string.h>

#include "data/file.h"
#include "nn/layouts.h"
#include "train/safetensors_file.h"

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

lac_status plan_run_layout(const cli_run *run, lac_layout **out)
{
    const double values = run->parameters;
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
    LAC_TRY(cli_run_file(run->folder, "model.safetensors", path));
    LAC_TRY(data_file_read(path, &bytes));
    LAC_TRY(train_file_open(&file, bytes));
    const lac_status status = layout_of_file(&file, values, out);
    train_file_close(&file);
    return status;
}
