// SPDX-License-Identifier: MIT
// Fully connected layers. What an image gives is read in the order it has, and
// the weights are brought into that order.
#include "nn/layers.h"

// The weights, or where their derivatives go: out x in, or seen as out x
// channels x height x width if that is what the examples are.
static nn_mem weight_of(nn_builder *b, const nn_layer *l, nn_source source)
{
    const nn_value *const in = &b->graph->values[l->in];
    const nn_tensor *const t = &b->graph->parameters.at[l->parameter];
    const nn_desc x = nn_value_desc(b, l->in);
    const size_t image[] = {
        t->dimensions[0], in->channels, in->height, in->width};
    const nn_desc desc = x.ndims == 4 ? nn_desc_plain(4, image)
                                      : nn_desc_plain(2, t->dimensions);
    return nn_plan_source(b->plan, source, t->offset, &desc);
}

void nn_linear_forward(nn_builder *b, const nn_layer *l, nn_trace *t)
{
    nn_plan *const p = b->plan;
    const nn_mem weight = weight_of(b, l, NN_PARAMETERS);
    const nn_mem bias = nn_parameter(b, l->parameter + 1);
    t->x = b->flows[l->in].y;
    const nn_desc x = nn_plan_desc(p, t->x);
    const nn_desc y = nn_value_desc(b, l->out);
    const nn_desc plain_weight = nn_plan_desc(p, weight);
    const nn_desc any_weight = nn_desc_any(&plain_weight);
    const nn_desc bias_desc = nn_plan_desc(p, bias);
    if (!nn_plan_going(p)) {
        return;
    }
    dnnl_inner_product_desc_t d;
    nn_plan_check(
        p,
        dnnl_inner_product_forward_desc_init(
            &d, nn_forward_kind(b), &x, &any_weight, &bias_desc, &y),
        "linear");
    t->op = nn_plan_op(p, "linear", &d, l->relu, NULL);
    const nn_desc chosen = nn_op_desc(t->op, dnnl_query_weights_md);
    b->flows[l->out].y = nn_plan_buffer(p, &y);
    const nn_arg args[] = {
        {DNNL_ARG_SRC, t->x},
        {DNNL_ARG_WEIGHTS, nn_plan_as(p, weight, &chosen)},
        {DNNL_ARG_BIAS, bias},
        {DNNL_ARG_DST, b->flows[l->out].y}};
    nn_plan_step(p, t->op, 4, args);
}

static void backward_weights(
    nn_builder *b, const nn_layer *l, const nn_trace *t, nn_mem diff)
{
    nn_plan *const p = b->plan;
    const nn_mem weight = weight_of(b, l, NN_GRADIENT);
    const nn_mem bias = nn_slope(b, l->parameter + 1);
    const nn_desc x = nn_plan_desc(p, t->x);
    const nn_desc dy = nn_plan_desc(p, diff);
    const nn_desc plain_weight = nn_plan_desc(p, weight);
    const nn_desc any_weight = nn_desc_any(&plain_weight);
    const nn_desc bias_desc = nn_plan_desc(p, bias);
    if (!nn_plan_going(p)) {
        return;
    }
    dnnl_inner_product_desc_t d;
    nn_plan_check(
        p,
        dnnl_inner_product_backward_weights_desc_init(
            &d, &x, &any_weight, &bias_desc, &dy),
        "linear backward");
    nn_op *const op = nn_plan_op(p, "linear backward", &d, false, t->op);
    const nn_desc chosen = nn_op_desc(op, dnnl_query_diff_weights_md);
    const nn_mem slope = nn_plan_room(p, weight, &chosen);
    const nn_arg args[] = {
        {DNNL_ARG_SRC, t->x},
        {DNNL_ARG_DIFF_DST, diff},
        {DNNL_ARG_DIFF_WEIGHTS, slope},
        {DNNL_ARG_DIFF_BIAS, bias}};
    nn_plan_step(p, op, 4, args);
    nn_plan_into(p, slope, weight);
}

static void backward_data(
    nn_builder *b, const nn_layer *l, const nn_trace *t, nn_mem diff)
{
    nn_plan *const p = b->plan;
    const nn_mem weight = weight_of(b, l, NN_PARAMETERS);
    const nn_desc plain_weight = nn_plan_desc(p, weight);
    const nn_desc any_weight = nn_desc_any(&plain_weight);
    const nn_desc dy = nn_plan_desc(p, diff);
    const nn_desc dx = nn_plan_desc(p, b->flows[l->in].y);
    if (!nn_plan_going(p)) {
        return;
    }
    dnnl_inner_product_desc_t d;
    nn_plan_check(
        p,
        dnnl_inner_product_backward_data_desc_init(&d, &dx, &any_weight, &dy),
        "linear backward");
    nn_op *const op = nn_plan_op(p, "linear backward", &d, false, t->op);
    const nn_desc chosen = nn_op_desc(op, dnnl_query_weights_md);
    const nn_mem diff_in = nn_plan_buffer(p, &dx);
    const nn_arg args[] = {
        {DNNL_ARG_DIFF_DST, diff},
        {DNNL_ARG_WEIGHTS, nn_plan_as(p, weight, &chosen)},
        {DNNL_ARG_DIFF_SRC, diff_in}};
    nn_plan_step(p, op, 3, args);
    nn_give_diff(b, l->in, diff_in);
}

void nn_linear_backward(nn_builder *b, const nn_layer *l, nn_trace *t)
{
    const nn_mem diff = nn_take_diff(b, l, l->relu);
    backward_weights(b, l, t, diff);
    if (l->in > 0) {
        backward_data(b, l, t, diff);
    }
}
