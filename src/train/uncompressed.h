// SPDX-License-Identifier: MIT
// The traffic of a run without compression, for comparison.
#ifndef LACONIC_TRAIN_UNCOMPRESSED_H
#define LACONIC_TRAIN_UNCOMPRESSED_H

#include <laconic/laconic.h>

// train_uncompressed_bytes returns the payload bytes that all workers of
// `topology` together would send in `rounds` rounds without compression. A
// worker sends `values` floats: to every neighbour of the round if the
// algorithm mixes models, else once, as its contribution to the mean.
double train_uncompressed_bytes(
    lac_family family, const lac_topology *topology, size_t values,
    uint64_t rounds);

#endif
