// SPDX-License-Identifier: MIT
// Orthonormal columns that two workers derive alike: from the same numbers and
// key come the same bits, on every machine and with any kernels.
#ifndef LACONIC_ALGORITHM_SHARED_SUBSPACE_H
#define LACONIC_ALGORITHM_SHARED_SUBSPACE_H

#include <stddef.h>

#include <laconic/random.h>

// laci_subspace_draw fills `rank` columns of n values each, one after the
// other, with normal deviates.
void laci_subspace_draw(const lac_key *key, float *x, size_t n, size_t rank);

// laci_subspace_orthonormalise makes such columns orthonormal; their lengths do
// not matter, however small. A column that is zero, or a sum of the ones before
// it but for rounding, is drawn anew from `key`, or becomes zero where that is
// NULL. `rank` must not exceed n.
void laci_subspace_orthonormalise(
    const lac_key *key, float *x, size_t n, size_t rank);

#endif
