// SPDX-License-Identifier: MIT
// The memory of an algorithm: one block of floats, divided into the fields
// that the algorithm asks for, tensor by tensor.
#ifndef LACONIC_ALGORITHM_MEMORY_H
#define LACONIC_ALGORITHM_MEMORY_H

#include "algorithm/algorithm.h"

typedef struct laci_memory {
    laci_field *fields; // of all tensors, in the order of the layout
    size_t *first;      // where a tensor's begin; one more than tensors
    size_t count;
    float *block;
    size_t values; // of the block
    size_t errors; // bytes of error memories beside it
} laci_memory;

// laci_memory_plan finds out which fields an algorithm wants, and how many
// floats they are; laci_memory_allocate then gets them. A plan alone is enough
// to know the cost. Both fail with LAC_ERR_NOMEM.
lac_status laci_memory_plan(
    laci_memory *memory, const laci_algorithm_ops *ops, const void *state,
    const laci_worker *w);
lac_status laci_memory_allocate(
    laci_memory *memory, lac_compressor *compressor);
void laci_memory_fini(laci_memory *memory);

// laci_field_read copies the values of a field out, laci_field_write in.
void laci_field_read(const laci_field *field, float *out);
void laci_field_write(laci_field *field, const float *in);

// laci_memory_field_size returns the floats a field takes in the block, so
// that each begins at a multiple of 64 bytes.
static inline size_t laci_memory_field_size(size_t count)
{
    return (count + 15) / 16 * 16;
}

#endif
