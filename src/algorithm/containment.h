// SPDX-License-Identifier: MIT
// The framework's part in what nonfinite.h describes.
#ifndef LACONIC_ALGORITHM_CONTAINMENT_H
#define LACONIC_ALGORITHM_CONTAINMENT_H

#include "algorithm/handle.h"

// laci_containment_open gets the memory for it; laci_containment_size is what
// that comes to. Fails with LAC_ERR_NOMEM.
lac_status laci_containment_open(lac_algorithm *a);
size_t laci_containment_size(const lac_algorithm *a);
void laci_containment_fini(lac_algorithm *a);

// laci_containment_room is the most bytes that its notes take of a message.
size_t laci_containment_room(const lac_algorithm *a);

// laci_containment_prepare puts zeros in place of those of the first `count`
// items that have a value that is not finite, returns how many these are, and
// keeps what may have to be taken back.
uint32_t laci_containment_prepare(lac_algorithm *a, size_t count);

// laci_containment_trust is for algorithms that look themselves: it takes all
// items to be finite.
void laci_containment_trust(lac_algorithm *a, size_t count);

// laci_containment_act finishes a round in which some worker had such a value.
// The items may be in another order afterwards.
lac_status laci_containment_act(
    lac_algorithm *a, uint64_t number, const lac_slice *slices, size_t count);

#endif
