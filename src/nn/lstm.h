// SPDX-License-Identifier: MIT
// The LSTM language model. The rows of a call are processed side by side, its
// steps one after the other: word (step, row) is line step * rows + row of
// every matrix below.
//
//     x[0]   = dropout(encoder[word])
//     h[k]   = lstm(x[k]),  x[k + 1] = dropout(h[k])
//     logits = x[layers] encoder^T + bias
//
// The gradient is truncated at the start of a call: the carry counts as
// constant.
#ifndef LACONIC_NN_LSTM_H
#define LACONIC_NN_LSTM_H

#include "nn/engine.h"
#include "nn/layouts.h"

typedef struct nn_lstm_settings {
    uint32_t vocabulary; // of the layout; training uses that of the data
    uint32_t hidden;
    uint32_t layers;
    double dropout;
} nn_lstm_settings;

enum { NN_LSTM_GATES = 4 }; // i, f, g, o, as in PyTorch

// The values of a layer that its gradient needs. Without gradients all layers
// share this memory: a layer multiplies its whole input before it writes the
// first line of its output.
typedef struct nn_lstm_layer {
    float *x;          // lines x hidden: its input after dropout
    uint8_t *mask;     // lines x hidden: 0 where dropout zeroed x, else 1
    float *gates;      // lines x 4 hidden; then their gradient
    float *cells;      // the rows of the carry, then lines x hidden
    float *tanh_cells; // lines x hidden: tanh of the cells
    float *hidden;     // the rows of the carry, then lines x hidden
} nn_lstm_layer;

typedef struct nn_lstm {
    nn_network network; // must be first
    uint32_t vocabulary, hidden, layers;
    uint32_t batch, steps;
    double dropout;
    bool training;
    size_t block; // lines whose logits are in memory at once
    void *memory;
    nn_lstm_layer *layer;  // and one more, whose x is the decoder's input
    float *biases;         // 4 hidden: the sum of a layer's biases
    float *transposed;     // hidden x 4 hidden: W_hh^T of a layer
    float *logits;         // block x vocabulary
    float *gradient;       // lines x hidden: of a layer's input or output
    float *gradient_cells; // batch x hidden: of the cells of a step
} nn_lstm;

// The arguments of a call.
typedef struct nn_lstm_call {
    nn_lstm *net;
    const nn_state *state;
    const nn_batch *batch;
    const lac_key *noise; // NULL: no dropout
    float *gradient_out;  // NULL: evaluate
    size_t rows, lines;
} nn_lstm_call;

// nn_lstm_open is the nn_model.open of the language model.
lac_status nn_lstm_open(
    nn_network **out, const nn_model *model, const void *settings,
    const nn_options *options);

// nn_lstm_plan allocates the memory of all calls. nn_lstm_release frees it,
// even after a failure. Fails with LAC_ERR_NOMEM.
lac_status nn_lstm_plan(nn_lstm *net);
void nn_lstm_release(nn_lstm *net);

// nn_lstm_input returns the input of layer k, or for k = layers of the decoder.
const float *nn_lstm_input(const nn_lstm_call *call, size_t k);

// nn_lstm_forward computes the hidden lines of layer k from its input. It reads
// and writes the carry.
// This and the next two fail with LAC_ERR_UNSUPPORTED or LAC_ERR_NOMEM.
lac_status nn_lstm_forward(const nn_lstm_call *call, size_t k);

// nn_lstm_backward replaces net->gradient, that of layer k's output, by that of
// its input, and writes the gradients of its weights.
lac_status nn_lstm_backward(const nn_lstm_call *call, size_t k);

// nn_lstm_decode computes the loss. For gradients it also writes those of the
// encoder, of the decoder's bias and, to net->gradient, of its input.
lac_status nn_lstm_decode(const nn_lstm_call *call, nn_score *out);

#endif
