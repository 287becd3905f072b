// SPDX-License-Identifier: MIT
// Fragments: groups of tensors that are exchanged apart, at different times.
#ifndef LACONIC_ALGORITHM_FRAMEWORK_FRAGMENTS_H
#define LACONIC_ALGORITHM_FRAMEWORK_FRAGMENTS_H

#include <stdint.h>

#include <laconic/layout.h>
#include <laconic/status.h>

// laci_fragments_divide writes the fragment of every tensor of the layout, from
// 0 to `fragments`. Some are empty if there are fewer tensors.
// Fails with LAC_ERR_NOMEM.
lac_status laci_fragments_divide(
    const lac_layout *layout, uint32_t fragments, uint32_t *out);

#endif
