// SPDX-License-Identifier: MIT
// Descriptions of memories, and the primitives that oneDNN chooses for them.
#include "nn/dnnl_plan.h"

#include <stdlib.h>

#include "nn/dnnl_plan_state.h"

nn_desc nn_desc_plain(size_t count, const size_t *dimensions)
{
    static const dnnl_format_tag_t tags[] = {
        dnnl_format_tag_undef, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd};
    nn_desc desc = {0};
    dnnl_dims_t dims = {0};
    for (size_t i = 0; i < count; i++) {
        dims[i] = (dnnl_dim_t)dimensions[i];
    }
    // Fails only for dimensions that a plan would refuse as well.
    (void)dnnl_memory_desc_init_by_tag(
        &desc, (int)count, dims, dnnl_f32, tags[count]);
    return desc;
}

nn_desc nn_desc_any(const nn_desc *like)
{
    nn_desc desc = {0};
    (void)dnnl_memory_desc_init_by_tag(
        &desc, like->ndims, like->dims, dnnl_f32, dnnl_format_tag_any);
    return desc;
}

// What every primitive has in common: scratch memory comes from the plan.
static dnnl_primitive_attr_t open_attr(nn_plan *plan, bool relu)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t post = NULL;
    if (plan->status == LAC_OK) {
        nn_plan_check(plan, dnnl_primitive_attr_create(&attr), "attributes");
    }
    if (plan->status != LAC_OK) {
        return NULL;
    }
    nn_plan_check(
        plan,
        dnnl_primitive_attr_set_scratchpad_mode(
            attr, dnnl_scratchpad_mode_user),
        "scratchpad");
    if (relu) {
        nn_plan_check(plan, dnnl_post_ops_create(&post), "ReLU");
        nn_plan_check(
            plan,
            dnnl_post_ops_append_eltwise(post, 1, dnnl_eltwise_relu, 0, 0),
            "ReLU");
        nn_plan_check(
            plan, dnnl_primitive_attr_set_post_ops(attr, post), "ReLU");
        (void)dnnl_post_ops_destroy(post);
    }
    return attr;
}

static nn_op *new_op(nn_plan *plan, const char *name)
{
    if (plan->status != LAC_OK) {
        return NULL;
    }
    nn_op *const op = calloc(1, sizeof(*op));
    if (op == NULL) {
        plan->status = lac_fail(LAC_ERR_NOMEM, "no memory to plan a network");
        return NULL;
    }
    op->name = name;
    op->next = plan->ops;
    plan->ops = op;
    return op;
}

nn_op *nn_plan_op(
    nn_plan *plan, const char *name, const void *described, bool relu,
    const nn_op *hint)
{
    nn_op *const op = new_op(plan, name);
    dnnl_primitive_attr_t attr = open_attr(plan, relu);
    if (plan->status == LAC_OK) {
        nn_plan_check(
            plan,
            dnnl_primitive_desc_create(
                &op->pd, described, attr, plan->engine,
                hint == NULL ? NULL : hint->pd),
            name);
    }
    (void)dnnl_primitive_attr_destroy(attr);
    return plan->status == LAC_OK ? op : NULL;
}

nn_desc nn_op_desc(const nn_op *op, dnnl_query_t what)
{
    const nn_desc *const desc =
        op == NULL ? NULL : dnnl_primitive_desc_query_md(op->pd, what, 0);
    return desc == NULL ? (nn_desc){0} : *desc;
}

static bool has_desc(const nn_plan *plan, nn_mem memory, const nn_desc *desc)
{
    const nn_desc now = nn_plan_desc(plan, memory);
    return plan->status != LAC_OK || dnnl_memory_desc_equal(&now, desc);
}

nn_mem nn_plan_room(nn_plan *plan, nn_mem memory, const nn_desc *desc)
{
    return has_desc(plan, memory, desc) ? memory : nn_plan_buffer(plan, desc);
}

nn_mem nn_plan_as(nn_plan *plan, nn_mem memory, const nn_desc *desc)
{
    const nn_mem room = nn_plan_room(plan, memory, desc);
    nn_plan_into(plan, memory, room);
    return room;
}

void nn_plan_into(nn_plan *plan, nn_mem from, nn_mem to)
{
    if (from == to) {
        return;
    }
    const nn_desc src = nn_plan_desc(plan, from);
    const nn_desc dst = nn_plan_desc(plan, to);
    nn_op *const op = new_op(plan, "reorder");
    dnnl_primitive_attr_t attr = open_attr(plan, false);
    if (plan->status == LAC_OK) {
        nn_plan_check(
            plan,
            dnnl_reorder_primitive_desc_create(
                &op->pd, &src, plan->engine, &dst, plan->engine, attr),
            "reorder");
    }
    (void)dnnl_primitive_attr_destroy(attr);
    if (plan->status == LAC_OK) {
        const nn_arg args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
        nn_plan_step(plan, op, 2, args);
    }
}
