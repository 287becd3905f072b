// SPDX-License-Identifier: MIT
// Plans of oneDNN: descriptions of memories, the primitives that oneDNN chooses
// for them, the block of memory they share, and the run.
#define _DEFAULT_SOURCE // madvise
#include "nn/dnnl_plan.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "nn/arena.h"
#include "nn/array.h"
#include "nn/headroom.h"

enum { LARGE_PAGE = 1 << 21 };

// A primitive, or a function of ours.
typedef struct nn_step {
    const char *name;
    dnnl_primitive_t primitive; // NULL for a function
    void (*call)(void *context);
    void *context;
    dnnl_exec_arg_t args[NN_ARGS_MAX + 1];
    int count;
} nn_step;

typedef struct nn_memory {
    dnnl_memory_t handle;
    nn_desc desc;
    nn_source source; // NN_SOURCES: a buffer of the plan
    size_t place;     // offset in the source, or index of the span
} nn_memory;

// The length and the capacity of an array.
typedef struct nn_count {
    size_t count, room;
} nn_count;

struct nn_plan {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    nn_op *ops;
    nn_step *steps;
    nn_memory *memories;
    nn_span *spans;
    dnnl_memory_desc_t *descs;
    nn_count step_list, memory_list, span_list, desc_list;
    void *block;
    size_t bytes;
    lac_status status;
};

// Returns the array with room for one more entry, or NULL.
static void *plan_grow(nn_plan *plan, void *array, nn_count *l, size_t size)
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

// Whether oneDNN may be called to create something: nothing has failed yet, and
// there is enough memory.
static bool plan_can_create(nn_plan *plan)
{
    if (plan->status == LAC_OK) {
        plan->status = nn_headroom_check();
    }
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
    // Memory 0 stands for none.
    (void)nn_plan_source(plan, NN_X, 0, NULL);
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
        (void)dnnl_primitive_attr_destroy(plan->ops->attr);
        free(plan->ops);
        plan->ops = next;
    }
    for (size_t i = 0; i < plan->desc_list.count; i++) {
        (void)dnnl_memory_desc_destroy(plan->descs[i]);
    }
    (void)dnnl_stream_destroy(plan->stream);
    (void)dnnl_engine_destroy(plan->engine);
    free(plan->steps);
    free(plan->memories);
    free(plan->spans);
    free(plan->descs);
    free(plan->block);
    free(plan);
}

nn_desc nn_plan_describe(
    nn_plan *plan, size_t count, const size_t *dimensions, nn_order order)
{
    static const dnnl_format_tag_t plain[] = {
        dnnl_format_tag_undef, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd};
    dnnl_memory_desc_t *const descs =
        plan_grow(plan, plan->descs, &plan->desc_list, sizeof(*descs));
    if (descs == NULL) {
        return NULL;
    }
    plan->descs = descs;
    dnnl_dims_t dims = {0};
    for (size_t i = 0; i < count; i++) {
        dims[i] = (dnnl_dim_t)dimensions[i];
    }
    dnnl_memory_desc_t desc = NULL;
    nn_plan_check(
        plan,
        dnnl_memory_desc_create_with_tag(
            &desc, (int)count, dims, dnnl_f32,
            order == NN_ANY ? dnnl_format_tag_any : plain[count]),
        "description");
    if (desc != NULL) {
        descs[plan->desc_list.count++] = desc;
    }
    return desc;
}

static nn_mem new_memory(
    nn_plan *plan, nn_source source, size_t place, nn_desc desc)
{
    nn_memory *const memories =
        plan_grow(plan, plan->memories, &plan->memory_list, sizeof(*memories));
    if (memories == NULL) {
        return 0;
    }
    plan->memories = memories;
    nn_memory *const m = &memories[plan->memory_list.count];
    *m = (nn_memory){.desc = desc, .source = source, .place = place};
    nn_plan_check(
        plan,
        dnnl_memory_create(&m->handle, desc, plan->engine, DNNL_MEMORY_NONE),
        "memory");
    return (nn_mem)plan->memory_list.count++;
}

nn_mem nn_plan_buffer(nn_plan *plan, nn_desc desc)
{
    const size_t size = desc == NULL ? 0 : dnnl_memory_desc_get_size(desc);
    if (size == 0) {
        return 0;
    }
    nn_span *const spans =
        plan_grow(plan, plan->spans, &plan->span_list, sizeof(*spans));
    if (spans == NULL) {
        return 0;
    }
    plan->spans = spans;
    spans[plan->span_list.count] = (nn_span){.size = size, .first = SIZE_MAX};
    return new_memory(plan, NN_SOURCES, plan->span_list.count++, desc);
}

nn_mem nn_plan_source(
    nn_plan *plan, nn_source source, size_t offset, nn_desc desc)
{
    return new_memory(plan, source, offset, desc);
}

nn_desc nn_plan_desc(const nn_plan *plan, nn_mem memory)
{
    return plan->status == LAC_OK ? plan->memories[memory].desc : NULL;
}

// The attributes of all primitives: their scratchpad is part of the plan.
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
            plan, dnnl_post_ops_append_eltwise(post, dnnl_eltwise_relu, 0, 0),
            "ReLU");
        nn_plan_check(
            plan, dnnl_primitive_attr_set_post_ops(attr, post), "ReLU");
        (void)dnnl_post_ops_destroy(post);
    }
    return attr;
}

