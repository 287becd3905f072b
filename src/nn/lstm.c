// SPDX-License-Identifier: MIT
// The language model as a network: what it is opened for, where its training
// begins, and the way of a call through embedding, layers and decoder.
#include "nn/lstm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/layouts.h"

static size_t lstm_dimensions(
    const nn_network *net, size_t tensor, size_t out[NN_DIMENSIONS_MAX])
{
    const lac_shape shape = lac_layout_tensor(net->layout, tensor)->shape;
    // Only biases have names that end so, and they have one dimension.
    const bool vector =
        strstr(lac_layout_tensor(net->layout, tensor)->name, "bias") != NULL;
    out[0] = shape.rows;
    out[1] = shape.cols;
    return vector ? 1 : 2;
}

// As PyTorch's LSTM and its example of a language model begin.
static void lstm_initialise(
    const nn_network *net, uint64_t seed, float *parameters, float *statistics)
{
    const double bound = 1 / sqrt(((const nn_lstm *)(const void *)net)->hidden);
    const size_t count = lac_layout_count(net->layout);
    (void)statistics;
    for (size_t i = 0; i < count; i++) {
        const lac_tensor *const t = lac_layout_tensor(net->layout, i);
        const size_t n = t->shape.rows * t->shape.cols;
        const bool decoder = i == count - 1;
        const double edge = decoder ? 0 : i == 0 ? 0.1 : bound;
        nn_fill_uniform(seed, t->name, edge, parameters + t->offset, n);
    }
}

static void embed(const nn_lstm_call *call)
{
    const size_t width = call->net->hidden;
    const float *const encoder = call->state->parameters;
    for (size_t i = 0; i < call->lines; i++) {
        memcpy(
            call->net->layer[0].x + i * width,
            encoder + call->batch->tokens[i] * width, width * sizeof(float));
    }
}

// In the order of the lines, so that equal words add up the same way always.
static void embed_backward(const nn_lstm_call *call)
{
    const size_t width = call->net->hidden;
    for (size_t i = 0; i < call->lines; i++) {
        const float *const line = call->net->gradient + i * width;
        float *const word = call->gradient_out + call->batch->tokens[i] * width;
        for (size_t j = 0; j < width; j++) {
            word[j] += line[j];
        }
    }
}

// Writes x[k] and remembers what of `from` it kept. Each of these layers has a
// key of its own.
static void drop(const nn_lstm_call *call, size_t k, const float *from)
{
    const nn_lstm_layer *const layer = &call->net->layer[k];
    const double p = call->net->dropout;
    const uint32_t bar = (uint32_t)(p * 0x1p32);
    const float scale = (float)(1 / (1 - p));
    const lac_key key = lac_key_make(
        call->noise->low, LAC_PURPOSE_DROPOUT, call->noise->high,
        lac_scope_shared(), k);
    const size_t n = call->lines * call->net->hidden;
    for (size_t i = 0; i < n; i++) {
        layer->kept[i] = lac_key_draw(&key, (uint32_t)i) >= bar;
    }
    for (size_t i = 0; i < n; i++) {
        layer->x[i] = from[i] * (scale * (float)layer->kept[i]);
    }
}

static void drop_backward(const nn_lstm_call *call, size_t k)
{
    const uint8_t *const kept = call->net->layer[k].kept;
    float *const gradient = call->net->gradient;
    const float scale = (float)(1 / (1 - call->net->dropout));
    const size_t n = call->lines * call->net->hidden;
    for (size_t i = 0; i < n; i++) {
        gradient[i] *= scale * (float)kept[i];
    }
}

const float *nn_lstm_input(const nn_lstm_call *call, size_t k)
{
    const nn_lstm *const net = call->net;
    if (k == 0 || call->noise != NULL) {
        return net->layer[k].x;
    }
    return net->layer[k - 1].hidden + call->rows * net->hidden;
}

static lac_status predict(const nn_lstm_call *call, nn_score *out)
{
    const nn_lstm *const net = call->net;
    embed(call);
    if (call->noise != NULL) {
        drop(call, 0, net->layer[0].x);
    }
    for (size_t k = 0; k < net->layers; k++) {
        const lac_status status = nn_lstm_forward(call, k);
        if (status != LAC_OK) {
            return status;
        }
        if (call->noise != NULL) {
            drop(call, k + 1, net->layer[k].hidden + call->rows * net->hidden);
        }
    }
    return nn_lstm_decode(call, out);
}

