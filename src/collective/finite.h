// SPDX-License-Identifier: MIT
// Sums of finite values: which worker a value that is not finite comes from.
//
// A group that expects finite values (laci_group_expect_finite) sends no
// infinity and no NaN but one, the mark of an overflow. A worker whose own
// addition overflows, or any computation before it, sends the mark instead. A
// message with any other value that is not finite thus accuses its sender: it
// is refused before it is added, and all workers fail with the name of the
// sender. The mark makes the sum a mark on all workers. Nobody is accused then,
// and the caller learns of the overflow from laci_group_nonfinite.
//
// Other groups send what they have: sums of infinities and NaN are those of
// IEEE 754, with the same NaN for all.
#ifndef LACONIC_COLLECTIVE_FINITE_H
#define LACONIC_COLLECTIVE_FINITE_H

#include "collective/wire.h"

// laci_finite_send is called before n numbers are put in a message: it marks
// those that are not finite.
void laci_finite_send(
    const laci_group *g, const laci_number *type, void *x, size_t n);

// laci_finite_receive is called before numbers of a message from `peer` are
// used. Fails with LAC_ERR_CORRUPT, on all workers, where the peer is accused.
LACI_CHECKED lac_status laci_finite_receive(
    laci_group *g, const laci_number *type, uint32_t peer, const uint8_t *in,
    size_t n);

// laci_finite_end is called with sums that this worker has completed, those of
// the numbers [at, at + n) of a call, before anyone gets them.
// laci_finite_end_received does the same for a message from `peer`, and fails
// like laci_finite_receive.
void laci_finite_end(
    laci_group *g, const laci_number *type, size_t at, void *x, size_t n);
LACI_CHECKED lac_status laci_finite_end_received(
    laci_group *g, const laci_number *type, uint32_t peer, size_t at,
    const uint8_t *in, size_t n);

#endif
