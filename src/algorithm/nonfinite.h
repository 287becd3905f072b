// SPDX-License-Identifier: MIT
// Values that are not finite, in the gradient family. Before an algorithm sees
// a round, the framework puts zeros in place of every tensor with such a value
// and counts them. The algorithm takes the count along in its first exchange,
// by one of the calls below; if it is not zero over all workers, the call
// fails, everywhere alike, and the algorithm forwards that. The framework then
// does what the user wants:
//
//     stop  fails on all workers with the same sentence; nothing has advanced,
//           the group can still be used, and what error memories took in
//           stays there
//     skip  gives zeros; the round is done, what error memories took in stays
//     raw   takes the state back to where it was, exchanges these tensors as
//           they are, and runs the algorithm again on the others
#ifndef LACONIC_ALGORITHM_NONFINITE_H
#define LACONIC_ALGORITHM_NONFINITE_H

#include "algorithm/algorithm.h"

// laci_first_sum is laci_group_sum in phase 0. x has room for LACI_SUM_NOTES
// floats behind the n values.
LACI_CHECKED lac_status
laci_first_sum(laci_worker *w, const laci_round *round, float *x, size_t n);

// laci_first_message empties and returns message number `slot`, the count
// already in it. laci_first_gather is laci_group_gather in phase 0 into
// w->readers, which then stand behind the count.
laci_writer *laci_first_message(
    laci_worker *w, const laci_round *round, uint32_t slot);
LACI_CHECKED lac_status
laci_first_gather(laci_worker *w, const laci_round *round);

// laci_first_counts is for first exchanges of another pattern, with messages
// from laci_first_message: it takes the counts off `count` readers. The own
// one is added where no reader is of this worker.
LACI_CHECKED lac_status laci_first_counts(
    laci_worker *w, const laci_round *round, laci_reader *readers,
    uint32_t count);

#endif
