// SPDX-License-Identifier: MIT
// What the kinds of layers have in common.
#include "nn/layers.h"

// Whether a value has no places: what a fully connected layer gives, and an
// example that goes straight into one.
static bool is_flat(const nn_builder *b, size_t v)
{
    const nn_layer *const layers = b->graph->layers;
    const size_t layer = v == 0 ? 0 : b->graph->values[v].layer;
    return layers[layer].kind == NN_LINEAR;
}

nn_desc nn_value_desc(const nn_builder *b, size_t v)
{
    const nn_value *const value = &b->graph->values[v];
    if (is_flat(b, v)) {
        const size_t size = value->channels * value->height * value->width;
        return nn_desc_plain(2, (const size_t[]){b->batch, size});
    }
    return nn_desc_plain(
        4, (const size_t[]){
               b->batch, value->channels, value->height, value->width});
}

static nn_mem tensor(nn_builder *b, nn_source source, size_t i)
{
    const nn_tensor *const t = &b->graph->parameters.at[i];
    const nn_desc desc = nn_desc_plain(t->count, t->dimensions);
    return nn_plan_source(b->plan, source, t->offset, &desc);
}

nn_mem nn_parameter(nn_builder *b, size_t i)
{
    return tensor(b, NN_PARAMETERS, i);
}

nn_mem nn_slope(nn_builder *b, size_t i)
{
    return tensor(b, NN_GRADIENT, i);
}

dnnl_prop_kind_t nn_forward_kind(const nn_builder *b)
{
    return b->training ? dnnl_forward_training : dnnl_forward_inference;
}

void nn_give_diff(nn_builder *b, size_t v, nn_mem diff)
{
    nn_flow *const flow = &b->flows[v];
    if (flow->diff == 0) {
        flow->diff = diff;
        return;
    }
    const nn_desc desc = nn_plan_desc(b->plan, diff);
    dnnl_binary_desc_t d;
    nn_plan_check(
        b->plan,
        dnnl_binary_desc_init(&d, dnnl_binary_add, &desc, &desc, &desc),
        "sum of gradients");
    nn_op *const op = nn_plan_op(b->plan, "sum of gradients", &d, false, NULL);
    const nn_arg args[] = {
        {DNNL_ARG_SRC_0, diff},
        {DNNL_ARG_SRC_1, flow->diff},
        {DNNL_ARG_DST, diff}};
    nn_plan_step(b->plan, op, 3, args);
    flow->diff = diff;
}

nn_mem nn_take_diff(nn_builder *b, const nn_layer *l)
{
    const nn_flow flow = b->flows[l->out];
    if (!l->relu) {
        return flow.diff;
    }
    const nn_desc desc = nn_plan_desc(b->plan, flow.y);
    dnnl_eltwise_desc_t d;
    nn_plan_check(
        b->plan,
        dnnl_eltwise_forward_desc_init(
            &d, dnnl_forward_training, dnnl_eltwise_relu_use_dst_for_bwd, &desc,
            0, 0),
        "ReLU");
    nn_op *const hint = nn_plan_op(b->plan, "ReLU", &d, false, NULL);
    nn_plan_check(
        b->plan,
        dnnl_eltwise_backward_desc_init(
            &d, dnnl_eltwise_relu_use_dst_for_bwd, &desc, &desc, 0, 0),
        "ReLU");
    nn_op *const op = nn_plan_op(b->plan, "ReLU backward", &d, false, hint);
    const nn_arg args[] = {
        {DNNL_ARG_DST, flow.y},
        {DNNL_ARG_DIFF_DST, flow.diff},
        {DNNL_ARG_DIFF_SRC, flow.diff}};
    nn_plan_step(b->plan, op, 3, args);
    return flow.diff;
}
