// SPDX-License-Identifier: MIT
// One tensor in a round of powersgd: the arithmetic between its sums.
// powersgd.c describes the algorithm.
//
//     laci_powersgd_multiply_first(&t)     first = S second
//     sum `first` over all workers
//     laci_powersgd_multiply_second(&t)    second = S^T first
//     sum `second` over all workers
//     laci_powersgd_multiply_again(&t)     for another iteration: first =
//                                          S second, summed as before
//     laci_powersgd_finish(&t)             the result and the state
//     laci_powersgd_choose(&t)             the rank of the next round
#ifndef LACONIC_ALGORITHM_POWERSGD_STEP_H
#define LACONIC_ALGORITHM_POWERSGD_STEP_H

#include "algorithm/framework/round.h"

typedef struct laci_powersgd {
    uint32_t rank;
    uint32_t iterations;
    bool warm_start;
    bool error_feedback;
    double min_compression_rate;
    uint32_t start_iteration;
    bool alternating;
    bool fold;
    uint32_t high; // 0: the rank is always `rank`
    uint32_t interval;
} laci_powersgd;

// laci_powersgd_rank returns the number of columns of a tensor's factors, 0 for
// one that is sent uncompressed: the larger one, where there are two.
// laci_powersgd_rank_now returns the one in use.
size_t laci_powersgd_rank(const laci_powersgd *s, lac_shape shape);
size_t laci_powersgd_rank_now(const laci_powersgd *s, const laci_item *item);

// laci_powersgd_plan, a plan, requests the fields of a tensor.
void laci_powersgd_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan);

// A tensor in a round. A matrix has its parts of the two sums, and room for a
// copy of its own part in the last; an uncompressed tensor has `first` alone.
// In the alternating form, `first` is the one sum and `second` the factor that
// it is a product with.
typedef struct laci_powersgd_step {
    const laci_powersgd *settings;
    const laci_round *round;
    const laci_item *item;
    size_t rank; // 0: uncompressed
    float *first;
    float *second;
    float *local;
} laci_powersgd_step;

// laci_powersgd_first and laci_powersgd_second return the numbers of floats of
// `first` and of `second`.
size_t laci_powersgd_first(const laci_powersgd_step *t);
size_t laci_powersgd_second(const laci_powersgd_step *t);

// laci_powersgd_max returns the largest magnitude of n values.
float laci_powersgd_max(const laci_powersgd_step *t, const float *x, size_t n);

// laci_powersgd_accepts returns whether S may become state: its products with
// columns whose values are near 1 must stay finite in later rounds. A memory
// that is larger already may shrink.
bool laci_powersgd_accepts(const laci_powersgd_step *t);

// The steps of a matrix. laci_powersgd_multiply_first computes `first`, a
// product with the matrix. laci_powersgd_multiply_second makes `first`, now the
// sum over all workers, orthonormal and computes `second`, the product with it;
// laci_powersgd_multiply_again computes `first` from that.
// laci_powersgd_finish writes the result and the state from the sums over all
// workers. laci_powersgd_choose then chooses the rank of the next round, where
// it changes.
void laci_powersgd_multiply_first(const laci_powersgd_step *t);
void laci_powersgd_multiply_second(const laci_powersgd_step *t);
void laci_powersgd_multiply_again(const laci_powersgd_step *t);
void laci_powersgd_finish(const laci_powersgd_step *t);
void laci_powersgd_choose(const laci_powersgd_step *t);

#endif
