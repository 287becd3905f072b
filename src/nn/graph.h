// SPDX-License-Identifier: MIT
// A feed-forward model as a list of layers. One description of a model gives
// `laconic size` its tensors and the engine its layers:
//
//     nn_conv(g, "conv1", 6, (nn_window){.kernel = 5, .stride = 1}, true);
//     nn_relu(g);
//     nn_max_pool(g, (nn_window){.kernel = 2, .stride = 2});
//     nn_linear(g, "fc", g->sample.classes, true);
//
// Every layer reads the output of the one before. nn_here and nn_from make
// branches, nn_residual adds them. The first failure is stored in `status`; the
// calls after it do nothing.
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
    NN_RESIDUAL,
    NN_KINDS
} nn_kind;

// The window of a convolution or a pool, the same in both directions.
typedef struct nn_window {
    size_t kernel, stride, pad;
} nn_window;

// A tensor between layers, channels x height x width for each example. Value 0
// is the example itself.
typedef struct nn_value {
    size_t channels, height, width;
    size_t uses;  // number of layers that read it
    size_t layer; // whose output it is; unused for value 0
} nn_value;

// A layer, with the ReLU after it.
typedef struct nn_layer {
    nn_kind kind;
    size_t in, out;   // values
    size_t other;     // of a residual addition, the second value
    size_t parameter; // the first one: weight, then bias if it has one
    size_t statistic; // of a batch norm: running mean, then variance
    nn_window window;
    bool bias, relu;
} nn_layer;

// The initial distribution of a tensor: uniform between -scale and scale,
// normal with standard deviation scale, or the constant scale.
typedef enum nn_initial { NN_UNIFORM, NN_NORMAL, NN_CONSTANT } nn_initial;

typedef struct nn_tensor {
    char name[NN_NAME_SIZE];
    size_t dimensions[NN_DIMENSIONS_MAX], count; // as PyTorch has them
    size_t offset, values;                       // in the flat vector
    nn_initial start;
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
    size_t here; // the current value: the input of the next layer
    char prefix[NN_NAME_SIZE];
    lac_status status;
};

// nn_graph_open describes a model for examples like `sample`.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM.
lac_status nn_graph_open(
    nn_graph **out, const nn_model *model, const nn_sample *sample);
void nn_graph_close(nn_graph *g);

// nn_graph_list is the nn_model.list of models whose layers do not depend on
// the settings: it lists the parameters for the default sample.
void nn_graph_list(
    const nn_model *model, const void *settings, nn_tensors *tensors);

// nn_reject_sample fails with LAC_ERR_INVALID: the examples do not fit.
void nn_reject_sample(nn_graph *g, const char *expected);

// nn_prefix sets the prefix of the names of the next layers.
void nn_prefix(nn_graph *g, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// nn_here returns the current value, which the next layer reads. nn_from makes
// another value the current one.
size_t nn_here(const nn_graph *g);
void nn_from(nn_graph *g, size_t value);

// nn_conv is initialised as in PyTorch if it has a bias. Without one a batch
// norm follows, and it is initialised as by He: normal, variance 2 / (kernel^2
// out).
void nn_conv(
    nn_graph *g, const char *name, size_t out, nn_window window, bool bias);
void nn_linear(nn_graph *g, const char *name, size_t out, bool bias);
void nn_norm(nn_graph *g, const char *name);

// nn_relu is fused into the layer before it, which must not be a mean pool.
void nn_relu(nn_graph *g);
void nn_max_pool(nn_graph *g, nn_window window);

// nn_mean_pool takes the mean of each channel over height and width.
void nn_mean_pool(nn_graph *g);

// nn_residual adds the value `other`, which must have the same size.
void nn_residual(nn_graph *g, size_t other);

#endif