nn_op *nn_plan_op(nn_plan *plan, const char *name, bool relu)
{
    if (!plan_can_create(plan)) {
        return NULL;
    }
    nn_op *const op = calloc(1, sizeof(*op));
    if (op == NULL) {
        plan->status = lac_fail(LAC_ERR_NOMEM, "no memory to plan a network");
        return NULL;
    }
    *op = (nn_op){.engine = plan->engine, .name = name, .next = plan->ops};
    plan->ops = op;
    op->attr = open_attr(plan, relu);
    return plan->status == LAC_OK ? op : NULL;
}

nn_desc nn_op_desc(const nn_op *op, dnnl_query_t what)
{
    return op == NULL || op->pd == NULL
               ? NULL
               : dnnl_primitive_desc_query_md(op->pd, what, 0);
}

// Extends the lifetime of a memory to the next step.
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
        plan_grow(plan, plan->steps, &plan->step_list, sizeof(*steps));
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
    const nn_mem scratchpad =
        nn_plan_buffer(plan, nn_op_desc(op, dnnl_query_scratchpad_md));
    nn_step *const s = new_step(plan);
    if (s == NULL) {
        return;
    }
    s->name = op->name;
    for (size_t i = 0; i < count; i++) {
        add_arg(plan, s, args[i]);
    }
    add_arg(plan, s, (nn_arg){DNNL_ARG_SCRATCHPAD, scratchpad});
    if (plan_can_create(plan)) {
        nn_plan_check(
            plan, dnnl_primitive_create(&s->primitive, op->pd), op->name);
    }
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

nn_mem nn_plan_room(nn_plan *plan, nn_mem memory, nn_desc desc)
{
    if (plan->status != LAC_OK ||
        dnnl_memory_desc_equal(nn_plan_desc(plan, memory), desc)) {
        return memory;
    }
    return nn_plan_buffer(plan, desc);
}

nn_mem nn_plan_as(nn_plan *plan, nn_mem memory, nn_desc desc)
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
    nn_op *const op = nn_plan_op(plan, "reorder", false);
    if (op != NULL) {
        nn_plan_check(
            plan,
            dnnl_reorder_primitive_desc_create(
                &op->pd, nn_plan_desc(plan, from), op->engine,
                nn_plan_desc(plan, to), op->engine, op->attr),
            op->name);
    }
    const nn_arg args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    nn_plan_step(plan, op, 2, args);
}

static char *align_up(void *block, size_t alignment)
{
    const uintptr_t past = (uintptr_t)block % alignment;
    return (char *)block + (past == 0 ? 0 : alignment - past);
}

// Requests pages of 2 MB, which make passes over large activations some percent
// faster. Nothing depends on getting them.
static void dnnl_plan_request_large_pages(char *block, size_t len)
{
#ifdef MADV_HUGEPAGE
    char *const first = align_up(block, LARGE_PAGE);
    if (first < block + len) {
        const size_t left = (size_t)(block + len - first);
        (void)madvise(first, left - left % LARGE_PAGE, MADV_HUGEPAGE);
    }
#else
    (void)block;
    (void)len;
#endif
}

static void set_handle(nn_plan *plan, nn_memory *m, void *where)
{
    nn_plan_check(
        plan, dnnl_memory_set_data_handle(m->handle, where), "memory");
}

static void plan_allocate(nn_plan *plan)
{
    size_t *const order = calloc(plan->span_list.count + 1, sizeof(*order));
    if (order != NULL) {
        plan->bytes = nn_arena_place(plan->spans, plan->span_list.count, order);
        plan->block = calloc(plan->bytes + NN_ALIGNMENT, 1);
        free(order);
    }
    if (plan->block == NULL) {
        plan->status = lac_fail(
            LAC_ERR_NOMEM, "no memory for a network: %zu bytes", plan->bytes);
        return;
    }
    char *const first = align_up(plan->block, NN_ALIGNMENT);
    dnnl_plan_request_large_pages(first, plan->bytes);
    for (size_t i = 1; i < plan->memory_list.count; i++) {
        nn_memory *const m = &plan->memories[i];
        if (m->source == NN_SOURCES) {
            set_handle(plan, m, first + plan->spans[m->place].offset);
        }
    }
}

lac_status nn_plan_finish(nn_plan *plan)
{
    if (plan->status == LAC_OK) {
        plan_allocate(plan);
    }
    return plan->status;
}

size_t nn_plan_memory(const nn_plan *plan)
{
    return plan->bytes;
}

float *nn_plan_data(const nn_plan *plan, nn_mem memory)
{
    void *data = NULL;
    (void)dnnl_memory_get_data_handle(plan->memories[memory].handle, &data);
    return data;
}

void nn_plan_bind(nn_plan *plan, nn_source source, const float *values)
{
    for (size_t i = 1; i < plan->memory_list.count; i++) {
        nn_memory *const m = &plan->memories[i];
        if (m->source == source) {
            // oneDNN has no const handle for memory that it only reads.
            set_handle(plan, m, (void *)(uintptr_t)(values + m->place));
        }
    }
}

lac_status nn_plan_run(nn_plan *plan)
{
    for (size_t i = 0; i < plan->step_list.count; i++) {
        const nn_step *const s = &plan->steps[i];
        if (s->call != NULL) {
            s->call(s->context);
        } else {
            nn_plan_check(
                plan,
                dnnl_primitive_execute(
                    s->primitive, plan->stream, s->count, s->args),
                s->name);
        }
    }
    nn_plan_check(plan, dnnl_stream_wait(plan->stream), "run");
    const lac_status status = plan->status;
    plan->status = LAC_OK;
    return status;
}
