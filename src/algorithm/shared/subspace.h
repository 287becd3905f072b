// SPDX-License-Identifier: MIT
// Orthonormal columns. The same values and key give the same bits on every
// machine and with all kernels, so workers derive equal columns on their own.
#ifndef LACONIC_ALGORITHM_SHARED_SUBSPACE_H
#define LACONIC_ALGORITHM_SHARED_SUBSPACE_H

#include <stddef.h>

#include <laconic/random.h>

// laci_subspace_draw fills x, which has `rank` contiguous columns of n values
// each, with standard normal values.
void laci_subspace_draw(const lac_key *key, float *x, size_t n, size_t rank);

// laci_subspace_orthonormalise makes the columns orthonormal. The length of a
// column does not matter, however small. A column that is zero, or that is a
// linear combination of the columns before it up to rounding, is drawn again
// from `key`, or becomes zero if `key` is NULL. `rank` must not exceed n.
void laci_subspace_orthonormalise(
    const lac_key *key, float *x, size_t n, size_t rank);

#endif
