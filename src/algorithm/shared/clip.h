// SPDX-License-Identifier: MIT
// Gossip that limits the influence of every neighbour: differences to its
// values are clipped to a length tau.
//
//     x_i + rate * sum_j w_ij clip(x_j - x_i),  clip(v) = v min(1, tau / |v|)
//
// Everything is computed in double, so that no finite value of a neighbour
// overflows. A neighbour whose values are not all finite has difference 0.
#ifndef LACONIC_ALGORITHM_SHARED_CLIP_H
#define LACONIC_ALGORITHM_SHARED_CLIP_H

#include "algorithm/framework/round.h"

// laci_clip_distance returns |y - x|, of the n floats of a payload and n
// floats, or 0 if one of y is not finite.
double laci_clip_distance(const uint8_t *y, const float *x, size_t n);

// laci_clip_threshold returns tau from the distances to the neighbours: the
// largest distance beyond which there is at least twice the weight of
// `tolerated` neighbours, 0 if there is none (CS+). Of equal distances the
// later ones are beyond.
double laci_clip_threshold(
    const lac_edge *edges, uint32_t count, const double *distances,
    double tolerated);

// laci_clip_mix writes the values of item `i` after such a round to `out`. The
// payloads of the neighbours are floats.
void laci_clip_mix(
    const laci_round *round, size_t i, double rate, const double *distances,
    double tau, float *out);

#endif
