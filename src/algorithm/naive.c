// SPDX-License-Identifier: MIT
// Gossip of compressed values without correction: the negative control. Every
// round adds a new compression error, which does not shrink with the
// disagreement, so the workers never reach consensus. Every other algorithm
// exists to avoid this.
//
//     x_i = w_ii x_i + sum_j w_ij C(x_j) + update
#include "algorithm/shared/gossip.h"

static lac_status naive_begin(void *state, laci_round *round)
{
    (void)state;
    return laci_mixing_begin(round, round->worker->compressor);
}

const laci_algorithm_ops laci_naive_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "naive",
    .plugin.summary = "gossip of compressed values: does not converge",
    .plugin.example = "naive natural",
    .family = LAC_FAMILY_MODEL,
    .control = true,
    .takes_compressor = true,
    .form = LAC_FORM_UNBIASED,
    .plan = laci_mixing_plan,
    .message_bound = laci_gossip_bound,
    .begin = naive_begin,
    .end = laci_mixing_end,
    .cost = laci_gossip_cost,
    .exchanges = laci_gossip_exchanges,
};
