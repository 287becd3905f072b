// SPDX-License-Identifier: MIT
// Convolutions and fully connected layers: products with weights plus a bias.
// Once in each run the weights are copied to the order that oneDNN chose, and
// their derivatives back. For a convolution oneDNN also chooses the order of
// the values; a fully connected layer reads them in the order they have.
#include "nn/layers.h"

// Input, parameters and output of a layer, or the derivatives by them.
typedef struct ends {
    nn_desc x, weight, bias, y;
} ends;

// `hint` is the primitive of the forward step, or NULL if this is it.
static dnnl_status_t create_conv(
    nn_op *op, const nn_layer *l, dnnl_prop_kind_t kind, const ends *e,
    const_dnnl_primitive_desc_t hint)
{
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    const dnnl_dim_t stride = (dnnl_dim_t)l->window.stride;
    const dnnl_dim_t pad = (dnnl_dim_t)l->window.pad;
    const dnnl_dims_t strides = {stride, stride}, pads = {pad, pad};
    const dnnl_dims_t dilates = {0, 0}; // none
    switch (kind) {
    case dnnl_backward_weights:
        return dnnl_convolution_backward_weights_primitive_desc_create(
            &op->pd, op->engine, direct, e->x, e->weight, e->bias, e->y,
            strides, dilates, pads, pads, hint, op->attr);
    case dnnl_backward_data:
        return dnnl_convolution_backward_data_primitive_desc_create(
            &op->pd, op->engine, direct, e->x, e->weight, e->y, strides,
            dilates, pads, pads, hint, op->attr);
    default:
        return dnnl_convolution_forward_primitive_desc_create(
            &op->pd, op->engine, kind, direct, e->x, e->weight, e->bias, e->y,
            strides, dilates, pads, pads, op->attr);
    }
}

static dnnl_status_t create_linear(
    nn_op *op, dnnl_prop_kind_t kind, const ends *e,
    const_dnnl_primitive_desc_t hint)
{
    switch (kind) {
    case dnnl_backward_weights:
        return dnnl_inner_product_backward_weights_primitive_desc_create(
            &op->pd, op->engine, e->x, e->weight, e->bias, e->y, hint,
            op->attr);
    case dnnl_backward_data:
        return dnnl_inner_product_backward_data_primitive_desc_create(
            &op->pd, op->engine, e->x, e->weight, e->y, hint, op->attr);
    default:
        return dnnl_inner_product_forward_primitive_desc_create(
            &op->pd, op->engine, kind, e->x, e->weight, e->bias, e->y,
            op->attr);
    }
}

// Returns the primitive for these memories, or NULL after a failure.
static nn_op *choose_primitive(
    nn_builder *b, const nn_layer *l, dnnl_prop_kind_t kind, const ends *e,
    const nn_op *forward)
{
    static const char *const names[2][2] = {
        {"linear", "linear backward"}, {"convolution", "convolution backward"}};
    const bool is_conv = l->kind == NN_CONV, is_backward = forward != NULL;
    nn_op *const op = nn_plan_op(
        b->plan, names[is_conv][is_backward], l->relu && !is_backward);
    if (op != NULL) {
        const_dnnl_primitive_desc_t hint = is_backward ? forward->pd : NULL;
        nn_plan_check(
            b->plan,
            is_conv ? create_conv(op, l, kind, e, hint)
                    : create_linear(op, kind, e, hint),
            op->name);
    }
    return op;
}

// Describes the weights. Those of a fully connected layer are out x in, or out
// x channels x height x width if its input is images.
static nn_desc weight_desc(
    const nn_builder *b, const nn_layer *l, nn_order order)
{
    const nn_value *const in = &b->graph->values[l->in];
    const nn_tensor *const t = &b->graph->parameters.at[l->parameter];
    if (l->kind == NN_LINEAR && !nn_value_is_flat(b, l->in)) {
        const size_t images[] = {
            t->dimensions[0], in->channels, in->height, in->width};
        return nn_plan_describe(b->plan, 4, images, order);
    }
    return nn_plan_describe(b->plan, t->count, t->dimensions, order);
}

// The weights, or their derivatives.
static nn_mem weight_of(nn_builder *b, const nn_layer *l, nn_source source)
{
    const nn_tensor *const t = &b->graph->parameters.at[l->parameter];
    return nn_plan_source(
        b->plan, source, t->offset, weight_desc(b, l, NN_PLAIN));
}

// `y` has the order of the output, or plain order if it does not exist yet.
static ends ends_of(
    const nn_builder *b, const nn_layer *l, nn_mem bias, nn_desc y)
{
    const bool is_conv = l->kind == NN_CONV;
    return (ends){
        .x = is_conv ? nn_value_desc(b, l->in, NN_ANY)
                     : nn_plan_desc(b->plan, b->flows[l->in].y),
        .weight = weight_desc(b, l, NN_ANY),
        .bias = nn_plan_desc(b->plan, bias),
        .y = is_conv ? nn_value_desc(b, l->out, NN_ANY) : y};
}

