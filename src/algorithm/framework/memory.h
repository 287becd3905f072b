// SPDX-License-Identifier: MIT
// The memory of an algorithm: one block of floats, divided into the fields
// that the algorithm requests, tensor by tensor.
#ifndef LACONIC_ALGORITHM_FRAMEWORK_MEMORY_H
#define LACONIC_ALGORITHM_FRAMEWORK_MEMORY_H

#include "algorithm/framework/algorithm.h"

typedef struct laci_field_table {
    laci_field *fields; // of all tensors, in the order of the layout
    size_t *first;      // index of each tensor's first field, and the count
    size_t count;
    float *block;
    size_t values; // of the block
    size_t errors; // bytes of error memories beside it
} laci_field_table;

// laci_fields_plan collects the fields that an algorithm requests and their
// size; laci_fields_allocate allocates them. A plan alone is enough to know the
// cost. Both fail with LAC_ERR_NOMEM.
lac_status laci_fields_plan(
    laci_field_table *table, const laci_algorithm_ops *ops, const void *state,
    const laci_worker *w);
lac_status laci_fields_allocate(
    laci_field_table *table, lac_compressor *compressor);
void laci_fields_fini(laci_field_table *table);

// laci_fields_of returns the fields of a tensor in the order they were
// planned.
static inline laci_field *laci_fields_of(
    const laci_field_table *table, size_t tensor)
{
    return &table->fields[table->first[tensor]];
}

// laci_field_reserve allocates a low field, if it is not allocated. Fails with
// LAC_ERR_NOMEM. laci_field_saved returns whether a state has the field: low
// ones only once they are used.
LACI_CHECKED lac_status laci_field_reserve(laci_field *field);

static inline bool laci_field_saved(const laci_field *field)
{
    return field->name != NULL && (!field->is_low || field->is_used);
}

// laci_field_read copies the values of a field out, laci_field_write in.
void laci_field_read(const laci_field *field, float *out);
void laci_field_write(laci_field *field, const float *in);

// laci_largest_tensor returns how many values the largest tensor has.
size_t laci_largest_tensor(const laci_worker *w);

#endif
