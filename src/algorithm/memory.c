// SPDX-License-Identifier: MIT
#include "algorithm/memory.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "compress/compressor.h"

// A plan is walked twice: once to count the fields, once to write them down.
struct laci_plan {
    laci_field *fields; // NULL while they are counted
    size_t count;
    size_t values;
    size_t errors; // bytes
    bool overflow;
};

void laci_plan_field(
    laci_plan *plan, const char *name, uint32_t peer, size_t count)
{
    if (plan->fields != NULL) {
        plan->fields[plan->count] =
            (laci_field){.name = name, .peer = peer, .count = count};
    }
    plan->count++;
    const size_t size = laci_memory_field_size(count);
    if (size < count || !laci_add(plan->values, size, &plan->values)) {
        plan->overflow = true;
    }
}

void laci_plan_errors(
    laci_plan *plan, const char *name, const laci_worker *w, size_t tensor)
{
    const lac_shape shape = lac_layout_tensor(w->layout, tensor)->shape;
    if (plan->fields != NULL) {
        plan->fields[plan->count] = (laci_field){
            .name = name,
            .peer = LAC_RANK_ANY,
            .count = shape.rows * shape.cols,
            .is_errors = true,
            .shape = shape,
        };
    }
    plan->count++;
    // The compressor has accepted the shape, so that its size has no overflow.
    if (!laci_add(
            plan->errors, laci_error_memory_size(w->compressor, shape),
            &plan->errors)) {
        plan->overflow = true;
    }
}

static void walk(
    laci_plan *plan, size_t *first, const laci_algorithm_ops *ops,
    const void *state, const laci_worker *w)
{
    const size_t tensors = lac_layout_count(w->layout);
    for (size_t t = 0; t < tensors; t++) {
        if (first != NULL) {
            first[t] = plan->count;
        }
        ops->plan(state, w, t, plan);
    }
    if (first != NULL) {
        first[tensors] = plan->count;
    }
}

lac_status laci_memory_plan(
    laci_memory *memory, const laci_algorithm_ops *ops, const void *state,
    const laci_worker *w)
{
    *memory = (laci_memory){0};
    laci_plan counted = {0};
    walk(&counted, NULL, ops, state, w);
    memory->fields = laci_zalloc((counted.count + 1) * sizeof(laci_field));
    memory->first =
        laci_zalloc((lac_layout_count(w->layout) + 1) * sizeof(size_t));
    if (counted.overflow || memory->fields == NULL || memory->first == NULL) {
        laci_memory_fini(memory);
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for its %zu fields", ops->plugin.name,
            counted.count);
    }
    laci_plan written = {.fields = memory->fields};
    walk(&written, memory->first, ops, state, w);
    memory->count = written.count;
    memory->values = written.values;
    memory->errors = written.errors;
    return LAC_OK;
}

lac_status laci_memory_allocate(laci_memory *memory, lac_compressor *compressor)
{
    size_t size;
    if (laci_mul(memory->values, sizeof(float), &size)) {
        memory->block = laci_zalloc_aligned(size);
    }
    if (memory->block == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "algorithm: no memory for a state of %zu floats",
            memory->values);
    }
    float *next = memory->block;
    for (size_t i = 0; i < memory->count; i++) {
        laci_field *const field = &memory->fields[i];
        if (field->is_errors) {
            LAC_TRY(lac_memory_open(&field->errors, compressor, field->shape));
        } else {
            field->values = next;
            next += laci_memory_field_size(field->count);
        }
    }
    return LAC_OK;
}

void laci_field_read(const laci_field *field, float *out)
{
    if (field->is_errors) {
        lac_memory_read(field->errors, out);
    } else if (field->count > 0) {
        memcpy(out, field->values, field->count * sizeof(*out));
    }
}

void laci_field_write(laci_field *field, const float *in)
{
    if (field->is_errors) {
        lac_memory_write(field->errors, in);
    } else if (field->count > 0) {
        memcpy(field->values, in, field->count * sizeof(*in));
    }
}

void laci_memory_fini(laci_memory *memory)
{
    for (size_t i = 0; memory->fields != NULL && i < memory->count; i++) {
        lac_memory_close(memory->fields[i].errors);
    }
    laci_free_aligned(memory->block);
    laci_free(memory->first);
    laci_free(memory->fields);
    *memory = (laci_memory){0};
}
