// SPDX-License-Identifier: MIT
// Convolutions. oneDNN chooses the order of values in memory; weights are
// brought into it once a step and their derivatives back.
#include "nn/layers.h"

typedef struct window {
    dnnl_dims_t strides, pads;
} window;

static window window_of(const nn_layer *l)
{
    const dnnl_dim_t stride = (dnnl_dim_t)l->window.stride;
    const dnnl_dim_t pad = (dnnl_dim_t)l->window.pad;
    return (window){{stride, stride}, {pad, pad}};
}

static nn_desc any_of(const nn_builder *b, nn_mem memory)
{
    const nn_desc desc = nn_plan_desc(b->plan, memory);
    return nn_desc_any(&desc);
}

void nn_conv_forward(nn_builder *b, const nn_layer *l, nn_trace *t)
{
    nn_plan *const p = b->plan;
    const window w = window_of(l);
    const nn_mem weight = nn_parameter(b, l->parameter);
    const nn_mem bias = l->bias ? nn_parameter(b, l->parameter + 1) : 0;
    const nn_desc plain_out = nn_value_desc(b, l->out);
    const nn_desc any_in = any_of(b, b->flows[l->in].y);
    const nn_desc any_out = nn_desc_any(&plain_out);
    const nn_desc any_weight = any_of(b, weight);
    const nn_desc bias_desc = nn_plan_desc(p, bias);
    if (!nn_plan_going(p)) {
        return;
    }
    dnnl_convolution_desc_t d;
    nn_plan_check(
        p,
        dnnl_convolution_forward_desc_init(
            &d, nn_forward_kind(b), dnnl_convolution_direct, &any_in,
            &any_weight, &bias_desc, &any_out, w.strides, w.pads, w.pads),
        "convolution");
    t->op = nn_plan_op(p, "convolution", &d, l->relu, NULL);
    const nn_desc x = nn_op_desc(t->op, dnnl_query_src_md);
    const nn_desc y = nn_op_desc(t->op, dnnl_query_dst_md);
    const nn_desc chosen = nn_op_desc(t->op, dnnl_query_weights_md);
    b->flows[l->out].y = nn_plan_buffer(p, &y);
    const nn_arg args[] = {
        {DNNL_ARG_SRC, nn_plan_as(p, b->flows[l->in].y, &x)},
        {DNNL_ARG_WEIGHTS, nn_plan_as(p, weight, &chosen)},
        {DNNL_ARG_BIAS, bias},
        {DNNL_ARG_DST, b->flows[l->out].y}};
    nn_plan_step(p, t->op, 4, args);
}

static void backward_weights(
    nn_builder *b, const nn_layer *l, const nn_trace *t, nn_mem diff)
{
    nn_plan *const p = b->plan;
    const window w = window_of(l);
    const nn_mem weight = nn_slope(b, l->parameter);
    const nn_mem bias = l->bias ? nn_slope(b, l->parameter + 1) : 0;
    const nn_desc any_x = any_of(b, b->flows[l->in].y);
    const nn_desc any_dy = any_of(b, diff);
    const nn_desc any_weight = any_of(b, weight);
    const nn_desc bias_desc = nn_plan_desc(p, bias);
    if (!nn_plan_going(p)) {
        return;
    }
    dnnl_convolution_desc_t d;
    nn_plan_check(
        p,
        dnnl_convolution_backward_weights_desc_init(
            &d, dnnl_convolution_direct, &any_x, &any_weight, &bias_desc,
            &any_dy, w.strides, w.pads, w.pads),
        "convolution backward");
    nn_op *const op = nn_plan_op(p, "convolution backward", &d, false, t->op);
    const nn_desc x = nn_op_desc(op, dnnl_query_src_md);
    const nn_desc dy = nn_op_desc(op, dnnl_query_diff_dst_md);
    const nn_desc dw = nn_op_desc(op, dnnl_query_diff_weights_md);
    const nn_mem slope = nn_plan_room(p, weight, &dw);
    const nn_arg args[] = {
        {DNNL_ARG_SRC, nn_plan_as(p, b->flows[l->in].y, &x)},
        {DNNL_ARG_DIFF_DST, nn_plan_as(p, diff, &dy)},
        {DNNL_ARG_DIFF_WEIGHTS, slope},
        {DNNL_ARG_DIFF_BIAS, bias}};
    nn_plan_step(p, op, 4, args);
    nn_plan_into(p, slope, weight);
}

static void backward_data(
    nn_builder *b, const nn_layer *l, const nn_trace *t, nn_mem diff)
{
    nn_plan *const p = b->plan;
    const window w = window_of(l);
    const nn_mem weight = nn_parameter(b, l->parameter);
    const nn_desc any_weight = any_of(b, weight);
    const nn_desc any_dy = any_of(b, diff);
    const nn_desc like_x = nn_plan_desc(p, b->flows[l->in].y);
    const nn_desc any_dx = nn_desc_any(&like_x);
    if (!nn_plan_going(p)) {
        return;
    }
    dnnl_convolution_desc_t d;
    nn_plan_check(
        p,
        dnnl_convolution_backward_data_desc_init(
            &d, dnnl_convolution_direct, &any_dx, &any_weight, &any_dy,
            w.strides, w.pads, w.pads),
        "convolution backward");
    nn_op *const op = nn_plan_op(p, "convolution backward", &d, false, t->op);
    const nn_desc dx = nn_op_desc(op, dnnl_query_diff_src_md);
    const nn_desc dy = nn_op_desc(op, dnnl_query_diff_dst_md);
    const nn_desc chosen = nn_op_desc(op, dnnl_query_weights_md);
    const nn_mem diff_in = nn_plan_buffer(p, &dx);
    const nn_arg args[] = {
        {DNNL_ARG_DIFF_DST, nn_plan_as(p, diff, &dy)},
        {DNNL_ARG_WEIGHTS, nn_plan_as(p, weight, &chosen)},
        {DNNL_ARG_DIFF_SRC, diff_in}};
    nn_plan_step(p, op, 3, args);
    nn_give_diff(b, l->in, nn_plan_as(p, diff_in, &like_x));
}

void nn_conv_backward(nn_builder *b, const nn_layer *l, nn_trace *t)
{
    const nn_mem diff = nn_take_diff(b, l, l->relu);
    backward_weights(b, l, t, diff);
    if (l->in > 0) {
        backward_data(b, l, t, diff);
    }
}
