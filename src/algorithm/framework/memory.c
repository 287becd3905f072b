// SPDX-License-Identifier: MIT
#include "algorithm/framework/memory.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "compress/compressor.h"

// A plan is walked twice: once to count the fields, once to record them.
struct laci_plan {
    laci_field *fields; // NULL while they are counted
    size_t count;
    size_t values;
    size_t errors; // bytes
    bool overflow;
};

// The floats that a field takes in the block: each field begins at a multiple
// of 64 bytes.
static size_t field_room(size_t count)
{
    return (count + 15) / 16 * 16;
}

static void add_field(laci_plan *plan, laci_field field)
{
    if (plan->fields != NULL) {
        plan->fields[plan->count] = field;
    }
    plan->count++;
}

// Adds a field that has its floats in the block.
static void add_floats(laci_plan *plan, laci_field field)
{
    add_field(plan, field);
    const size_t size = field_room(field.count);
    if (size < field.count || !laci_add(plan->values, size, &plan->values)) {
        plan->overflow = true;
    }
}

void laci_plan_working(laci_plan *plan, size_t count)
{
    add_floats(plan, (laci_field){.peer = LAC_RANK_ANY, .count = count});
}

void laci_plan_own(laci_plan *plan, const char *name, size_t count)
{
    laci_plan_peer(plan, name, LAC_RANK_ANY, count);
}

void laci_plan_peer(
    laci_plan *plan, const char *name, uint32_t peer, size_t count)
{
    add_floats(plan, (laci_field){.name = name, .peer = peer, .count = count});
}

void laci_plan_shared(laci_plan *plan, const char *name, size_t count)
{
    const laci_field field = {
        .name = name, .peer = LAC_RANK_ANY, .shared = true, .count = count};
    add_floats(plan, field);
}

void laci_plan_low(laci_plan *plan, const char *name, size_t count)
{
    const laci_field field = {
        .name = name, .peer = LAC_RANK_ANY, .count = count, .is_low = true};
    add_field(plan, field);
}

void laci_plan_errors(
    laci_plan *plan, const char *name, const laci_worker *w, size_t tensor)
{
    const lac_shape shape = laci_tensor_shape(w, tensor);
    const laci_field field = {
        .name = name,
        .peer = LAC_RANK_ANY,
        .count = lac_shape_values(shape),
        .is_errors = true,
        .shape = shape,
    };
    add_field(plan, field);
    // The compressor has accepted the shape, so its size does not overflow.
    if (!laci_add(
            plan->errors, laci_error_memory_size(w->compressor, shape),
            &plan->errors)) {
        plan->overflow = true;
    }
}

static void plan_walk(
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

lac_status laci_fields_plan(
    laci_field_table *table, const laci_algorithm_ops *ops, const void *state,
    const laci_worker *w)
{
    *table = (laci_field_table){0};
    laci_plan counted = {0};
    plan_walk(&counted, NULL, ops, state, w);
    table->fields = laci_zalloc((counted.count + 1) * sizeof(laci_field));
    table->first =
        laci_zalloc((lac_layout_count(w->layout) + 1) * sizeof(size_t));
    if (counted.overflow || table->fields == NULL || table->first == NULL) {
        laci_fields_fini(table);
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for its %zu fields", ops->plugin.name,
            counted.count);
    }
    laci_plan written = {.fields = table->fields};
    plan_walk(&written, table->first, ops, state, w);
    table->count = written.count;
    table->values = written.values;
    table->errors = written.errors;
    return LAC_OK;
}

lac_status laci_fields_allocate(
    laci_field_table *table, lac_compressor *compressor)
{
    size_t size;
    if (laci_mul(table->values, sizeof(float), &size)) {
        table->block = laci_zalloc_aligned(size);
    }
    if (table->block == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "algorithm: no memory for a state of %zu floats",
            table->values);
    }
    // Rounds read a field before they write it. Pages of zeros that were never
    // written would then cost two faults each.
    memset(table->block, 0, size);
    float *next = table->block;
    for (size_t i = 0; i < table->count; i++) {
        laci_field *const field = &table->fields[i];
        if (field->is_errors) {
            LAC_TRY(lac_memory_open(&field->errors, compressor, field->shape));
        } else if (!field->is_low) {
            field->values = next;
            next += field_room(field->count);
        }
    }
    return LAC_OK;
}

lac_status laci_field_reserve(laci_field *field)
{
    if (field->is_low && field->values == NULL) {
        field->values = laci_zalloc_aligned(field->count * sizeof(float));
    }
    return !field->is_low || field->values != NULL
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_NOMEM,
                     "algorithm: no memory for the %zu floats of field %s",
                     field->count, field->name);
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

void laci_fields_fini(laci_field_table *table)
{
    for (size_t i = 0; table->fields != NULL && i < table->count; i++) {
        lac_memory_close(table->fields[i].errors);
        if (table->fields[i].is_low) {
            laci_free_aligned(table->fields[i].values);
        }
    }
    laci_free_aligned(table->block);
    laci_free(table->first);
    laci_free(table->fields);
    *table = (laci_field_table){0};
}

size_t laci_largest_tensor(const laci_worker *w)
{
    size_t largest = 0;
    for (size_t t = 0; t < lac_layout_count(w->layout); t++) {
        const size_t n = laci_tensor_values(w, t);
        largest = n > largest ? n : largest;
    }
    return largest;
}
