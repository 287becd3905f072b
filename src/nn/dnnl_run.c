// SPDX-License-Identifier: MIT
// Plans of oneDNN at work: where their memories are, and one run.
#define _DEFAULT_SOURCE // madvise
#include "nn/dnnl_plan.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "nn/dnnl_plan_state.h"

enum { LARGE_PAGE = 1 << 21 };

static char *align(void *block, size_t alignment)
{
    const uintptr_t past = (uintptr_t)block % alignment;
    return (char *)block + (past == 0 ? 0 : alignment - past);
}

// Asks for pages of 2 MB, which save some percent of the time of passing
// through large activations. Nothing depends on getting them.
static void ask_for_large_pages(char *block, size_t len)
{
#ifdef MADV_HUGEPAGE
    char *const first = align(block, LARGE_PAGE);
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

static void allocate(nn_plan *plan)
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
    char *const first = align(plan->block, NN_ALIGNMENT);
    ask_for_large_pages(first, plan->bytes);
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
        allocate(plan);
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
            // oneDNN has one kind of handle for what it reads and writes.
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
