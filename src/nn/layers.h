// SPDX-License-Identifier: MIT
// How each kind of layer is planned. A plan is made from the first layer to
// the last by their forward functions and, for training, back again by their
// backward functions.
#ifndef LACONIC_NN_LAYERS_H
#define LACONIC_NN_LAYERS_H

#include "nn/dnnl_plan.h"
#include "nn/elementwise.h"
#include "nn/graph.h"

// What is known of a value while it is planned.
typedef struct nn_flow {
    nn_mem y;    // the value for all examples
    nn_mem diff; // derivative of the loss by it; 0 where none came yet
    nn_mem lent; // what has to be added to that, or 0; not to be written
    nn_pass pass;
} nn_flow;

typedef struct nn_builder nn_builder;

// What a norm hands to the step that updates its running means.
typedef struct nn_running {
    const nn_builder *builder;
    nn_mem mean, variance;                 // of the batch
    nn_mem running_mean, running_variance; // of the caller
    size_t channels, count;                // count: examples x places
} nn_running;

// What is known of a layer between its forward and its backward planning.
typedef struct nn_trace {
    nn_op *op;
    nn_mem x;         // what it read, in the order it read it
    nn_mem workspace; // what its backward wants of its forward
    nn_mem mean, variance;
    nn_running running;
    nn_pass pass;
} nn_trace;

struct nn_builder {
    nn_plan *plan;
    const nn_graph *graph;
    size_t batch;
    bool training;
    nn_flow *flows;   // one a value
    nn_trace *traces; // one a layer
};

typedef void nn_plan_layer(nn_builder *b, const nn_layer *l, nn_trace *t);

nn_plan_layer nn_affine_forward, nn_affine_backward;
nn_plan_layer nn_norm_forward, nn_norm_backward;
nn_plan_layer nn_pool_forward, nn_pool_backward;
nn_plan_layer nn_join_forward, nn_join_backward;

// What layers have in common.

// nn_value_desc describes value `v` for a whole batch, in plain order.
nn_desc nn_value_desc(const nn_builder *b, size_t v);

// nn_parameter and nn_slope give parameter `i` of the caller and where its
// derivative goes.
nn_mem nn_parameter(nn_builder *b, size_t i);
nn_mem nn_slope(nn_builder *b, size_t i);

// nn_forward_kind says what oneDNN shall prepare for.
dnnl_prop_kind_t nn_forward_kind(const nn_builder *b);

// nn_give_diff adds to the derivative by value `v` a memory that is then its
// own; nn_lend_diff one that other values share. A value gets at most two, and
// is lent at most one.
void nn_give_diff(nn_builder *b, size_t v, nn_mem diff);
void nn_lend_diff(nn_builder *b, size_t v, nn_mem diff);

// nn_take_diff returns the derivative by the result of a layer; that before the
// ReLU at its end if `relu`.
nn_mem nn_take_diff(nn_builder *b, const nn_layer *l, bool relu);

#endif
