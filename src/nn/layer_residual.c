// SPDX-License-Identifier: MIT
// The sum of two branches and its ReLU. The derivative by the sum is that by
// each branch, so both share its memory.
#include "nn/layers.h"

// Whether the sum may overwrite value v: no other layer reads it, nor does the
// backward step of the layer that computed it.
static bool replaceable(const nn_builder *b, size_t v)
{
    const nn_value *const value = &b->graph->values[v];
    const nn_layer *const from = &b->graph->layers[value->layer];
    return v > 0 && value->uses == 1 && !from->relu;
}

void nn_residual_forward(nn_builder *b, const nn_layer *l, nn_trace *t)
{
    nn_plan *const p = b->plan;
    const nn_mem x = b->flows[l->in].y;
    const nn_desc desc = nn_plan_desc(p, x);
    const nn_mem other = nn_plan_as(p, b->flows[l->other].y, desc);
    const nn_mem y = replaceable(b, l->in) ? x : nn_plan_buffer(p, desc);
    t->pass = (nn_pass){.a = x, .b = other, .out = y, .relu = l->relu};
    nn_plan_add(p, &t->pass);
    b->flows[l->out].y = y;
}

void nn_residual_backward(nn_builder *b, const nn_layer *l, nn_trace *t)
{
    const nn_mem diff = nn_take_diff(b, l, l->relu);
    (void)t;
    nn_lend_diff(b, l->in, diff);
    if (l->other > 0) {
        const nn_desc desc = nn_plan_desc(b->plan, b->flows[l->other].y);
        nn_lend_diff(b, l->other, nn_plan_as(b->plan, diff, desc));
    }
}
