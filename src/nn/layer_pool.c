// SPDX-License-Identifier: MIT
// Maximum over windows, and mean over all of height and width.
#include "nn/layers.h"

typedef struct window {
    dnnl_dims_t kernel, strides, pads, dilates; // dilates: 0, none
} window;

static window window_of(const nn_builder *b, const nn_layer *l)
{
    const nn_value *const in = &b->graph->values[l->in];
    if (l->kind == NN_MEAN_POOL) {
        const dnnl_dim_t height = (dnnl_dim_t)in->height;
        const dnnl_dim_t width = (dnnl_dim_t)in->width;
        return (window){.kernel = {height, width}, .strides = {1, 1}};
    }
    const dnnl_dim_t kernel = (dnnl_dim_t)l->window.kernel;
    const dnnl_dim_t stride = (dnnl_dim_t)l->window.stride;
    const dnnl_dim_t pad = (dnnl_dim_t)l->window.pad;
    return (window){
        .kernel = {kernel, kernel},
        .strides = {stride, stride},
        .pads = {pad, pad}};
}

static dnnl_alg_kind_t kind_of(const nn_layer *l)
{
    return l->kind == NN_MAX_POOL ? dnnl_pooling_max
                                  : dnnl_pooling_avg_exclude_padding;
}

void nn_pool_forward(nn_builder *b, const nn_layer *l, nn_trace *t)
{
    nn_plan *const p = b->plan;
    const window w = window_of(b, l);
    const nn_desc x = nn_plan_desc(p, b->flows[l->in].y);
    const nn_desc any = nn_value_desc(b, l->out, NN_ANY);
    nn_op *const op = nn_plan_op(p, "pool", l->relu);
    if (op == NULL) {
        return;
    }
    nn_plan_check(
        p,
        dnnl_pooling_forward_primitive_desc_create(
            &op->pd, op->engine, nn_forward_kind(b), kind_of(l), x, any,
            w.strides, w.kernel, w.dilates, w.pads, w.pads, op->attr),
        op->name);
    t->op = op;
    b->flows[l->out].y = nn_plan_buffer(p, nn_op_desc(op, dnnl_query_dst_md));
    t->workspace = nn_plan_buffer(p, nn_op_desc(op, dnnl_query_workspace_md));
    const nn_arg args[] = {
        {DNNL_ARG_SRC, b->flows[l->in].y},
        {DNNL_ARG_DST, b->flows[l->out].y},
        {DNNL_ARG_WORKSPACE, t->workspace}};
    nn_plan_step(p, op, 3, args);
}

void nn_pool_backward(nn_builder *b, const nn_layer *l, nn_trace *t)
{
    if (l->in == 0) {
        return;
    }
    nn_plan *const p = b->plan;
    const window w = window_of(b, l);
    const nn_mem diff = nn_take_diff(b, l, l->relu);
    const nn_desc dx = nn_plan_desc(p, b->flows[l->in].y);
    const nn_desc dy = nn_plan_desc(p, diff);
    nn_op *const op = nn_plan_op(p, "pool backward", false);
    if (op == NULL) {
        return;
    }
    nn_plan_check(
        p,
        dnnl_pooling_backward_primitive_desc_create(
            &op->pd, op->engine, kind_of(l), dx, dy, w.strides, w.kernel,
            w.dilates, w.pads, w.pads, t->op->pd, op->attr),
        op->name);
    const nn_mem diff_in = nn_plan_buffer(p, dx);
    const nn_arg args[] = {
        {DNNL_ARG_DIFF_DST, diff},
        {DNNL_ARG_DIFF_SRC, diff_in},
        {DNNL_ARG_WORKSPACE, t->workspace}};
    nn_plan_step(p, op, 3, args);
    nn_give_diff(b, l->in, diff_in);
}
