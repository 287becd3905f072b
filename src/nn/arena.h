// SPDX-License-Identifier: MIT
// Which bytes of one block each buffer gets. Buffers that are never needed at
// the same time share them.
#ifndef LACONIC_NN_ARENA_H
#define LACONIC_NN_ARENA_H

#include <stddef.h>

enum { NN_ALIGNMENT = 64 };

// A buffer of `size` bytes that is needed from step `first` to step `last`,
// both included.
typedef struct nn_span {
    size_t size, first, last;
    size_t offset; // written by nn_arena_place
} nn_span;

// nn_arena_place gives every span an offset that is a multiple of NN_ALIGNMENT
// and returns the bytes they need together. `order` is room for `count`
// numbers.
size_t nn_arena_place(nn_span *spans, size_t count, size_t *order);

#endif
