// SPDX-License-Identifier: MIT
// Feed-forward networks. Opening one builds a plan: the forward steps of all
// layers, the loss and, for training, the backward steps. A call binds the
// caller's vectors to the plan and runs it.
#include "nn/feedforward.h"

#include <stdlib.h>
#include <string.h>

#include "nn/engine.h"
#include "nn/layers.h"
#include "nn/loss.h"

typedef struct feedforward {
    nn_network base;
    nn_graph *graph;
    nn_builder builder;
    float *examples;       // a copy of a batch that is not full
    nn_mem logits, diffs;  // diffs: derivatives by the logits
    const nn_batch *batch; // during a call
    nn_score score;        // of that call
} feedforward;

static const struct {
    nn_plan_layer *forward, *backward;
} kinds[NN_KINDS] = {
    [NN_CONV] = {nn_affine_forward, nn_affine_backward},
    [NN_LINEAR] = {nn_affine_forward, nn_affine_backward},
    [NN_NORM] = {nn_norm_forward, nn_norm_backward},
    [NN_MAX_POOL] = {nn_pool_forward, nn_pool_backward},
    [NN_MEAN_POOL] = {nn_pool_forward, nn_pool_backward},
    [NN_RESIDUAL] = {nn_residual_forward, nn_residual_backward},
};

static void feedforward_close(nn_network *net)
{
    feedforward *const f = (feedforward *)net;
    nn_plan_close(f->builder.plan);
    free(f->builder.flows);
    free(f->builder.traces);
    free(f->examples);
    nn_graph_close(f->graph);
    free(f);
}

static size_t feedforward_dimensions(
    const nn_network *net, size_t tensor, size_t out[NN_DIMENSIONS_MAX])
{
    const feedforward *const f = (const feedforward *)net;
    const nn_tensor *const t = &f->graph->parameters.at[tensor];
    memcpy(out, t->dimensions, t->count * sizeof(*out));
    return t->count;
}

static void initialise_list(
    const nn_tensor_list *list, uint64_t seed, float *out)
{
    for (size_t i = 0; i < list->count; i++) {
        const nn_tensor *const t = &list->at[i];
        float *const x = out + t->offset;
        if (t->start == NN_UNIFORM) {
            nn_fill_uniform(seed, t->name, t->scale, x, t->values);
        } else if (t->start == NN_NORMAL) {
            nn_fill_normal(seed, t->name, t->scale, x, t->values);
        } else {
            for (size_t k = 0; k < t->values; k++) {
                x[k] = (float)t->scale;
            }
        }
    }
}

static void feedforward_initialise(
    const nn_network *net, uint64_t seed, float *parameters, float *statistics)
{
    const feedforward *const f = (const feedforward *)net;
    initialise_list(&f->graph->parameters, seed, parameters);
    initialise_list(&f->graph->statistics, seed, statistics);
}

// The step between forward and backward.
static void run_loss(void *context)
{
    feedforward *const f = context;
    const nn_plan *const plan = f->builder.plan;
    float *const diffs = f->diffs == 0 ? NULL : nn_plan_data(plan, f->diffs);
    const float *const logits = nn_plan_data(plan, f->logits);
    const size_t outputs = f->graph->values[f->graph->value_count - 1].channels;
    nn_loss(
        logits, f->batch->labels, f->batch->count, outputs, diffs, &f->score);
    for (size_t i = 0; f->batch->guesses != NULL && i < f->batch->count; i++) {
        f->batch->guesses[i] = nn_loss_guess(logits + i * outputs, outputs);
    }
}

static lac_status check_batch(const feedforward *f, const nn_batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        if (batch->labels[i] >= f->graph->sample.classes) {
            return lac_fail(
                LAC_ERR_INVALID, "%s: a label is %u, expected below %u",
                f->graph->model, batch->labels[i], f->graph->sample.classes);
        }
    }
    return LAC_OK;
}

static lac_status run_plan(
    feedforward *f, const nn_state *state, const nn_batch *batch, nn_score *out)
{
    nn_plan *const plan = f->builder.plan;
    LAC_TRY(check_batch(f, batch));
    nn_plan_bind(plan, NN_PARAMETERS, state->parameters);
    nn_plan_bind(plan, NN_STATISTICS, state->statistics);
    f->batch = batch;
    f->score = (nn_score){0};
    LAC_TRY(nn_plan_run(plan));
    *out = f->score;
    return LAC_OK;
}

static lac_status feedforward_gradient(
    nn_network *net, const nn_state *state, const nn_batch *batch,
    const lac_key *noise, float *gradient_out, nn_score *out)
{
    feedforward *const f = (feedforward *)net;
    (void)noise;
    if (!f->builder.training) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: was opened to evaluate, expected for training",
            f->graph->model);
    }
    if (batch->count != f->builder.batch) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: a batch has %u examples, expected %zu",
            f->graph->model, batch->count, f->builder.batch);
    }
    nn_plan_bind(f->builder.plan, NN_X, batch->x);
    nn_plan_bind(f->builder.plan, NN_GRADIENT, gradient_out);
    return run_plan(f, state, batch, out);
}

static size_t example_size(const nn_graph *g)
{
    const nn_value *const x = &g->values[0];
    return x->channels * x->height * x->width;
}