void nn_affine_forward(nn_builder *b, const nn_layer *l, nn_trace *t)
{
    nn_plan *const p = b->plan;
    const nn_mem weight = weight_of(b, l, NN_PARAMETERS);
    const nn_mem bias = l->bias ? nn_parameter(b, l->parameter + 1) : 0;
    const ends e = ends_of(b, l, bias, nn_value_desc(b, l->out, NN_PLAIN));
    t->op = choose_primitive(b, l, nn_forward_kind(b), &e, NULL);
    const nn_desc x = nn_op_desc(t->op, dnnl_query_src_md);
    const nn_desc y = nn_op_desc(t->op, dnnl_query_dst_md);
    const nn_desc chosen = nn_op_desc(t->op, dnnl_query_weights_md);
    b->flows[l->out].y = nn_plan_buffer(p, y);
    const nn_arg args[] = {
        {DNNL_ARG_SRC, nn_plan_as(p, b->flows[l->in].y, x)},
        {DNNL_ARG_WEIGHTS, nn_plan_as(p, weight, chosen)},
        {DNNL_ARG_BIAS, bias},
        {DNNL_ARG_DST, b->flows[l->out].y}};
    nn_plan_step(p, t->op, 4, args);
}

static void backward_weights(
    nn_builder *b, const nn_layer *l, const nn_trace *t, nn_mem diff)
{
    nn_plan *const p = b->plan;
    const nn_mem weight = weight_of(b, l, NN_GRADIENT);
    const nn_mem bias = l->bias ? nn_parameter_diff(b, l->parameter + 1) : 0;
    const ends e = ends_of(b, l, bias, nn_plan_desc(p, diff));
    nn_op *const op = choose_primitive(b, l, dnnl_backward_weights, &e, t->op);
    const nn_desc x = nn_op_desc(op, dnnl_query_src_md);
    const nn_desc dy = nn_op_desc(op, dnnl_query_diff_dst_md);
    const nn_desc dw = nn_op_desc(op, dnnl_query_diff_weights_md);
    const nn_mem diff_weight = nn_plan_room(p, weight, dw);
    const nn_arg args[] = {
        {DNNL_ARG_SRC, nn_plan_as(p, b->flows[l->in].y, x)},
        {DNNL_ARG_DIFF_DST, nn_plan_as(p, diff, dy)},
        {DNNL_ARG_DIFF_WEIGHTS, diff_weight},
        {DNNL_ARG_DIFF_BIAS, bias}};
    nn_plan_step(p, op, 4, args);
    nn_plan_into(p, diff_weight, weight);
}

static void backward_data(
    nn_builder *b, const nn_layer *l, const nn_trace *t, nn_mem diff)
{
    nn_plan *const p = b->plan;
    const nn_mem weight = weight_of(b, l, NN_PARAMETERS);
    ends e = ends_of(b, l, 0, nn_plan_desc(p, diff));
    if (l->kind == NN_CONV && l->window.stride > 1) {
        // oneDNN 3 would choose channels last, which needs copies: a step of
        // ResNet-8 takes 6 % longer.
        e.x = nn_op_desc(t->op, dnnl_query_src_md);
        e.y = nn_plan_desc(p, diff);
    }
    nn_op *const op = choose_primitive(b, l, dnnl_backward_data, &e, t->op);
    const nn_desc like_x = nn_plan_desc(p, b->flows[l->in].y);
    const nn_desc dx = nn_op_desc(op, dnnl_query_diff_src_md);
    const nn_desc dy = nn_op_desc(op, dnnl_query_diff_dst_md);
    const nn_desc chosen = nn_op_desc(op, dnnl_query_weights_md);
    const nn_mem diff_in = nn_plan_buffer(p, dx);
    const nn_arg args[] = {
        {DNNL_ARG_DIFF_DST, nn_plan_as(p, diff, dy)},
        {DNNL_ARG_WEIGHTS, nn_plan_as(p, weight, chosen)},
        {DNNL_ARG_DIFF_SRC, diff_in}};
    nn_plan_step(p, op, 3, args);
    nn_give_diff(b, l->in, nn_plan_as(p, diff_in, like_x));
}

void nn_affine_backward(nn_builder *b, const nn_layer *l, nn_trace *t)
{
    const nn_mem diff = nn_take_diff(b, l, l->relu);
    backward_weights(b, l, t, diff);
    if (l->in > 0) {
        backward_data(b, l, t, diff);
    }
}
