// SPDX-License-Identifier: MIT
// The tensors of a model. Names, order and shapes are those that PyTorch and
// torchvision give their parameters, so that measurements and checkpoints can
// be compared; a convolution is out x (in * height * width). Only parameters
// count, not the running means of batch norms.
#ifndef LACONIC_NN_LAYOUTS_H
#define LACONIC_NN_LAYOUTS_H

#include <laconic/laconic.h>

#include "nn/network.h"

// nn_layout_open opens the layout of the model that `spec` names, such as
// "resnet20" or "lstm:vocabulary=10000". On failure `*out` is NULL.
// Fails with LAC_ERR_NOTFOUND, LAC_ERR_INVALID or LAC_ERR_NOMEM.
lac_status nn_layout_open(lac_layout **out, const char *spec);

// nn_models returns all models and writes their number to `*count_out`.
const lac_plugin *const *nn_models(size_t *count_out);

// The tensors of a model while they are listed.
typedef struct nn_tensors nn_tensors;

// A model: its plug-in, a function that lists its tensors for the default
// sample, and a function that opens it for training on any data that fits, or
// NULL. Feed-forward models use nn_graph_list and nn_feedforward_open, which
// read the members after them.
typedef struct nn_graph nn_graph;
typedef struct nn_model nn_model;
struct nn_model {
    lac_plugin plugin; // must be first
    void (*list)(
        const nn_model *model, const void *settings, nn_tensors *tensors);
    lac_status (*open)(
        nn_network **out, const nn_model *model, const void *settings,
        const nn_options *options);
    void (*describe)(nn_graph *g, const void *shape); // adds its layers
    const void *shape;        // the argument of describe
    nn_sample default_sample; // of its usual data set
};

// nn_model_open reads a spec; the plug-in of the result is a nn_model.
// Fails with LAC_ERR_NOTFOUND, LAC_ERR_INVALID or LAC_ERR_NOMEM.
lac_status nn_model_open(lac_settings **out, const char *spec);

// nn_list_add appends a tensor; its name is formatted. A failure is stored and
// reported when the layout is opened.
void nn_list_add(
    nn_tensors *tensors, size_t rows, size_t cols, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// nn_list_fail stores that there was no memory for a tensor.
void nn_list_fail(nn_tensors *tensors);

#endif
