// SPDX-License-Identifier: MIT
// Arrays that grow while a network is described and planned.
#ifndef LACONIC_NN_ARRAY_H
#define LACONIC_NN_ARRAY_H

#include <stdlib.h>
#include <string.h>

// nn_grow returns the array of `count` members of this size with room for one
// more. Returns NULL if there is no memory; the array is then unchanged.
static inline void *nn_grow(
    void *array, size_t count, size_t *room, size_t size)
{
    enum { FIRST = 64 };
    if (count < *room) {
        return array;
    }
    const size_t capacity = *room == 0 ? FIRST : 2 * *room;
    void *const grown = calloc(capacity, size);
    if (grown == NULL) {
        return NULL;
    }
    if (count > 0) {
        memcpy(grown, array, count * size);
    }
    free(array);
    *room = capacity;
    return grown;
}

#endif
