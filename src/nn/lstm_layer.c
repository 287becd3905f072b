// SPDX-License-Identifier: MIT
// One LSTM layer, forwards through all steps of a call and backwards.
//
//     i, f, o = sigmoid(x W_ih^T + h' W_hh^T + b_ih + b_hh), g = tanh(...)
//     c = f c' + i g,  h = o tanh(c)
//
// with h' and c' those of the previous step. Products with x are computed for
// all steps at once, those with h' step by step.
#include <string.h>

#include "nn/lstm.h"
#include "nn/lstm_kernels.h"
#include "nn/multiply.h"

// The tensors of a layer, in the order of the layout.
typedef enum layer_tensor {
    WEIGHT_IH,
    WEIGHT_HH,
    BIAS_IH,
    BIAS_HH,
    LAYER_TENSORS,
} layer_tensor;

// The offset of a tensor of layer k in a flat vector.
static size_t tensor_offset(const nn_lstm *net, size_t k, layer_tensor tensor)
{
    // The encoder comes first.
    const size_t index = 1 + k * LAYER_TENSORS + tensor;
    return lac_layout_tensor(net->network.layout, index)->offset;
}

// The hidden rows of a layer, followed by its cells; room for a full batch
// each.
static float *carry_of(const nn_lstm_call *call, size_t k)
{
    const nn_lstm *const net = call->net;
    return call->state->carry + 2 * k * net->batch * net->hidden;
}

static void add_biases(const nn_lstm_call *call, size_t k)
{
    const nn_lstm *const net = call->net;
    const float *const p = call->state->parameters;
    const float *const ih = p + tensor_offset(net, k, BIAS_IH);
    const float *const hh = p + tensor_offset(net, k, BIAS_HH);
    for (size_t j = 0; j < (size_t)NN_LSTM_GATES * net->hidden; j++) {
        net->biases[j] = ih[j] + hh[j];
    }
}

// With few rows, a product spends a third of its time on transposing this
// matrix. Doing it once serves all steps.
static void transpose_recurrent(const nn_lstm_call *call, size_t k)
{
    enum { SIDE = 16 }; // floats in a cache line
    const nn_lstm *const net = call->net;
    const float *const hh =
        call->state->parameters + tensor_offset(net, k, WEIGHT_HH);
    const size_t width = net->hidden;
    const size_t gates = NN_LSTM_GATES * width;
    for (size_t first = 0; first < gates; first += SIDE) {
        const size_t end = gates - first < SIDE ? gates : first + SIDE;
        for (size_t j = 0; j < width; j++) {
            for (size_t i = first; i < end; i++) {
                net->transposed[j * gates + i] = hh[i * width + j];
            }
        }
    }
}

static lac_status forward_step(const nn_lstm_call *call, size_t k, size_t t)
{
    const nn_lstm *const net = call->net;
    const nn_lstm_layer *const layer = &net->layer[k];
    const size_t width = net->hidden;
    const size_t n = call->rows * width;
    const nn_product recurrent = {
        .m = call->rows,
        .n = NN_LSTM_GATES * width,
        .k = width,
        .a = layer->hidden + t * n,
        .b = net->transposed,
        .add = true,
        .c = layer->gates + t * NN_LSTM_GATES * n};
    LAC_TRY(nn_multiply(&recurrent));
    const nn_cell cell = {
        .rows = call->rows,
        .width = width,
        .biases = net->biases,
        .gates = recurrent.c,
        .before = layer->cells + t * n,
        .cells = layer->cells + (t + 1) * n,
        .tanh_cells = layer->tanh_cells + t * n,
        .hidden = layer->hidden + (t + 1) * n};
    nn_lstm_kernels()->cell(&cell);
    return LAC_OK;
}

