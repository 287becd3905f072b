// SPDX-License-Identifier: MIT
// The choice of atoms, for tests.
#ifndef LACONIC_COMPRESS_ATOMO_H
#define LACONIC_COMPRESS_ATOMO_H

#include <stddef.h>

// laci_atomo_probabilities writes with which probability each of `count` atoms
// is kept, so that `rank` are, at most `count`. `values` are their magnitudes,
// in descending order.
void laci_atomo_probabilities(
    const double *values, size_t count, size_t rank, double *out);

// laci_atomo_choose writes the indices of `rank` atoms, in ascending order, and
// returns how many they are: fewer only if the probabilities do not add up to
// `rank`. Atom i is among them with probability p[i], if `u` is uniform in
// [0, 1).
size_t laci_atomo_choose(
    const double *p, size_t count, size_t rank, double u, size_t *out);

#endif
