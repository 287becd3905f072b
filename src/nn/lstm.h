// SPDX-License-Identifier: MIT
// The LSTM language model while it runs. With the rows of a call side by side
// and its steps one after the other, word (step, row) is line
// step * rows + row of every matrix below.
//
//     x[0]   = dropout(encoder[word])
//     h[k]   = lstm(x[k]),  x[k + 1] = dropout(h[k])
//     logits = x[layers] encoder^T + bias
//
// The gradient stops where a call begins: what it finds in the carry is given.
#ifndef LACONIC_NN_LSTM_H
#define LACONIC_NN_LSTM_H

#include "nn/engine.h"
#include "nn/layouts.h"

typedef struct nn_lstm_settings {
    uint32_t vocabulary; // of the layout; on data, as many words as it has
    uint32_t hidden;
    uint32_t layers;
    double dropout;
} nn_lstm_settings;

enum { NN_LSTM_GATES = 4 }; // in the order of PyTorch: i, f, g, o

// What a layer computes and its gradient needs again. Without gradients all
// layers share their memory: a layer's whole input is multiplied before the
// first line of its output is written.
typedef struct nn_lstm_layer {
    float *x;      // lines x hidden: its input after dropout
    uint8_t *kept; // lines x hidden: 1 where dropout kept x, 0 elsewhere
    float *gates;  // lines x 4 hidden; backwards, their gradient
    float *cells;  // the carry's rows, then lines x hidden
    float *bent;   // lines x hidden: tanh of the cells
    float *hidden; // the carry's rows, then lines x hidden
} nn_lstm_layer;

typedef struct nn_lstm {
    nn_network network; // must be first
    uint32_t vocabulary, hidden, layers;
    uint32_t batch, steps;
    double dropout;
    bool training;
    size_t block; // lines whose logits are in memory at a time
    void *memory;
    nn_lstm_layer *layer; // layers, and one whose x the decoder reads
    float *biases;        // 4 hidden: the two biases of a layer together
    float *turned;        // hidden x 4 hidden: W_hh^T of a layer
    float *logits;        // block x vocabulary
    float *gradient;      // lines x hidden: of a layer's input or output
    float *gradient_c;    // batch x hidden: of the cells of a step
} nn_lstm;

// A call: what goes in, and how many rows it has.
typedef struct nn_lstm_call {
    nn_lstm *net;
    const nn_state *state;
    const nn_batch *batch;
    const lac_key *noise; // NULL: nothing is left out
    float *gradient_out;  // NULL: not wanted
    size_t rows, lines;
} nn_lstm_call;

// nn_lstm_open is the nn_model.open of the language model.
lac_status nn_lstm_open(
    nn_network **out, const nn_model *model, const void *settings,
    const nn_options *options);

// nn_lstm_plan allocates what calls need. nn_lstm_release undoes it, even
// after a failure.
// Fails with LAC_ERR_NOMEM.
lac_status nn_lstm_plan(nn_lstm *net);
void nn_lstm_release(nn_lstm *net);

// nn_lstm_input tells where layer k reads, or for k = layers the decoder.
const float *nn_lstm_input(const nn_lstm_call *call, size_t k);

// nn_lstm_forward goes through layer k, from its input to its hidden lines.
// The carry is read and written.
// This and the next two fail with LAC_ERR_UNSUPPORTED.
lac_status nn_lstm_forward(const nn_lstm_call *call, size_t k);

// nn_lstm_backward turns the gradient of layer k's output, net->gradient, into
// that of its input and writes those of its weights.
lac_status nn_lstm_backward(const nn_lstm_call *call, size_t k);

// nn_lstm_decode scores what the last layer found. Where gradients are wanted
// it writes those of the encoder, of the decoder's bias and, to net->gradient,
// of its input.
lac_status nn_lstm_decode(const nn_lstm_call *call, nn_score *out);

#endif
