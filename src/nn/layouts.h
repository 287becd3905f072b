// SPDX-License-Identifier: MIT
// Which tensors a model is made of. Names, order and shapes are those that
// PyTorch and torchvision give their parameters, so that measurements and
// checkpoints can be compared; a convolution is out x (in * height * width).
// Only what is learnt counts: running means of batch norms are not there.
#ifndef LACONIC_NN_LAYOUTS_H
#define LACONIC_NN_LAYOUTS_H

#include <laconic/laconic.h>

#include "nn/network.h"

// nn_layout_open gives the layout of the model that `spec` names, such as
// "resnet20" or "lstm:vocabulary=10000". On failure `*out` is NULL.
// Fails with LAC_ERR_NOTFOUND, LAC_ERR_INVALID or LAC_ERR_NOMEM.
lac_status nn_layout_open(lac_layout **out, const char *spec);

// nn_models returns what can be named, `*count_out` of them.
const lac_plugin *const *nn_models(size_t *count_out);

// The tensors of a model while they are listed.
typedef struct nn_tensors nn_tensors;

// A model: its plug-in, a function that lists its tensors as they are for the
// data it was made for, and one that opens it for training on any data it fits,
// or NULL. Those of a feed-forward model are nn_graph_list and
// nn_feedforward_open, which use the members after them.
typedef struct nn_graph nn_graph;
typedef struct nn_model nn_model;
struct nn_model {
    lac_plugin plugin; // must be first
    void (*list)(
        const nn_model *model, const void *settings, nn_tensors *tensors);
    lac_status (*open)(
        nn_network **out, const nn_model *model, const void *settings,
        const nn_options *options);
    void (*describe)(nn_graph *g, const void *shape); // names its layers
    const void *shape;                                // what describe gets
    nn_sample usual;                                  // what it was made for
};

// nn_model_open reads a spec; the plug-in of the result is a nn_model.
// Fails with LAC_ERR_NOTFOUND, LAC_ERR_INVALID or LAC_ERR_NOMEM.
lac_status nn_model_open(lac_settings **out, const char *spec);

// nn_add lists the next tensor; its name is formatted. A failure is kept and
// reported when the layout is opened.
void nn_add(
    nn_tensors *tensors, size_t rows, size_t cols, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// nn_add_nothing notes that a tensor could not be listed for want of memory.
void nn_add_nothing(nn_tensors *tensors);

#endif
