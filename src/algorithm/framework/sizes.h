// SPDX-License-Identifier: MIT
// The sizes of an algorithm's messages, sums and working memory, from shapes
// and settings.
#ifndef LACONIC_ALGORITHM_FRAMEWORK_SIZES_H
#define LACONIC_ALGORITHM_FRAMEWORK_SIZES_H

#include "algorithm/framework/handle.h"
#include "collective/group.h"

// laci_algorithm_group_options returns the options of the group that the
// algorithm opens. Fails with LAC_ERR_NOTFOUND for an unknown transport_name.
LACI_CHECKED lac_status laci_algorithm_group_options(
    const lac_algorithm *a, const lac_algorithm_options *o,
    laci_group_options *out);

// laci_scratch_max returns the floats of round->scratch, laci_sent_max the
// payloads that this worker sends to a neighbour, and laci_views_max the most
// that arrive in an exchange.
size_t laci_scratch_max(const lac_algorithm *a);
size_t laci_sent_max(const lac_algorithm *a);
size_t laci_views_max(const lac_algorithm *a);

// laci_memory_bytes returns the bytes of a handle that rounds touch. Fails like
// laci_algorithm_group_options.
LACI_CHECKED lac_status laci_memory_bytes(
    const lac_algorithm *a, const lac_algorithm_options *o, size_t *out);

#endif
