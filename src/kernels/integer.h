// SPDX-License-Identifier: MIT
// Small integers for values with a common scale. There is one implementation:
// all machines give the same bits.
#ifndef LACONIC_KERNELS_INTEGER_H
#define LACONIC_KERNELS_INTEGER_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/random.h>

// The integers of a tensor: `size` bytes each, 1 or 2, in two's complement,
// from -levels to levels, for values from -max to max.
typedef struct laci_integers {
    size_t size;
    int32_t levels;
    float max;
} laci_integers;

// laci_integers_encode writes floor(levels x / max + u) to q[0..n), within
// -levels and levels. u is drawn from [0, 1) for each value, or 1/2 if `key` is
// NULL. If max is 0, so are all integers.
void laci_integers_encode(
    const laci_integers *type, const lac_key *key, const float *x, void *q,
    size_t n);

// laci_integers_decode writes scale * q[i] to x, rounded once;
// laci_integers_subtract subtracts it from x.
void laci_integers_decode(
    const laci_integers *type, double scale, const void *q, float *x, size_t n);
void laci_integers_subtract(
    const laci_integers *type, double scale, const void *q, float *x, size_t n);

#endif