lac_status nn_lstm_forward(const nn_lstm_call *call, size_t k)
{
    const nn_lstm *const net = call->net;
    const nn_lstm_layer *const layer = &net->layer[k];
    const size_t n = call->rows * net->hidden;
    float *const carry = carry_of(call, k);
    float *const carry_c = carry + (size_t)net->batch * net->hidden;
    const nn_product input = {
        .m = call->lines,
        .n = (size_t)NN_LSTM_GATES * net->hidden,
        .k = net->hidden,
        .a = nn_lstm_input(call, k),
        .b = call->state->parameters + tensor_offset(net, k, WEIGHT_IH),
        .b_transposed = true,
        .c = layer->gates};
    LAC_TRY(nn_multiply(&input));
    add_biases(call, k);
    transpose_recurrent(call, k);
    memcpy(layer->hidden, carry, n * sizeof(float));
    memcpy(layer->cells, carry_c, n * sizeof(float));
    for (size_t t = 0; t < net->steps; t++) {
        LAC_TRY(forward_step(call, k, t));
    }
    memcpy(carry, layer->hidden + net->steps * n, n * sizeof(float));
    memcpy(carry_c, layer->cells + net->steps * n, n * sizeof(float));
    return LAC_OK;
}

// Both biases have the same gradient, the sum of that of the gates.
static void bias_gradients(const nn_lstm_call *call, size_t k)
{
    const nn_lstm *const net = call->net;
    const size_t gates = (size_t)NN_LSTM_GATES * net->hidden;
    float *const ih = call->gradient_out + tensor_offset(net, k, BIAS_IH);
    float *const hh = call->gradient_out + tensor_offset(net, k, BIAS_HH);
    memset(ih, 0, gates * sizeof(float));
    for (size_t i = 0; i < call->lines; i++) {
        const float *const line = net->layer[k].gates + i * gates;
        for (size_t j = 0; j < gates; j++) {
            ih[j] += line[j];
        }
    }
    memcpy(hh, ih, gates * sizeof(float));
}

static lac_status weight_gradients(const nn_lstm_call *call, size_t k)
{
    const nn_lstm *const net = call->net;
    nn_product p = {
        .m = (size_t)NN_LSTM_GATES * net->hidden,
        .n = net->hidden,
        .k = call->lines,
        .a = net->layer[k].gates,
        .a_transposed = true,
        .b = nn_lstm_input(call, k),
        .c = call->gradient_out + tensor_offset(net, k, WEIGHT_IH)};
    LAC_TRY(nn_multiply(&p));
    p.b = net->layer[k].hidden;
    p.c = call->gradient_out + tensor_offset(net, k, WEIGHT_HH);
    return nn_multiply(&p);
}

// Replaces the gates of step t by their gradient, and adds the gradient of the
// previous hidden rows to net->gradient.
static lac_status backward_step(const nn_lstm_call *call, size_t k, size_t t)
{
    const nn_lstm *const net = call->net;
    const nn_lstm_layer *const layer = &net->layer[k];
    const size_t width = net->hidden;
    const size_t n = call->rows * width;
    const nn_cell_backward cell = {
        .rows = call->rows,
        .width = width,
        .gates = layer->gates + t * NN_LSTM_GATES * n,
        .before = layer->cells + t * n,
        .tanh_cells = layer->tanh_cells + t * n,
        .gradient = net->gradient + t * n,
        .gradient_cells = net->gradient_cells};
    nn_lstm_kernels()->cell_backward(&cell);
    if (t == 0) {
        return LAC_OK;
    }
    return nn_multiply(&(nn_product){
        .m = call->rows,
        .n = width,
        .k = NN_LSTM_GATES * width,
        .a = cell.gates,
        .b = call->state->parameters + tensor_offset(net, k, WEIGHT_HH),
        .add = true,
        .c = net->gradient + (t - 1) * n});
}

lac_status nn_lstm_backward(const nn_lstm_call *call, size_t k)
{
    const nn_lstm *const net = call->net;
    memset(
        net->gradient_cells, 0,
        call->rows * net->hidden * sizeof(*net->gradient_cells));
    for (size_t t = net->steps; t-- > 0;) {
        LAC_TRY(backward_step(call, k, t));
    }
    LAC_TRY(weight_gradients(call, k));
    bias_gradients(call, k);
    return nn_multiply(&(nn_product){
        .m = call->lines,
        .n = net->hidden,
        .k = (size_t)NN_LSTM_GATES * net->hidden,
        .a = net->layer[k].gates,
        .b = call->state->parameters + tensor_offset(net, k, WEIGHT_IH),
        .c = net->gradient});
}
