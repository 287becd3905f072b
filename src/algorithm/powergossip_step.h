// SPDX-License-Identifier: MIT
// One half step of the power method on all edges of a worker: the arithmetic of
// powergossip between its messages. powergossip.c describes the algorithm.
//
//     t = laci_powergossip_step_make(settings, round, iteration);
//     for each matrix:            laci_powergossip_multiply(&t, item);
//     send laci_powergossip_product of each matrix to each neighbour k
//     for each matrix, each k:    laci_powergossip_receive(&t, item, k, bytes);
//     after the last iteration:   laci_powergossip_finish(&t, item);
#ifndef LACONIC_ALGORITHM_POWERGOSSIP_STEP_H
#define LACONIC_ALGORITHM_POWERGOSSIP_STEP_H

#include "algorithm/framework/round.h"

typedef struct laci_powergossip {
    uint32_t rank;
    uint32_t iterations;
    bool warm_start;
    double rate;
    bool fold;
} laci_powergossip;

// One iteration of a round.
typedef struct laci_powergossip_step {
    const laci_powergossip *settings;
    const laci_round *round;
    uint32_t iteration;
} laci_powergossip_step;

static inline bool laci_powergossip_is_matrix(lac_shape shape)
{
    return shape.rows > 1 && shape.cols > 1;
}

// laci_powergossip_rank returns the number of columns of a matrix's factors.
size_t laci_powergossip_rank(const laci_powergossip *s, lac_shape shape);

// laci_powergossip_plan requests the fields of a matrix.
void laci_powergossip_plan(
    const laci_powergossip *s, const laci_worker *w, size_t tensor,
    laci_plan *plan);

static inline laci_powergossip_step laci_powergossip_step_make(
    const laci_powergossip *s, const laci_round *round, uint32_t iteration)
{
    return (laci_powergossip_step){s, round, iteration};
}

// laci_powergossip_multiply multiplies the matrix, with the corrections of the
// round so far, with a factor of every edge.
void laci_powergossip_multiply(
    const laci_powergossip_step *t, const laci_item *item);

// laci_powergossip_product returns the product to send to neighbour k, n
// floats.
const float *laci_powergossip_product(
    const laci_powergossip_step *t, const laci_item *item, uint32_t k,
    size_t *n_out);

// laci_powergossip_use returns the number of the use of an edge in an iteration
// of a round, laci_powergossip_out the floats of a matrix's product in it.
uint64_t laci_powergossip_use(
    const laci_powergossip *s, const laci_worker *w, uint64_t round,
    uint32_t iteration, uint32_t peer);
size_t laci_powergossip_out(
    const laci_powergossip *s, lac_shape shape, uint64_t number);

// laci_powergossip_receive applies neighbour k's product, the same number of
// floats. Fails with LAC_ERR_INVALID, on both ends alike, when the difference
// is not finite.
LACI_CHECKED lac_status laci_powergossip_receive(
    const laci_powergossip_step *t, const laci_item *item, uint32_t k,
    const uint8_t *bytes);

// laci_powergossip_finish writes the matrix with all corrections and the
// update, and the factors for the next round. Only it changes saved fields.
void laci_powergossip_finish(
    const laci_powergossip_step *t, const laci_item *item);

#endif
