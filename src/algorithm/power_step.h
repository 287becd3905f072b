// SPDX-License-Identifier: MIT
// One half step of the power method on all edges of a worker: what powergossip
// computes between its messages. powergossip.c says what it is for.
//
//     t = laci_power_step_of(settings, w, round, iteration);
//     for each matrix:            laci_power_multiply(&t, item);
//     send laci_power_product of each matrix and neighbour k
//     for each of them:           laci_power_meet(&t, item, k, what arrived);
//     after the last iteration:   laci_power_finish(&t, item);
#ifndef LACONIC_ALGORITHM_POWER_STEP_H
#define LACONIC_ALGORITHM_POWER_STEP_H

#include "algorithm/algorithm.h"

typedef struct laci_power_settings {
    uint32_t rank;
    uint32_t iterations;
    bool warm_start;
    double rate;
} laci_power_settings;

// One iteration of a round.
typedef struct laci_power_step {
    const laci_power_settings *settings;
    const laci_worker *w;
    uint64_t round;
    uint32_t iteration;
    uint32_t edge_count;
    const lac_edge *edges;
} laci_power_step;

static inline bool laci_power_is_matrix(lac_shape shape)
{
    return shape.rows > 1 && shape.cols > 1;
}

// laci_power_rank is the number of columns of a matrix's factors.
size_t laci_power_rank(const laci_power_settings *s, lac_shape shape);

// laci_power_plan asks for the fields of a matrix.
void laci_power_plan(
    const laci_power_settings *s, const laci_worker *w, size_t tensor,
    laci_plan *plan);

laci_power_step laci_power_step_of(
    const laci_power_settings *s, const laci_worker *w, uint64_t round,
    uint32_t iteration);

// laci_power_multiply multiplies the matrix with the corrections so far.
void laci_power_multiply(const laci_power_step *t, const laci_item *item);

// laci_power_product points at what neighbour k is to be sent, n floats.
const float *laci_power_product(
    const laci_power_step *t, const laci_item *item, uint32_t k, size_t *n_out);

// laci_power_meet takes the same number of floats from neighbour k. Fails with
// LAC_ERR_INVALID, on both ends alike, when the difference is not finite.
lac_status laci_power_meet(
    const laci_power_step *t, const laci_item *item, uint32_t k,
    const uint8_t *bytes);

// laci_power_finish writes the matrix with all corrections and the update, and
// keeps the factors for the next round. Nothing before it changed what is
// saved.
void laci_power_finish(const laci_power_step *t, const laci_item *item);

#endif
