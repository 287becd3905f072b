// SPDX-License-Identifier: MIT
// What powersgd computes for one matrix between its messages. powersgd.c says
// what it is for.
//
//     laci_powersgd_begin(...)       before the first message
//     laci_powersgd_turn(...)        between the two; not when alternating
//     laci_powersgd_finish(...)      after the last
//
// State is written by the last of them only.
#ifndef LACONIC_ALGORITHM_POWERSGD_STEP_H
#define LACONIC_ALGORITHM_POWERSGD_STEP_H

#include "algorithm/algorithm.h"

typedef struct laci_powersgd_settings {
    uint32_t rank;
    bool warm_start;
    bool error_feedback;
    double min_compression_rate;
    uint32_t start_iteration;
    bool alternating;
} laci_powersgd_settings;

// laci_powersgd_rank is the number of columns of a tensor's factors, 0 for one
// that is sent as it is.
size_t laci_powersgd_rank(const laci_powersgd_settings *s, lac_shape shape);

// laci_powersgd_plan asks for the fields of a matrix.
void laci_powersgd_plan(
    const laci_powersgd_settings *s, lac_shape shape, laci_plan *plan);

// A matrix in a round, and its places in working memory: `first` and `second`
// are what the two messages have of it, or what the one message has and what
// that was multiplied with.
typedef struct laci_powersgd_step {
    const laci_powersgd_settings *settings;
    laci_worker *w;
    const laci_item *item;
    uint64_t round;
    size_t rank;
    float *first;
    float *second;
    float *local; // alternating: room for a copy of `first`
} laci_powersgd_step;

// laci_powersgd_transposed tells whether an alternating round multiplies with
// the transposed matrix.
bool laci_powersgd_transposed(const laci_powersgd_settings *s, uint64_t round);

// laci_powersgd_first_n is the number of floats of `first`; `second` has as
// many as the two sides of the factors have in all, less those.
size_t laci_powersgd_first_n(const laci_powersgd_step *t);
size_t laci_powersgd_second_n(const laci_powersgd_step *t);

// laci_powersgd_begin makes `first`: a product with the matrix.
void laci_powersgd_begin(const laci_powersgd_step *t);

// laci_powersgd_turn makes `first`, the sum over all workers, orthonormal, and
// `second`, the product with it.
void laci_powersgd_turn(const laci_powersgd_step *t);

// laci_powersgd_finish takes the sums over all workers, writes the result and
// the state.
void laci_powersgd_finish(const laci_powersgd_step *t);

#endif
