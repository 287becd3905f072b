// SPDX-License-Identifier: MIT
// Small integers for values with a common scale.
#ifndef LACONIC_KERNELS_INTEGER_H
#define LACONIC_KERNELS_INTEGER_H

#include <stddef.h>
#include <stdint.h>

#include "base/draw.h"

// The integers of a tensor: `size` bytes each, 1 or 2, in two's complement,
// from -levels to levels, for values from -max to max.
typedef struct laci_integers {
    size_t size;
    int32_t levels;
    float max;
} laci_integers;

typedef struct laci_integer_kernels {
    // Writes floor(x * (levels / max) + u) to q[0..n), within -levels and
    // levels. u is 1/2, or of [0, 1): draw first + i of the stream for value i.
    // If max is 0, so are all integers.
    void (*encode)(
        const laci_integers *type, const laci_stream *stream, uint32_t first,
        const float *x, void *q, size_t n);

    // Writes scale * q[i] to x, computed in double and rounded once.
    void (*decode)(
        const laci_integers *type, double scale, const void *q, float *x,
        size_t n);

    // Subtracts it from x, likewise.
    void (*subtract)(
        const laci_integers *type, double scale, const void *q, float *x,
        size_t n);
} laci_integer_kernels;

extern const laci_integer_kernels laci_integer_portable;
extern const laci_integer_kernels laci_integer_avx2;

#endif
