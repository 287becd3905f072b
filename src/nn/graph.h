// SPDX-License-Identifier: MIT
// A feed-forward model as a list of layers. One description of a model gives
// its tensors to `laconic size` and its layers to the engine:
//
//     nn_conv(g, "conv1", 6, (nn_window){.kernel = 5, .stride = 1}, true);
//     nn_relu(g);
//     nn_max_pool(g, (nn_window){.kernel = 2, .stride = 2});
//     nn_linear(g, "fc", g->sample.classes);
//
// Every layer takes the value that the one before it gave; nn_here and nn_from
// make branches, nn_join adds them. A failure is kept in `status` and the rest
// of a description then does nothing.
#ifndef LACONIC_NN_GRAPH_H
#define LACONIC_NN_GRAPH_H

#include "nn/layouts.h"

enum { NN_NAME_SIZE = 64 };

typedef enum nn_kind {
    NN_CONV,
    NN_LINEAR,
    NN_NORM,
    NN_MAX_POOL,
    NN_MEAN_POOL,
    NN_JOIN,
    NN_KINDS
} nn_kind;

// What a window of a convolution or a pool looks like, the same in both
// directions.
typedef struct nn_window {
    size_t kernel, stride, pad;
} nn_window;

// What flows between layers: of each example channels x height x width. Value
// 0 is the example itself.
typedef struct nn_value {
    size_t channels, height, width;
    size_t uses;  // layers that read it
    size_t layer; // that gives it; of no meaning for value 0
} nn_value;

// A layer. The ReLU after it is part of it.
typedef struct nn_layer {
    nn_kind kind;
    size_t in, out;   // values
    size_t other;     // of a join, the second value it adds
    size_t parameter; // its first one: weight, then bias if there is one
    size_t statistic; // of a norm: running mean, then running variance
    nn_window window;
    bool bias, relu;
} nn_layer;

// How a tensor begins: uniform between -scale and scale, normal of deviation
// scale, or scale itself.
typedef enum nn_start { NN_UNIFORM, NN_NORMAL, NN_CONSTANT } nn_start;

typedef struct nn_tensor {
    char name[NN_NAME_SIZE];
    size_t dimensions[NN_DIMENSIONS_MAX], count; // as PyTorch has them
    size_t offset, values;                       // in the flat vector
    nn_start start;
    double scale;
} nn_tensor;

typedef struct nn_tensor_list {
    nn_tensor *at;
    size_t count, room, values;
} nn_tensor_list;

struct nn_graph {
    const char *model; // for messages
    nn_sample sample;
    nn_tensor_list parameters, statistics;
    nn_layer *layers;
    size_t layer_count, layer_room;
    nn_value *values;
    size_t value_count, value_room;
    size_t here; // the value that the next layer takes
    char prefix[NN_NAME_SIZE];
    lac_status status;
};

// nn_graph_open describes a model for examples like `sample`.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM.
lac_status nn_graph_open(
    nn_graph **out, const nn_model *model, const nn_sample *sample);
void nn_graph_close(nn_graph *g);

// nn_graph_list is the nn_model.list of what has the same layers whatever the
// settings: it lists the parameters for the usual examples.
void nn_graph_list(
    const nn_model *model, const void *settings, nn_tensors *tensors);

// nn_refuse fails because examples are not as `expected` says.
void nn_refuse(nn_graph *g, const char *expected);

// nn_prefix begins the names of the layers that follow.
void nn_prefix(nn_graph *g, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// nn_here returns the value that the next layer would take, and nn_from lets
// it take another.
size_t nn_here(const nn_graph *g);
void nn_from(nn_graph *g, size_t value);

// nn_conv begins as PyTorch's does if it has a bias. Without one it stands
// before a batch norm and begins as He's: normal, variance 2 / (kernel^2 out).
void nn_conv(
    nn_graph *g, const char *name, size_t out, nn_window window, bool bias);
void nn_linear(nn_graph *g, const char *name, size_t out);
void nn_norm(nn_graph *g, const char *name);

// nn_relu is done by the layer before it, which must not be a mean.
void nn_relu(nn_graph *g);
void nn_max_pool(nn_graph *g, nn_window window);

// nn_mean_pool takes the mean over all places of each channel.
void nn_mean_pool(nn_graph *g);

// nn_join adds the value `other`, which must be of the same size.
void nn_join(nn_graph *g, size_t other);

#endif
