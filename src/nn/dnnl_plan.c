// SPDX-License-Identifier: MIT
// Plans of oneDNN: what is made, kept and released.
#include "nn/dnnl_plan.h"

#include <stdlib.h>

#include "nn/array.h"
#include "nn/dnnl_plan_state.h"

// The array with room for one more, or NULL.
static void *grow(nn_plan *plan, void *array, nn_count *l, size_t size)
{
    if (plan->status != LAC_OK) {
        return NULL;
    }
    void *const grown = nn_grow(array, l->count, &l->room, size);
    if (grown == NULL) {
        plan->status = lac_fail(LAC_ERR_NOMEM, "no memory to plan a network");
    }
    return grown;
}

void nn_plan_check(nn_plan *plan, dnnl_status_t status, const char *what)
{
    if (plan->status != LAC_OK || status == dnnl_success) {
        return;
    }
    if (status == dnnl_out_of_memory) {
        plan->status =
            lac_fail(LAC_ERR_NOMEM, "oneDNN: no memory for \"%s\"", what);
    } else {
        plan->status = lac_fail(
            LAC_ERR_UNSUPPORTED, "oneDNN: \"%s\" failed with status %d", what,
            (int)status);
    }
}

bool nn_plan_going(const nn_plan *plan)
{
    return plan->status == LAC_OK;
}

lac_status nn_plan_open(nn_plan **out)
{
    *out = NULL;
    nn_plan *const plan = calloc(1, sizeof(*plan));
    if (plan == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory to plan a network");
    }
    plan->status = LAC_OK;
    nn_plan_check(plan, dnnl_engine_create(&plan->engine, dnnl_cpu, 0), "CPU");
    if (plan->status == LAC_OK) {
        nn_plan_check(
            plan,
            dnnl_stream_create(
                &plan->stream, plan->engine, dnnl_stream_default_flags),
            "stream");
    }
    // Memory 0 means none.
    nn_desc nothing = {0};
    (void)nn_plan_source(plan, NN_X, 0, &nothing);
    const lac_status status = plan->status;
    if (status != LAC_OK) {
        nn_plan_close(plan);
        return status;
    }
    *out = plan;
    return LAC_OK;
}

void nn_plan_close(nn_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    for (size_t i = 0; i < plan->step_list.count; i++) {
        (void)dnnl_primitive_destroy(plan->steps[i].primitive);
    }
    for (size_t i = 0; i < plan->memory_list.count; i++) {
        (void)dnnl_memory_destroy(plan->memories[i].handle);
    }
    while (plan->ops != NULL) {
        nn_op *const next = plan->ops->next;
        (void)dnnl_primitive_desc_destroy(plan->ops->pd);
        free(plan->ops);
        plan->ops = next;
    }
    (void)dnnl_stream_destroy(plan->stream);
    (void)dnnl_engine_destroy(plan->engine);
    free(plan->steps);
    free(plan->memories);
    free(plan->spans);
    free(plan->block);
    free(plan);
}

static nn_mem new_memory(
    nn_plan *plan, nn_source source, size_t place, const nn_desc *desc)
{
    nn_memory *const memories =
        grow(plan, plan->memories, &plan->memory_list, sizeof(*memories));
    if (memories == NULL) {
        return 0;
    }
    plan->memories = memories;
    nn_memory *const m = &memories[plan->memory_list.count];
    *m = (nn_memory){.desc = *desc, .source = source, .place = place};
    nn_plan_check(
        plan,
        dnnl_memory_create(&m->handle, desc, plan->engine, DNNL_MEMORY_NONE),
        "memory");
    return (nn_mem)plan->memory_list.count++;
}

nn_mem nn_plan_buffer(nn_plan *plan, const nn_desc *desc)
{
    const size_t size = dnnl_memory_desc_get_size(desc);
    if (size == 0) {
        return 0;
    }
    nn_span *const spans =
        grow(plan, plan->spans, &plan->span_list, sizeof(*spans));
    if (spans == NULL) {
        return 0;
    }
    plan->spans = spans;
    spans[plan->span_list.count] = (nn_span){.size = size, .first = SIZE_MAX};
    return new_memory(plan, NN_SOURCES, plan->span_list.count++, desc);
}

nn_mem nn_plan_source(
    nn_plan *plan, nn_source source, size_t offset, const nn_desc *desc)
{
    return new_memory(plan, source, offset, desc);
}

nn_desc nn_plan_desc(const nn_plan *plan, nn_mem memory)
{
    return plan->status == LAC_OK ? plan->memories[memory].desc : (nn_desc){0};
}

// The next step needs this memory.
static void touch(nn_plan *plan, nn_mem memory)
{
    if (memory == 0 || plan->memories[memory].source != NN_SOURCES) {
        return;
    }
    nn_span *const s = &plan->spans[plan->memories[memory].place];
    const size_t now = plan->step_list.count;
    s->first = now < s->first ? now : s->first;
    s->last = now;
}

static nn_step *new_step(nn_plan *plan)
{
    nn_step *const steps =
        grow(plan, plan->steps, &plan->step_list, sizeof(*steps));
    if (steps == NULL) {
        return NULL;
    }
    plan->steps = steps;
    nn_step *const s = &steps[plan->step_list.count];
    *s = (nn_step){0};
    return s;
}

static void add_arg(nn_plan *plan, nn_step *s, nn_arg arg)
{
    if (arg.memory != 0) {
        touch(plan, arg.memory);
        s->args[s->count++] =
            (dnnl_exec_arg_t){arg.role, plan->memories[arg.memory].handle};
    }
}

void nn_plan_step(nn_plan *plan, nn_op *op, size_t count, const nn_arg *args)
{
    const nn_desc scratch = nn_op_desc(op, dnnl_query_scratchpad_md);
    const nn_mem scratchpad = nn_plan_buffer(plan, &scratch);
    nn_step *const s = new_step(plan);
    if (s == NULL) {
        return;
    }
    s->name = op->name;
    for (size_t i = 0; i < count; i++) {
        add_arg(plan, s, args[i]);
    }
    add_arg(plan, s, (nn_arg){DNNL_ARG_SCRATCHPAD, scratchpad});
    nn_plan_check(plan, dnnl_primitive_create(&s->primitive, op->pd), op->name);
    plan->step_list.count++;
}

void nn_plan_call(
    nn_plan *plan, void (*call)(void *context), void *context, size_t count,
    const nn_mem *memories)
{
    nn_step *const s = new_step(plan);
    if (s != NULL) {
        s->call = call;
        s->context = context;
        for (size_t i = 0; i < count; i++) {
            touch(plan, memories[i]);
        }
        plan->step_list.count++;
    }
}
