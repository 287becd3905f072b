// SPDX-License-Identifier: MIT
// Gossip of compressed values as they are: the negative control. The error of
// compression enters anew every round and does not shrink with disagreement,
// so the workers never agree; every other algorithm exists to mend this.
//
//     x_i = w_ii x_i + sum_j w_ij C(x_j) + update
#include "algorithm/mixing.h"

static lac_status naive_begin(
    void *state, laci_worker *w, const laci_round *round)
{
    (void)state;
    return laci_mixing_begin(w, w->compressor, 1, round);
}

const laci_algorithm_ops laci_naive_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "naive",
    .plugin.summary = "gossip of compressed values: does not converge",
    .family = LAC_FAMILY_MODEL,
    .takes_compressor = true,
    .form = LAC_FORM_UNBIASED,
    .plan = laci_mixing_plan,
    .message_bound = laci_gossip_bound,
    .begin = naive_begin,
    .end = laci_mixing_end,
    .cost = laci_gossip_cost,
};
