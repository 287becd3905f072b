// SPDX-License-Identifier: MIT
// Large sums, in shares of the workers.
#ifndef LACONIC_COLLECTIVE_SHARES_H
#define LACONIC_COLLECTIVE_SHARES_H

#include <stddef.h>
#include <stdint.h>

#include "collective/group.h"

// laci_sum_shares sums one piece of a sum, the numbers [at, at + n) of x, at
// most g->rules.piece bytes, in two exchanges. laci_sum_ahead sums all pieces
// of a sum, n > 0, and sends each before the last one has arrived.
// laci_sum_stream does the same with values from a stream: see
// laci_group_sum_stream; `note` may be NULL. A share of a whole piece must have
// at least LACI_SUM_SHARE bytes. All fail like an exchange; x is then lost.
LACI_CHECKED lac_status laci_sum_shares(
    laci_group *g, const laci_number *type, void *x, size_t at, size_t n);
LACI_CHECKED lac_status
laci_sum_ahead(laci_group *g, const laci_number *type, void *x, size_t n);
LACI_CHECKED lac_status laci_sum_stream(
    laci_group *g, const laci_number_stream *stream, size_t n, float *note);

// laci_sum_most returns the values of a piece that laci_sum_ahead or
// laci_sum_stream would send now. Later sums may have other pieces.
size_t laci_sum_most(const laci_group *g, const laci_number *type);

#endif
