// SPDX-License-Identifier: MIT
// Functions that the kinds of layers share.
#include "nn/layers.h"

#include <assert.h>

bool nn_value_is_flat(const nn_builder *b, size_t v)
{
    const nn_layer *const layers = b->graph->layers;
    const size_t layer = v == 0 ? 0 : b->graph->values[v].layer;
    return layers[layer].kind == NN_LINEAR;
}

nn_desc nn_value_desc(const nn_builder *b, size_t v, nn_order order)
{
    const nn_value *const value = &b->graph->values[v];
    if (nn_value_is_flat(b, v)) {
        const size_t size = value->channels * value->height * value->width;
        const size_t flat[] = {b->batch, size};
        return nn_plan_describe(b->plan, 2, flat, order);
    }
    const size_t images[] = {
        b->batch, value->channels, value->height, value->width};
    return nn_plan_describe(b->plan, 4, images, order);
}

static nn_mem tensor(nn_builder *b, nn_source source, size_t i)
{
    const nn_tensor *const t = &b->graph->parameters.at[i];
    const nn_desc desc =
        nn_plan_describe(b->plan, t->count, t->dimensions, NN_PLAIN);
    return nn_plan_source(b->plan, source, t->offset, desc);
}

nn_mem nn_parameter(nn_builder *b, size_t i)
{
    return tensor(b, NN_PARAMETERS, i);
}

nn_mem nn_parameter_diff(nn_builder *b, size_t i)
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
    assert(flow->diff == 0 || flow->lent == 0);
    if (flow->diff != 0) {
        flow->lent = flow->diff;
    }
    flow->diff = diff;
}

void nn_lend_diff(nn_builder *b, size_t v, nn_mem diff)
{
    assert(b->flows[v].lent == 0);
    b->flows[v].lent = diff;
}

nn_mem nn_take_diff(nn_builder *b, const nn_layer *l, bool relu)
{
    nn_flow *const flow = &b->flows[l->out];
    const nn_mem y = relu ? flow->y : 0;
    if (flow->diff == 0 && !relu) {
        return flow->lent;
    }
    if (flow->diff == 0) {
        const nn_desc desc = nn_plan_desc(b->plan, flow->lent);
        flow->diff = nn_plan_buffer(b->plan, desc);
        flow->pass = (nn_pass){.a = flow->lent, .y = y, .out = flow->diff};
    } else {
        flow->pass = (nn_pass){
            .a = flow->diff, .b = flow->lent, .y = y, .out = flow->diff};
    }
    nn_plan_mask(b->plan, &flow->pass);
    return flow->diff;
}
