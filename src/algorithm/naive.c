// SPDX-License-Identifier: MIT
// Gossip of compressed values as they are: the negative control. The error of
// compression enters anew every round and does not shrink with disagreement,
// so the workers never agree; every other algorithm exists to mend this.
//
//     x_i = w_ii x_i + sum_j w_ij C(x_j) + update
#include "algorithm/mixing.h"

static void naive_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state;
    laci_mixing_plan(w, tensor, plan);
}

static size_t naive_message_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    (void)state;
    return laci_gossip_bound(w, w->compressor, tensor);
}

static lac_status naive_begin(
    void *state, laci_worker *w, const laci_round *round)
{
    (void)state;
    return laci_mixing_begin(w, w->compressor, 1, round);
}

static lac_status naive_end(
    void *state, laci_worker *w, const laci_round *round)
{
    (void)state;
    laci_mixing_end(w, round);
    return LAC_OK;
}

static void naive_cost(const void *state, const laci_worker *w, lac_cost *out)
{
    (void)state;
    laci_gossip_cost(w, w->compressor, 1, out);
}

const laci_algorithm_ops laci_naive_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "naive",
    .plugin.summary = "gossip of compressed values: does not converge",
    .family = LAC_FAMILY_MODEL,
    .takes_compressor = true,
    .form = LAC_FORM_UNBIASED,
    .plan = naive_plan,
    .message_bound = naive_message_bound,
    .begin = naive_begin,
    .end = naive_end,
    .cost = naive_cost,
};
