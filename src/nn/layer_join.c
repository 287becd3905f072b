// SPDX-License-Identifier: MIT
// The sum of two branches, and its ReLU. The derivative by the sum is that by
// each branch, so both share its memory.
#include "nn/layers.h"

// Whether the sum may take the place of value v: nobody else reads it, not
// even the backward step of the layer that gave it.
static bool replaceable(const nn_builder *b, size_t v)
{
    const nn_value *const value = &b->graph->values[v];
    const nn_layer *const from = &b->graph->layers[value->layer];
    return v > 0 && value->uses == 1 && !from->relu;
}

void nn_join_forward(nn_builder *b, const nn_layer *l, nn_trace *t)
{
    nn_plan *const p = b->plan;
    const nn_mem x = b->flows[l->in].y;
    const nn_desc desc = nn_plan_desc(p, x);
    const nn_mem other = nn_plan_as(p, b->flows[l->other].y, &desc);
    dnnl_binary_desc_t d;
    nn_plan_check(
        p, dnnl_binary_desc_init(&d, dnnl_binary_add, &desc, &desc, &desc),
        "join");
    t->op = nn_plan_op(p, "join", &d, l->relu, NULL);
    const nn_mem y = replaceable(b, l->in) ? x : nn_plan_buffer(p, &desc);
    const nn_arg args[] = {
        {DNNL_ARG_SRC_0, x}, {DNNL_ARG_SRC_1, other}, {DNNL_ARG_DST, y}};
    nn_plan_step(p, t->op, 3, args);
    b->flows[l->out].y = y;
}

void nn_join_backward(nn_builder *b, const nn_layer *l, nn_trace *t)
{
    const nn_mem diff = nn_take_diff(b, l);
    (void)t;
    nn_give_diff(b, l->in, diff);
    if (l->other > 0) {
        const nn_desc desc = nn_plan_desc(b->plan, b->flows[l->other].y);
        nn_give_diff(b, l->other, nn_plan_as(b->plan, diff, &desc));
    }
}
