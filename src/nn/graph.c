// SPDX-License-Identifier: MIT
// Builds the description of a model: appends layers, values and tensors to
// arrays.
#include "nn/graph.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "nn/array.h"

static void *nn_graph_no_memory(nn_graph *g)
{
    g->status = lac_fail(LAC_ERR_NOMEM, "no memory for the layers of a model");
    return NULL;
}

// Returns a new layer that reads the current value, or NULL.
static nn_layer *new_layer(nn_graph *g, nn_kind kind)
{
    if (g->status != LAC_OK) {
        return NULL;
    }
    nn_layer *const layers =
        nn_grow(g->layers, g->layer_count, &g->layer_room, sizeof(*g->layers));
    if (layers == NULL) {
        return nn_graph_no_memory(g);
    }
    g->layers = layers;
    nn_layer *const l = &layers[g->layer_count++];
    *l = (nn_layer){
        .kind = kind,
        .in = g->here,
        .other = g->here,
        .parameter = g->parameters.count,
        .statistic = g->statistics.count};
    g->values[g->here].uses++;
    return l;
}

// Adds the output of the last layer, which becomes the current value.
static void new_value(nn_graph *g, size_t channels, size_t height, size_t width)
{
    nn_value *const values =
        nn_grow(g->values, g->value_count, &g->value_room, sizeof(*g->values));
    if (values == NULL) {
        (void)nn_graph_no_memory(g);
        return;
    }
    g->values = values;
    g->here = g->value_count++;
    values[g->here] = (nn_value){
        .channels = channels,
        .height = height,
        .width = width,
        .layer = g->layer_count - 1};
    if (g->layer_count > 0) {
        g->layers[g->layer_count - 1].out = g->here;
    }
}

static void new_tensor(
    nn_graph *g, nn_tensor_list *list, nn_tensor tensor, const char *name,
    const char *part)
{
    nn_tensor *const at =
        nn_grow(list->at, list->count, &list->room, sizeof(*list->at));
    if (at == NULL) {
        (void)nn_graph_no_memory(g);
        return;
    }
    list->at = at;
    const int len = snprintf(
        tensor.name, sizeof(tensor.name), "%s%s.%s", g->prefix, name, part);
    if (len < 0 || len >= NN_NAME_SIZE) {
        g->status = lac_fail(
            LAC_ERR_INVALID, "%s: the name of a tensor is too long", g->model);
        return;
    }
    tensor.offset = list->values;
    tensor.values = 1;
    for (size_t i = 0; i < tensor.count; i++) {
        tensor.values *= tensor.dimensions[i];
    }
    list->values += tensor.values;
    at[list->count++] = tensor;
}

static void new_vector(
    nn_graph *g, nn_tensor_list *list, size_t n, double value, const char *name,
    const char *part)
{
    const nn_tensor tensor = {
        .dimensions = {n}, .count = 1, .start = NN_CONSTANT, .scale = value};
    new_tensor(g, list, tensor, name, part);
}

// Adds the weight of a layer and its bias if it has one, initialised as in
// PyTorch.
static void new_pair(
    nn_graph *g, nn_tensor weight, const char *name, bool has_bias)
{
    size_t fan_in = 1;
    for (size_t i = 1; i < weight.count; i++) {
        fan_in *= weight.dimensions[i];
    }
    weight.start = NN_UNIFORM;
    weight.scale = 1 / sqrt((double)fan_in);
    nn_tensor bias = weight;
    bias.count = 1;
    new_tensor(g, &g->parameters, weight, name, "weight");
    if (has_bias) {
        new_tensor(g, &g->parameters, bias, name, "bias");
    }
}

lac_status nn_graph_open(
    nn_graph **out, const nn_model *model, const nn_sample *sample)
{
    *out = NULL;
    nn_graph *const g = calloc(1, sizeof(*g));
    if (g == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for the layers of a model");
    }
    g->model = model->plugin.name;
    g->sample = *sample;
    g->status = LAC_OK;
    new_value(g, sample->channels, sample->height, sample->width);
    if (g->status == LAC_OK) {
        model->describe(g, model->shape);
    }
    const lac_status status = g->status;
    if (status != LAC_OK) {
        nn_graph_close(g);
        return status;
    }
    *out = g;
    return LAC_OK;
}

void nn_graph_close(nn_graph *g)
{
    if (g != NULL) {
        free(g->parameters.at);
        free(g->statistics.at);
        free(g->layers);
        free(g->values);
        free(g);
    }
}

