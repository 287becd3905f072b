// SPDX-License-Identifier: MIT
// Batch norms, with the ReLU after them. In training they use the mean and the
// variance of the batch and update the running means of both as PyTorch does:
// with momentum 0.1, and the unbiased estimate of the variance. Otherwise they
// use the running means.
#include "nn/layers.h"

static const float EPSILON = 1e-5F;

static unsigned flags_of(const nn_builder *b, const nn_layer *l)
{
    return (unsigned)dnnl_use_scale | (unsigned)dnnl_use_shift |
           (l->relu ? (unsigned)dnnl_fuse_norm_relu : 0) |
           (b->training ? 0 : (unsigned)dnnl_use_global_stats);
}

static nn_mem statistic(nn_builder *b, size_t i)
{
    const nn_tensor *const t = &b->graph->statistics.at[i];
    const nn_desc desc =
        nn_plan_describe(b->plan, t->count, t->dimensions, NN_PLAIN);
    return nn_plan_source(b->plan, NN_STATISTICS, t->offset, desc);
}

static void update_mean(
    float *mean, const float *now, size_t n, double correction)
{
    const double momentum = 0.1;
    for (size_t i = 0; i < n; i++) {
        const double step = correction * (double)now[i] - (double)mean[i];
        mean[i] = (float)((double)mean[i] + momentum * step);
    }
}

static void update_running(void *context)
{
    const nn_running *const r = context;
    const nn_plan *const p = r->builder->plan;
    const double count = (double)r->count;
    const double unbiased = r->count > 1 ? count / (count - 1) : 1;
    update_mean(
        nn_plan_data(p, r->running_mean), nn_plan_data(p, r->mean), r->channels,
        1);
    update_mean(
        nn_plan_data(p, r->running_variance), nn_plan_data(p, r->variance),
        r->channels, unbiased);
}

// Adds the step after the norm that updates its running means.
static void add_update(nn_builder *b, const nn_layer *l, nn_trace *t)
{
    const nn_value *const in = &b->graph->values[l->in];
    t->running = (nn_running){
        .builder = b,
        .mean = t->mean,
        .variance = t->variance,
        .running_mean = statistic(b, l->statistic),
        .running_variance = statistic(b, l->statistic + 1),
        .channels = in->channels,
        .count = b->batch * in->height * in->width};
    const nn_mem used[] = {t->mean, t->variance};
    nn_plan_call(b->plan, update_running, &t->running, 2, used);
}

void nn_norm_forward(nn_builder *b, const nn_layer *l, nn_trace *t)
{
    nn_plan *const p = b->plan;
    t->x = b->flows[l->in].y;
    const nn_desc x = nn_plan_desc(p, t->x);
    nn_op *const op = nn_plan_op(p, "batch norm", false);
    if (op == NULL) {
        return;
    }
    nn_plan_check(
        p,
        dnnl_batch_normalization_forward_primitive_desc_create(
            &op->pd, op->engine, nn_forward_kind(b), x, x, EPSILON,
            flags_of(b, l), op->attr),
        op->name);
    t->op = op;
    const nn_desc vector =
        nn_plan_describe(p, 1, &b->graph->values[l->in].channels, NN_PLAIN);
    const bool replace = !b->training && b->graph->values[l->in].uses == 1;
    const nn_mem y = replace && l->in > 0 ? t->x : nn_plan_buffer(p, x);
    t->workspace = nn_plan_buffer(p, nn_op_desc(op, dnnl_query_workspace_md));
    t->mean =
        b->training ? nn_plan_buffer(p, vector) : statistic(b, l->statistic);
    t->variance = b->training ? nn_plan_buffer(p, vector)
                              : statistic(b, l->statistic + 1);
    const nn_arg args[] = {
        {DNNL_ARG_SRC, t->x},
        {DNNL_ARG_DST, y},
        {DNNL_ARG_MEAN, t->mean},
        {DNNL_ARG_VARIANCE, t->variance},
        {DNNL_ARG_SCALE, nn_parameter(b, l->parameter)},
        {DNNL_ARG_SHIFT, nn_parameter(b, l->parameter + 1)},
        {DNNL_ARG_WORKSPACE, t->workspace}};
    nn_plan_step(p, op, 7, args);
    if (b->training) {
        add_update(b, l, t);
    }
    b->flows[l->out].y = y;
}

void nn_norm_backward(nn_builder *b, const nn_layer *l, nn_trace *t)
{
    nn_plan *const p = b->plan;
    const nn_mem diff = nn_take_diff(b, l, false);
    const nn_desc x = nn_plan_desc(p, t->x);
    nn_op *const op = nn_plan_op(p, "batch norm backward", false);
    if (op == NULL) {
        return;
    }
    nn_plan_check(
        p,
        dnnl_batch_normalization_backward_primitive_desc_create(
            &op->pd, op->engine, dnnl_backward, x, x, x, EPSILON,
            flags_of(b, l), t->op->pd, op->attr),
        op->name);
    // oneDNN 2 needs the shift here. oneDNN 3 rejects it, but only when it
    // runs.
    const nn_mem shift =
        DNNL_VERSION_MAJOR < 3 ? nn_parameter(b, l->parameter + 1) : 0;
    const nn_mem diff_in = nn_plan_buffer(p, x);
    const nn_arg args[] = {
        {DNNL_ARG_SRC, t->x},
        {DNNL_ARG_MEAN, t->mean},
        {DNNL_ARG_VARIANCE, t->variance},
        {DNNL_ARG_DIFF_DST, diff},
        {DNNL_ARG_SCALE, nn_parameter(b, l->parameter)},
        {DNNL_ARG_SHIFT, shift},
        {DNNL_ARG_WORKSPACE, t->workspace},
        {DNNL_ARG_DIFF_SRC, diff_in},
        {DNNL_ARG_DIFF_SCALE, nn_parameter_diff(b, l->parameter)},
        {DNNL_ARG_DIFF_SHIFT, nn_parameter_diff(b, l->parameter + 1)}};
    nn_plan_step(p, op, 10, args);
    nn_give_diff(b, l->in, diff_in);
}