static lac_status lstm_gradient(
    nn_network *net, const nn_state *state, const nn_batch *batch,
    const lac_key *noise, float *gradient_out, nn_score *out)
{
    nn_lstm *const lstm = (void *)net;
    const nn_lstm_call call = {
        .net = lstm,
        .state = state,
        .batch = batch,
        .noise = lstm->dropout > 0 ? noise : NULL,
        .gradient_out = gradient_out,
        .rows = batch->count,
        .lines = (size_t)batch->count * lstm->steps};
    lac_status status = predict(&call, out);
    for (size_t k = lstm->layers; status == LAC_OK && k-- > 0;) {
        if (call.noise != NULL) {
            drop_backward(&call, k + 1);
        }
        status = nn_lstm_backward(&call, k);
    }
    if (status == LAC_OK) {
        if (call.noise != NULL) {
            drop_backward(&call, 0);
        }
        embed_backward(&call);
    }
    return status;
}

static lac_status lstm_evaluate(
    nn_network *net, const nn_state *state, const nn_batch *batch,
    nn_score *out)
{
    nn_lstm *const lstm = (void *)net;
    const nn_lstm_call call = {
        .net = lstm,
        .state = state,
        .batch = batch,
        .rows = batch->count,
        .lines = (size_t)batch->count * lstm->steps};
    return predict(&call, out);
}

static void lstm_close(nn_network *net)
{
    nn_lstm *const lstm = (void *)net;
    nn_lstm_release(lstm);
    free(lstm);
}

static const nn_engine lstm_engine = {
    .close = lstm_close,
    .dimensions = lstm_dimensions,
    .initialise = lstm_initialise,
    .gradient = lstm_gradient,
    .evaluate = lstm_evaluate,
};

static lac_status check(const nn_lstm_settings *l, const nn_options *o)
{
    if (o->sample.channels != 0) {
        return lac_fail(
            LAC_ERR_INVALID, "lstm: examples are %u x %u x %u, expected a text",
            o->sample.channels, o->sample.height, o->sample.width);
    }
    if (o->sample.classes == 0 || o->batch == 0 || o->steps == 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "lstm: %u words, %u rows, %u steps, expected at least 1 of each",
            o->sample.classes, o->batch, o->steps);
    }
    // Draws are numbered by 32 bits.
    const uint64_t lines = (uint64_t)o->batch * o->steps;
    if (lines > UINT32_MAX || lines * l->hidden > UINT32_MAX) {
        return lac_fail(
            LAC_ERR_INVALID,
            "lstm: %u rows of %u words at width %u, expected a product below "
            "2^32",
            o->batch, o->steps, l->hidden);
    }
    return LAC_OK;
}

// The names and shapes are those of the model with as many words.
static lac_status open_layouts(const nn_lstm *net, nn_network *out)
{
    char spec[128];
    (void)snprintf(
        spec, sizeof(spec), "lstm:vocabulary=%u,hidden=%u,layers=%u",
        net->vocabulary, net->hidden, net->layers);
    const lac_status status = nn_layout_open(&out->layout, spec);
    if (status != LAC_OK) {
        return status;
    }
    return lac_layout_open(&out->statistics, NULL, 0);
}

lac_status nn_lstm_open(
    nn_network **out, const nn_model *model, const void *settings,
    const nn_options *options)
{
    (void)model;
    const nn_lstm_settings *const l = settings;
    *out = NULL;
    lac_status status = check(l, options);
    if (status != LAC_OK) {
        return status;
    }
    nn_lstm *const net = calloc(1, sizeof(*net));
    if (net == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "lstm: no memory for a network");
    }
    *net = (nn_lstm){
        .network.engine = &lstm_engine,
        .network.carry = (size_t)2 * l->layers * options->batch * l->hidden,
        .vocabulary = options->sample.classes,
        .hidden = l->hidden,
        .layers = l->layers,
        .batch = options->batch,
        .steps = options->steps,
        .dropout = l->dropout,
        .training = options->training};
    status = open_layouts(net, &net->network);
    if (status == LAC_OK) {
        status = nn_lstm_plan(net);
    }
    if (status != LAC_OK) {
        nn_network_close(&net->network);
        return status;
    }
    *out = &net->network;
    return LAC_OK;
}
