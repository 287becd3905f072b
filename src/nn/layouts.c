// SPDX-License-Identifier: MIT
// Models by name, and the list of tensors that each of them fills.
#include "nn/layouts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "nn/array.h"

#define LAC_MODEL(name) extern const nn_model nn_##name##_model;
#include "nn/models.def"
#undef LAC_MODEL

static const lac_plugin *const models[] = {
#define LAC_MODEL(name) &nn_##name##_model.plugin,
#include "nn/models.def"
#undef LAC_MODEL
};

enum { MODEL_COUNT = sizeof(models) / sizeof(models[0]), NAME_SIZE = 64 };

typedef struct entry {
    char name[NAME_SIZE];
    lac_shape shape;
} entry;

struct nn_tensors {
    entry *entries;
    size_t count, room;
    bool failed;
};

const lac_plugin *const *nn_models(size_t *count_out)
{
    *count_out = MODEL_COUNT;
    return models;
}

void nn_list_add(
    nn_tensors *tensors, size_t rows, size_t cols, const char *format, ...)
{
    entry *const entries = nn_grow(
        tensors->entries, tensors->count, &tensors->room, sizeof(*entries));
    if (entries == NULL) {
        tensors->failed = true;
        return;
    }
    tensors->entries = entries;
    entry *const e = &entries[tensors->count++];
    e->shape = (lac_shape){rows, cols};
    va_list args;
    va_start(args, format);
    const int len = vsnprintf(e->name, sizeof(e->name), format, args);
    va_end(args);
    tensors->failed = tensors->failed || len < 0 || len >= NAME_SIZE;
}

void nn_list_fail(nn_tensors *tensors)
{
    tensors->failed = true;
}

static lac_status open_listed(lac_layout **out, const nn_tensors *listed)
{
    lac_tensor *const tensors = calloc(listed->count + 1, sizeof(*tensors));
    if (tensors == NULL || listed->failed) {
        free(tensors);
        return lac_fail(LAC_ERR_NOMEM, "no memory for the layout of a model");
    }
    for (size_t i = 0; i < listed->count; i++) {
        tensors[i].name = listed->entries[i].name;
        tensors[i].shape = listed->entries[i].shape;
    }
    const lac_status status = lac_layout_open(out, tensors, listed->count);
    free(tensors);
    return status;
}

lac_status nn_model_open(lac_settings **out, const char *spec)
{
    return lac_settings_open(out, "model", models, MODEL_COUNT, spec);
}

lac_status nn_layout_open(lac_layout **out, const char *spec)
{
    lac_settings *settings = NULL;
    nn_tensors listed = {0};
    *out = NULL;
    lac_status status = nn_model_open(&settings, spec);
    if (status != LAC_OK) {
        return status;
    }
    const nn_model *const model = (const void *)settings->plugin;
    model->list(model, settings->state, &listed);
    status = open_listed(out, &listed);
    free(listed.entries);
    lac_settings_close(settings);
    return status;
}
