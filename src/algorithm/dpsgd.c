// SPDX-License-Identifier: MIT
// Exact gossip, the baseline of all gossip algorithms (Lian et al.,
// arXiv:1705.09056): every worker replaces its values by a weighted mean of its
// own and its neighbours', then adds the local step.
//
//     x_i = (1 - rate (1 - w_ii)) x_i + rate * sum_j w_ij x_j + update
//
// A message holds the tensors uncompressed.
#include "algorithm/shared/gossip.h"

typedef struct dpsgd {
    double rate;
} dpsgd;

static const lac_param dpsgd_params[] = {
    {.name = "rate",
     .aliases = "diffusion_rate",
     .type = LAC_PARAM_F64,
     .offset = offsetof(dpsgd, rate),
     .default_value = "1",
     .min = 0,
     .max = 2,
     .above_min = true,
     .help = "how far to go to the neighbours' mean"},
    {0},
};

static lac_status dpsgd_begin(void *state, laci_round *round)
{
    const dpsgd *const settings = state;
    const float rate = (float)settings->rate;
    return laci_mixing_begin(round, round->worker->identity, (double)rate);
}

static double dpsgd_gossip_rate(const void *state)
{
    const dpsgd *const settings = state;
    return settings->rate;
}

const laci_algorithm_ops laci_dpsgd_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "dpsgd",
    .plugin.summary = "exact gossip with the neighbours: the baseline",
    .plugin.example = "dpsgd",
    .plugin.params = dpsgd_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(dpsgd),
    .family = LAC_FAMILY_MODEL,
    .baseline = true,
    .gossip_rate = dpsgd_gossip_rate,
    .plan = laci_mixing_plan,
    .message_bound = laci_gossip_bound,
    .begin = dpsgd_begin,
    .end = laci_mixing_end,
    .cost = laci_gossip_cost,
    .exchanges = laci_gossip_exchanges,
};