void nn_graph_list(
    const nn_model *model, const void *settings, nn_tensors *tensors)
{
    nn_graph *g = NULL;
    (void)settings;
    if (nn_graph_open(&g, model, &model->default_sample) != LAC_OK) {
        nn_list_fail(tensors);
        return;
    }
    assert(g != NULL);
    for (size_t i = 0; i < g->parameters.count; i++) {
        const nn_tensor *const t = &g->parameters.at[i];
        nn_list_add(
            tensors, t->dimensions[0], t->values / t->dimensions[0], "%s",
            t->name);
    }
    nn_graph_close(g);
}

void nn_reject_sample(nn_graph *g, const char *expected)
{
    g->status = lac_fail(
        LAC_ERR_INVALID, "%s: examples are %u x %u x %u, expected %s", g->model,
        g->sample.channels, g->sample.height, g->sample.width, expected);
}

void nn_prefix(nn_graph *g, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(g->prefix, sizeof(g->prefix), format, args);
    va_end(args);
}

size_t nn_here(const nn_graph *g)
{
    return g->here;
}

void nn_from(nn_graph *g, size_t value)
{
    g->here = value;
}

static size_t output_size(size_t size, nn_window w)
{
    assert(size + 2 * w.pad >= w.kernel);
    return (size + 2 * w.pad - w.kernel) / w.stride + 1;
}

// Adds the output of a layer that slides a window.
static void new_window_value(
    nn_graph *g, nn_layer *l, size_t channels, nn_window window)
{
    const nn_value in = g->values[l->in];
    l->window = window;
    new_value(
        g, channels, output_size(in.height, window),
        output_size(in.width, window));
}

void nn_conv(
    nn_graph *g, const char *name, size_t out, nn_window window, bool bias)
{
    nn_layer *const l = new_layer(g, NN_CONV);
    if (l == NULL) {
        return;
    }
    const size_t area = window.kernel * window.kernel;
    nn_tensor weight = {
        .dimensions =
            {out, g->values[l->in].channels, window.kernel, window.kernel},
        .count = 4,
        .start = NN_NORMAL,
        .scale = sqrt(2.0 / (double)(area * out))};
    l->bias = bias;
    if (bias) {
        new_pair(g, weight, name, true);
    } else {
        new_tensor(g, &g->parameters, weight, name, "weight");
    }
    new_window_value(g, l, out, window);
}

void nn_linear(nn_graph *g, const char *name, size_t out, bool bias)
{
    nn_layer *const l = new_layer(g, NN_LINEAR);
    if (l != NULL) {
        const nn_value in = g->values[l->in];
        const size_t size = in.channels * in.height * in.width;
        const nn_tensor weight = {.dimensions = {out, size}, .count = 2};
        l->bias = bias;
        new_pair(g, weight, name, bias);
        new_value(g, out, 1, 1);
    }
}

void nn_norm(nn_graph *g, const char *name)
{
    nn_layer *const l = new_layer(g, NN_NORM);
    if (l != NULL) {
        const nn_value in = g->values[l->in];
        const size_t n = in.channels;
        new_vector(g, &g->parameters, n, 1, name, "weight");
        new_vector(g, &g->parameters, n, 0, name, "bias");
        new_vector(g, &g->statistics, n, 0, name, "running_mean");
        new_vector(g, &g->statistics, n, 1, name, "running_var");
        new_value(g, n, in.height, in.width);
    }
}

void nn_relu(nn_graph *g)
{
    if (g->status == LAC_OK) {
        nn_layer *const l = &g->layers[g->values[g->here].layer];
        assert(g->here > 0 && l->kind != NN_MEAN_POOL && !l->relu);
        l->relu = true;
    }
}

// A ReLU and a maximum commute, and there are fewer values after the maximum.
static void swap_relu(nn_graph *g, nn_layer *pool)
{
    const nn_value *const in = &g->values[pool->in];
    if (pool->in > 0 && in->uses == 1 && g->layers[in->layer].relu) {
        g->layers[in->layer].relu = false;
        pool->relu = true;
    }
}

void nn_max_pool(nn_graph *g, nn_window window)
{
    nn_layer *const l = new_layer(g, NN_MAX_POOL);
    if (l != NULL) {
        swap_relu(g, l);
        new_window_value(g, l, g->values[l->in].channels, window);
    }
}

void nn_mean_pool(nn_graph *g)
{
    nn_layer *const l = new_layer(g, NN_MEAN_POOL);
    if (l != NULL) {
        new_value(g, g->values[l->in].channels, 1, 1);
    }
}

void nn_residual(nn_graph *g, size_t other)
{
    nn_layer *const l = new_layer(g, NN_RESIDUAL);
    if (l != NULL) {
        const nn_value in = g->values[l->in];
        l->other = other;
        g->values[other].uses++;
        new_value(g, in.channels, in.height, in.width);
    }
}