static lac_status feedforward_evaluate(
    nn_network *net, const nn_state *state, const nn_batch *batch,
    nn_score *out)
{
    feedforward *const f = (feedforward *)net;
    const size_t size = example_size(f->graph);
    if (f->builder.training) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: was opened for training, expected to evaluate",
            f->graph->model);
    }
    if (batch->count == 0 || batch->count > f->builder.batch) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: a batch has %u examples, expected from 1 to %zu",
            f->graph->model, batch->count, f->builder.batch);
    }
    const float *x = batch->x;
    if (batch->count < f->builder.batch) {
        // The rest are zeros or examples of an earlier call; their results are
        // not used.
        memcpy(f->examples, x, batch->count * size * sizeof(*x));
        x = f->examples;
    }
    nn_plan_bind(f->builder.plan, NN_X, x);
    return run_plan(f, state, batch, out);
}

static const nn_engine feedforward_engine = {
    .close = feedforward_close,
    .dimensions = feedforward_dimensions,
    .initialise = feedforward_initialise,
    .gradient = feedforward_gradient,
    .evaluate = feedforward_evaluate,
};

static lac_status layout_of_list(lac_layout **out, const nn_tensor_list *list)
{
    lac_tensor *const tensors = calloc(list->count + 1, sizeof(*tensors));
    if (tensors == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for the layout of a model");
    }
    for (size_t i = 0; i < list->count; i++) {
        const nn_tensor *const t = &list->at[i];
        tensors[i].name = t->name;
        tensors[i].shape.rows = t->dimensions[0];
        tensors[i].shape.cols = t->values / t->dimensions[0];
    }
    const lac_status status = lac_layout_open(out, tensors, list->count);
    free(tensors);
    return status;
}

static void plan_loss(feedforward *f)
{
    nn_builder *const b = &f->builder;
    const size_t last = f->graph->value_count - 1;
    const nn_desc desc = nn_value_desc(b, last, NN_PLAIN);
    f->logits = b->flows[last].y;
    f->diffs = b->training ? nn_plan_buffer(b->plan, desc) : 0;
    b->flows[last].diff = f->diffs;
    const nn_mem used[] = {f->logits, f->diffs};
    nn_plan_call(b->plan, run_loss, f, 2, used);
}

static lac_status build_plan(feedforward *f)
{
    nn_builder *const b = &f->builder;
    const nn_graph *const g = f->graph;
    const nn_desc x = nn_value_desc(b, 0, NN_PLAIN);
    b->flows[0].y = nn_plan_source(b->plan, NN_X, 0, x);
    for (size_t i = 0; i < g->layer_count; i++) {
        kinds[g->layers[i].kind].forward(b, &g->layers[i], &b->traces[i]);
    }
    plan_loss(f);
    for (size_t i = g->layer_count; b->training && i-- > 0;) {
        kinds[g->layers[i].kind].backward(b, &g->layers[i], &b->traces[i]);
    }
    const lac_status status = nn_plan_finish(b->plan);
    f->base.memory += nn_plan_memory(b->plan);
    return status;
}

// Allocates the memory that does not depend on oneDNN.
static lac_status feedforward_allocate(
    feedforward *f, const nn_options *options)
{
    nn_builder *const b = &f->builder;
    const nn_graph *const g = f->graph;
    b->graph = g;
    b->batch = options->batch;
    b->training = options->training;
    b->flows = calloc(g->value_count, sizeof(*b->flows));
    b->traces = calloc(g->layer_count, sizeof(*b->traces));
    if (!b->training) {
        const size_t size = example_size(g) * b->batch * sizeof(float);
        f->examples = calloc(size, 1);
        f->base.memory += size;
    }
    if (b->flows == NULL || b->traces == NULL ||
        (f->examples == NULL && !b->training)) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for a network");
    }
    return LAC_OK;
}

static lac_status feedforward_fill(
    feedforward *f, const nn_model *model, const nn_options *options)
{
    LAC_TRY(nn_graph_open(&f->graph, model, &options->sample));
    LAC_TRY(feedforward_allocate(f, options));
    LAC_TRY(layout_of_list(&f->base.layout, &f->graph->parameters));
    LAC_TRY(layout_of_list(&f->base.statistics, &f->graph->statistics));
    LAC_TRY(nn_plan_open(&f->builder.plan));
    return build_plan(f);
}

static lac_status feedforward_check(
    const nn_model *model, const nn_options *options)
{
    const char *const name = model->plugin.name;
    const nn_sample *const s = &options->sample;
    if (s->channels == 0 || s->height == 0 || s->width == 0) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: examples are words, expected images or rows",
            name);
    }
    if (s->classes < 2) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: examples have %u classes, expected 2 or more",
            name, s->classes);
    }
    if (options->batch == 0) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: a batch has 0 examples, expected 1 or more",
            name);
    }
    return LAC_OK;
}

lac_status nn_feedforward_open(
    nn_network **out, const nn_model *model, const void *settings,
    const nn_options *options)
{
    (void)settings;
    *out = NULL;
    LAC_TRY(feedforward_check(model, options));
    feedforward *const f = calloc(1, sizeof(*f));
    if (f == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for a network");
    }
    f->base.engine = &feedforward_engine;
    const lac_status status = feedforward_fill(f, model, options);
    if (status != LAC_OK) {
        nn_network_close(&f->base);
        return status;
    }
    *out = &f->base;
    return LAC_OK;
}
