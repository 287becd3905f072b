// SPDX-License-Identifier: MIT
// The planning of each kind of layer. A plan is built from the first layer to
// the last by their forward functions and, for training, back again by their
// backward functions.
#ifndef LACONIC_NN_LAYERS_H
#define LACONIC_NN_LAYERS_H

#include "nn/dnnl_plan.h"
#include "nn/elementwise.h"
#include "nn/graph.h"

// A value while it is planned.
typedef struct nn_flow {
    nn_mem y;    // the value for all examples
    nn_mem diff; // derivative of the loss by it; 0 if there is none yet
    nn_mem lent; // to be added to diff, read-only; or 0
    nn_pass pass;
} nn_flow;

typedef struct nn_builder nn_builder;

// The arguments of the step that updates the running means of a norm.
typedef struct nn_running {
    const nn_builder *builder;
    nn_mem mean, variance;                 // of the batch
    nn_mem running_mean, running_variance; // of the caller
    size_t channels, count;                // count: examples x height x width
} nn_running;

// A layer between its forward and its backward planning.
typedef struct nn_trace {
    nn_op *op;
    nn_mem x;         // its input, in the order it was read
    nn_mem workspace; // passed from forward to backward
    nn_mem mean, variance;
    nn_running running;
    nn_pass pass;
} nn_trace;

struct nn_builder {
    nn_plan *plan;
    const nn_graph *graph;
    size_t batch;
    bool training;
    nn_flow *flows;   // one for each value
    nn_trace *traces; // one for each layer
};

typedef void nn_plan_layer(nn_builder *b, const nn_layer *l, nn_trace *t);

nn_plan_layer nn_affine_forward, nn_affine_backward;
nn_plan_layer nn_norm_forward, nn_norm_backward;
nn_plan_layer nn_pool_forward, nn_pool_backward;
nn_plan_layer nn_residual_forward, nn_residual_backward;

// Shared by the layers.

// nn_value_is_flat returns whether value `v` has no height and width: the
// output of a fully connected layer, and an example that is the input of one.
bool nn_value_is_flat(const nn_builder *b, size_t v);

// nn_value_desc describes value `v` for a whole batch.
nn_desc nn_value_desc(const nn_builder *b, size_t v, nn_order order);

// nn_parameter and nn_parameter_diff return parameter `i` of the caller and its
// derivative.
nn_mem nn_parameter(nn_builder *b, size_t i);
nn_mem nn_parameter_diff(nn_builder *b, size_t i);

// nn_forward_kind returns the propagation kind: training or inference.
dnnl_prop_kind_t nn_forward_kind(const nn_builder *b);

// nn_give_diff adds a memory to the derivative by value `v`, which then owns
// it. nn_lend_diff adds one that other values share. A value gets at most two
// memories, at most one of them lent.
void nn_give_diff(nn_builder *b, size_t v, nn_mem diff);
void nn_lend_diff(nn_builder *b, size_t v, nn_mem diff);

// nn_take_diff returns the derivative by the output of a layer, before its ReLU
// if `relu`.
nn_mem nn_take_diff(nn_builder *b, const nn_layer *l, bool relu);

#endif
