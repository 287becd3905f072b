// SPDX-License-Identifier: MIT
// The fragments of an algorithm, each with a layout and a cost of its own: what
// train sends in one round of each. An algorithm without fragments has one.
#ifndef LACONIC_CLI_SIZE_FRAGMENTS_H
#define LACONIC_CLI_SIZE_FRAGMENTS_H

#include <stdint.h>

#include <laconic/laconic.h>

typedef struct cli_fragments {
    uint32_t count;
    lac_layout **layouts; // NULL for a fragment without tensors
    lac_cost *costs;      // then all 0
} cli_fragments;

// cli_fragments_open finds them. Fails like lac_algorithm_cost.
lac_status cli_fragments_open(
    cli_fragments *out, const lac_algorithm_options *options);
void cli_fragments_close(cli_fragments *f);

// cli_fragments_cost writes the cost of a round of all tensors, one fragment at
// a time. Fails like lac_algorithm_cost.
lac_status cli_fragments_cost(
    const lac_algorithm_options *options, lac_cost *out);

#endif
