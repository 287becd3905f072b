// SPDX-License-Identifier: MIT
// Algorithms that call another one, their inner algorithm, such as outer. The
// inner one is a handle of its own, with its own group, fields and rounds. The
// framework opens it with the options of the first, of which it gets the
// compressor, saves it within its state, and adds its memory and traffic. It
// has all messages of a round; the first has a group for the start.
//
// The two have the same rounds of every tensor: `end` calls the inner algorithm
// once, and cannot fail after that. An algorithm that holds rounds calls it in
// `begin` instead, so that it is one round ahead until `end`.
#ifndef LACONIC_ALGORITHM_FRAMEWORK_INNER_H
#define LACONIC_ALGORITHM_FRAMEWORK_INNER_H

#include "algorithm/framework/handle.h"

// laci_inner_options returns the options of the inner algorithm.
lac_algorithm_options laci_inner_options(
    const lac_algorithm *a, const lac_algorithm_options *o);

// laci_inner_cost and laci_inner_exchanges are the cost and the exchanges of an
// algorithm whose messages are those of its inner one.
void laci_inner_cost(const void *state, const laci_worker *w, lac_cost *out);
void laci_inner_exchanges(
    const void *state, const laci_worker *w, laci_listing *out);

// laci_inner_gossip_rate returns the gossip_rate of the inner algorithm, 0 if
// it is not exact gossip.
double laci_inner_gossip_rate(const laci_worker *w);

// laci_inner_set_step stores the step by which the rounds of the inner
// algorithm are used, for its start. Part of configure.
void laci_inner_set_step(const laci_worker *w, laci_outer_step step);

// laci_sender returns the algorithm that has the messages of a round: the inner
// one, or `a` itself.
static inline const lac_algorithm *laci_sender(const lac_algorithm *a)
{
    return a->worker.inner != NULL ? a->worker.inner : a;
}

#endif
