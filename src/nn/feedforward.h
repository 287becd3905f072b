// SPDX-License-Identifier: MIT
// The engine of feed-forward networks: a graph of layers, planned on oneDNN.
#ifndef LACONIC_NN_FEEDFORWARD_H
#define LACONIC_NN_FEEDFORWARD_H

#include "nn/graph.h"
#include "nn/network.h"

// nn_feedforward_open is the nn_model.open of models that have a describe.
lac_status nn_feedforward_open(
    nn_network **out, const nn_model *model, const void *settings,
    const nn_options *options);

#endif
