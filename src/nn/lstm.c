// SPDX-License-Identifier: MIT
// The language model as a network: its options, its initial parameters, and a
// call through embedding, layers and decoder.
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
    // Biases have one dimension; no other name contains this word.
    const bool vector =
        strstr(lac_layout_tensor(net->layout, tensor)->name, "bias") != NULL;
    out[0] = shape.rows;
    out[1] = shape.cols;
    return vector ? 1 : 2;
}

// The distributions of PyTorch's LSTM and of its language model example.
static void lstm_initialise(
    const nn_network *net, uint64_t seed, float *parameters, float *statistics)
{
    const double bound = 1 / sqrt(((const nn_lstm *)(const void *)net)->hidden);
    const size_t count = lac_layout_count(net->layout);
    (void)statistics;
    for (size_t i = 0; i < count; i++) {
        const lac_tensor *const t = lac_layout_tensor(net->layout, i);
        const size_t n = lac_shape_values(t->shape);
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

// In the order of the lines, so that the sums always have the same bits.
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

// Writes `from` after dropout to x[k], and the mask. Every layer has its own
// key.
static void dropout(const nn_lstm_call *call, size_t k, const float *from)
{
    const nn_lstm_layer *const layer = &call->net->layer[k];
    const double p = call->net->dropout;
    const uint32_t threshold = (uint32_t)(p * 0x1p32);
    const float scale = (float)(1 / (1 - p));
    const lac_key key = lac_key_make(
        call->noise->low, LAC_PURPOSE_DROPOUT, call->noise->high,
        lac_scope_shared(), k);
    const size_t n = call->lines * call->net->hidden;
    for (size_t i = 0; i < n; i++) {
        layer->mask[i] = lac_key_draw(&key, (uint32_t)i) >= threshold;
    }
    for (size_t i = 0; i < n; i++) {
        layer->x[i] = from[i] * (scale * (float)layer->mask[i]);
    }
}

static void dropout_backward(const nn_lstm_call *call, size_t k)
{
    const uint8_t *const mask = call->net->layer[k].mask;
    float *const gradient = call->net->gradient;
    const float scale = (float)(1 / (1 - call->net->dropout));
    const size_t n = call->lines * call->net->hidden;
    for (size_t i = 0; i < n; i++) {
        gradient[i] *= scale * (float)mask[i];
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

static lac_status lstm_predict(const nn_lstm_call *call, nn_score *out)
{
    const nn_lstm *const net = call->net;
    embed(call);
    if (call->noise != NULL) {
        dropout(call, 0, net->layer[0].x);
    }
    for (size_t k = 0; k < net->layers; k++) {
        LAC_TRY(nn_lstm_forward(call, k));
        if (call->noise != NULL) {
            dropout(
                call, k + 1, net->layer[k].hidden + call->rows * net->hidden);
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
    LAC_TRY(lstm_predict(&call, out));
    for (size_t k = lstm->layers; k-- > 0;) {
        if (call.noise != NULL) {
            dropout_backward(&call, k + 1);
        }
        LAC_TRY(nn_lstm_backward(&call, k));
    }
    if (call.noise != NULL) {
        dropout_backward(&call, 0);
    }
    embed_backward(&call);
    return LAC_OK;
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
    return lstm_predict(&call, out);
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

static lac_status lstm_check(const nn_lstm_settings *l, const nn_options *o)
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
    // The index of a random draw has 32 bits.
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

// Names and shapes are those of the model with this vocabulary.
static lac_status open_layouts(const nn_lstm *net, nn_network *out)
{
    char spec[128];
    (void)snprintf(
        spec, sizeof(spec), "lstm:vocabulary=%u,hidden=%u,layers=%u",
        net->vocabulary, net->hidden, net->layers);
    LAC_TRY(nn_layout_open(&out->layout, spec));
    return lac_layout_open(&out->statistics, NULL, 0);
}

lac_status nn_lstm_open(
    nn_network **out, const nn_model *model, const void *settings,
    const nn_options *options)
{
    (void)model;
    const nn_lstm_settings *const l = settings;
    *out = NULL;
    LAC_TRY(lstm_check(l, options));
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
    lac_status status = open_layouts(net, &net->network);
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
