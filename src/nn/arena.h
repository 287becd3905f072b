// SPDX-License-Identifier: MIT
// Assigns buffers to offsets in one block of memory. Buffers that are never
// live at the same time share bytes.
#ifndef LACONIC_NN_ARENA_H
#define LACONIC_NN_ARENA_H

#include <stddef.h>

enum { NN_ALIGNMENT = 64 };

// A buffer of `size` bytes that is live from step `first` to step `last`, both
// included.
typedef struct nn_span {
    size_t size, first, last;
    size_t offset; // written by nn_arena_place
} nn_span;

// nn_arena_place assigns every span an offset that is a multiple of
// NN_ALIGNMENT and returns the size of the block. `order` is scratch of `count`
// numbers.
size_t nn_arena_place(nn_span *spans, size_t count, size_t *order);

#endif
