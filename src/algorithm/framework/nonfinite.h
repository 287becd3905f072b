// SPDX-License-Identifier: MIT
// The framework's part in the protocol for non-finite values of the gradient
// family: round.h describes the algorithm's part. A tensor counts as non-finite
// if it has an infinity or a NaN, or if adding it to its error memory would
// make one. The framework then applies the user's policy:
//
//     stop       fails on all workers with the same message; no round advances,
//                the group stays usable, and finite tensors stay in error
//                memories
//     skip       returns zeros; the round is done, and finite tensors stay in
//                error memories
//     raw        restores the state, sums these tensors uncompressed, and runs
//                the algorithm again on the others
//     propagate  restores the state and returns NaN in all tensors; the round
//                is done
//
// To restore the state, it keeps a copy of error memories: only these change
// before the first exchange.
//
// A sum of finite tensors may overflow too, see laci_nonfinite_overflow. A
// worker that sends anything else that is not finite in a sum (finite.h) makes
// all workers fail with its name, except by the policies that pass such values
// on: propagate, and raw if the algorithm has infinite_sums.
#ifndef LACONIC_ALGORITHM_FRAMEWORK_NONFINITE_H
#define LACONIC_ALGORITHM_FRAMEWORK_NONFINITE_H

#include <laconic/algorithm.h>

#include "algorithm/framework/round.h"

typedef struct laci_nonfinite {
    lac_nonfinite policy;
    uint8_t *flags; // which items are not finite; gradient family
    float *zeros;   // as many as the largest tensor has values
    float *saved;   // raw, propagate: error memories before the round
    float *raw;     // raw: the sums of uncompressed tensors
    size_t saved_n; // floats of `saved`
    size_t raw_n;   // floats of `raw`
} laci_nonfinite;

// laci_nonfinite_plan computes the sizes, laci_nonfinite_open allocates all but
// `raw`, which belongs to the group. Fails with LAC_ERR_NOMEM.
void laci_nonfinite_plan(lac_algorithm *a, lac_nonfinite policy);
lac_status laci_nonfinite_open(lac_algorithm *a);
void laci_nonfinite_fini(lac_algorithm *a);

// laci_nonfinite_group sets which values the group accepts in sums.
void laci_nonfinite_group(lac_algorithm *a);

// laci_nonfinite_room returns the most bytes that it adds to a message.
size_t laci_nonfinite_room(const lac_algorithm *a);

// laci_nonfinite_trust prepares a round without a scan, for algorithms that
// find non-finite values themselves.
void laci_nonfinite_trust(lac_algorithm *a);

// laci_nonfinite_scan replaces the items of the round that are not finite by
// zeros and counts them in round->nonfinite.
void laci_nonfinite_scan(lac_algorithm *a);

// laci_nonfinite_resolve finishes a round in which some worker had a non-finite
// tensor.
lac_status laci_nonfinite_resolve(lac_algorithm *a);

// laci_nonfinite_overflow finishes a round in which a sum overflowed: skip and
// propagate treat it like a non-finite value, the others fail with the
// algorithm's message. The group stays usable.
lac_status laci_nonfinite_overflow(lac_algorithm *a);

// laci_nonfinite_stop fails with LAC_ERR_INVALID, on all workers, if an update
// of the round or, with `values`, a value is not finite: the only policy of the
// model family.
lac_status laci_nonfinite_stop(const lac_algorithm *a, bool values);

#endif
