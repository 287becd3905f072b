// SPDX-License-Identifier: MIT
// Exact gossip, the baseline of all gossip algorithms (Lian et al.,
// arXiv:1705.09056): every worker replaces its values by a weighted mean of its
// own and its neighbours', then adds the local step.
//
//     x_i = (1 - rate (1 - w_ii)) x_i + rate * sum_j w_ij x_j + update
//
// A message holds the tensors uncompressed.
//
// With clip=F it tolerates F neighbours that send wrong values, by the rule CS+
// (Gaucher, Dieuleveut, Hendrikx, arXiv:2410.10418): differences of a tensor
// are clipped to the length beyond which lie 2 F neighbours.
//
//     x_i += rate * sum_j w_ij (x_j - x_i) min(1, tau / |x_j - x_i|) + update
//
// Values that are not finite then count as a difference of 0. Each worker has
// its own tau, so that the mean is nearly preserved, not exactly. A worker with
// 2 F neighbours or fewer has tau = 0 and does not mix at all. A neighbour can
// still stop the run, like every worker.
#include "algorithm/shared/clip.h"
#include "algorithm/shared/gossip.h"

#include <stdio.h>

#include "base/fail.h"
#include "kernels/vector.h"

enum { MIXED, DISTANCES }; // the fields of a tensor

enum { CLIP_MAX = 65535 };

typedef struct dpsgd {
    double rate;
    uint32_t clip;
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
    {.name = "clip",
     .type = LAC_PARAM_U32,
     .offset = offsetof(dpsgd, clip),
     .default_value = "0",
     .min = 0,
     .max = CLIP_MAX,
     .help = "neighbours with wrong values to tolerate, by clipping"},
    {0},
};

static void dpsgd_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    const dpsgd *const settings = state;
    const size_t doubles = sizeof(double) / sizeof(float);
    laci_mixing_plan(state, w, tensor, plan);
    if (settings->clip > 0) {
        laci_plan_working(plan, w->peer_count * doubles);
    }
}

// Fails if the result is not finite: of clipped values, only if tau is huge.
static lac_status mix_clipped(
    const dpsgd *settings, const laci_round *round, size_t i)
{
    const laci_item *const item = &round->items[i];
    double *const distances = (void *)item->fields[DISTANCES].values;
    float *const mixed = item->fields[MIXED].values;
    for (uint32_t k = 0; k < round->edge_count; k++) {
        distances[k] = laci_clip_distance(
            laci_received(round, k, i)->bytes, item->in, item->n);
    }
    const double tau = laci_clip_threshold(
        round->edges, round->edge_count, distances, settings->clip);
    laci_clip_mix(round, i, settings->rate, distances, tau, mixed);
    return laci_all_finite(round->worker->kernels, mixed, item->n)
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_INVALID,
                     "dpsgd: worker %u has values in %s that overflow in this "
                     "round",
                     round->worker->rank, item->name);
}

static double rate_of(const dpsgd *settings)
{
    return (double)(float)settings->rate;
}

static lac_status dpsgd_begin(void *state, laci_round *round)
{
    const dpsgd *const settings = state;
    if (settings->clip == 0) {
        return laci_mixing_begin_exactly(round, rate_of(settings));
    }
    LAC_TRY(laci_gossip_put_exactly(round));
    LAC_TRY(laci_gossip_exchange_any(round, round->worker->identity, 0));
    for (size_t i = 0; i < round->count; i++) {
        LAC_TRY(laci_group_abort_on_failure(
            round->group, mix_clipped(settings, round, i)));
    }
    return LAC_OK;
}

static lac_status dpsgd_mix(void *state, laci_round *round)
{
    const dpsgd *const settings = state;
    if (settings->clip == 0) {
        return laci_mixing_mix_exactly(round, rate_of(settings));
    }
    LAC_TRY(dpsgd_begin(state, round));
    return laci_mixing_end(state, round);
}

// A worker with few neighbours would train alone.
static void dpsgd_warn(
    const void *state, const laci_worker *w, char *out, size_t size)
{
    const dpsgd *const settings = state;
    for (uint32_t rank = 0; settings->clip > 0 && rank < w->world; rank++) {
        const uint32_t *peers;
        const uint32_t count = lac_topology_peers(w->topology, rank, &peers);
        if (count > 0 && count <= 2 * settings->clip) {
            (void)snprintf(
                out, size,
                "dpsgd: worker %u has %u neighbours and does not mix, clip=%u "
                "needs more than %u",
                rank, count, settings->clip, 2 * settings->clip);
            return;
        }
    }
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
    .coarsens = "clip",
    .gossip_rate = dpsgd_gossip_rate,
    .plan = dpsgd_plan,
    .message_bound = laci_gossip_bound,
    .scans = true,
    .begin = dpsgd_begin,
    .end = laci_mixing_end,
    .mix = dpsgd_mix,
    .cost = laci_gossip_cost,
    .exchanges = laci_gossip_exchanges,
    .warn = dpsgd_warn,
};
