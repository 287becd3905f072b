// SPDX-License-Identifier: MIT
// ECD-PSGD, extrapolation compression (Tang et al., arXiv:1803.06443): workers
// send a compressed extrapolation of their last step and keep estimates of the
// neighbours and of themselves, whose error falls like 1/t if the noise of C
// does not grow with its argument.
//
//     xn = sum_j w_ij y_j + update                 (with its own y_i)
//     z  = (1 - t/2) x_i + (t/2) xn,  C(z) is sent
//     y_j = (1 - 2/t) y_j + (2/t) C(z_j), its own included;  x_i = xn
//
// t counts from 1.
#include "algorithm/shared/gossip.h"
#include "kernels/gossip.h"
#include "kernels/vector.h"

// xn is computed twice, before and after the exchange: that is faster than to
// write it to memory and to read it again.

// The field after the estimates of the peers.
static float *own_estimate(const laci_round *round, size_t i)
{
    return round->items[i].fields[round->worker->peer_count].values;
}

static void ecd_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state;
    const size_t n = laci_tensor_values(w, tensor);
    laci_replicas_plan(w, "estimate", tensor, plan);
    laci_plan_own(plan, "own", n);
}

static lac_status ecd_start(void *state, laci_round *round)
{
    LAC_TRY(laci_replicas_start(state, round));
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        round->worker->kernels->gossip->apply(
            item->in, NULL, own_estimate(round, i), item->n);
    }
    return LAC_OK;
}

// Writes z to the scratch.
static void ecd_write_z(laci_loop *loop, size_t i, size_t first, size_t n)
{
    const laci_round *const round = loop->round;
    const laci_kernels *const kernels = round->worker->kernels;
    const double t = (double)round->number + 1;
    const float *const x = round->items[i].in + first;
    float *const z = round->scratch + first;
    laci_replicas_mix(round, i, first, n, own_estimate(round, i) + first, z);
    kernels->gossip->combine(
        (float)(1 - t / 2), x, (float)(t / 2), z, NULL, z, n);
    if (!laci_all_finite(kernels, z, n)) {
        laci_loop_fail(loop, i);
    }
}

// y = keep y + take C(z)
static void extrapolate(
    const laci_round *round, const laci_view *payload, size_t first, size_t n,
    float *y)
{
    const double t = (double)round->number + 1;
    const float keep = (float)(1 - 2 / t), take = (float)(2 / t);
    round->worker->kernels->gossip->scale(keep, y, y, n);
    laci_view_add_part(payload, first, n, take, y);
}

static void ecd_apply(laci_loop *loop, size_t i, size_t first, size_t n)
{
    const laci_round *const round = loop->round;
    const laci_item *const item = &round->items[i];
    float *const own = own_estimate(round, i) + first;
    laci_replicas_mix(round, i, first, n, own, item->out + first);
    for (uint32_t k = 0; k < round->edge_count; k++) {
        extrapolate(
            round, laci_received(round, k, i), first, n,
            item->fields[k].values + first);
    }
    extrapolate(round, laci_sent(round, i), first, n, own);
}

static lac_status ecd_end(void *state, laci_round *round)
{
    (void)state;
    return laci_replicas_round(round, ecd_write_z, ecd_apply);
}

const laci_algorithm_ops laci_ecd_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "ecd",
    .plugin.summary = "extrapolation compression with estimates of neighbours",
    .plugin.example = "ecd dithering:levels=65535",
    .family = LAC_FAMILY_MODEL,
    .takes_compressor = true,
    .form = LAC_FORM_UNBIASED,
    .fixed_graph = true,
    .takes_update = true,
    .scratch = true,
    .scans = true,
    .plan = ecd_plan,
    .message_bound = laci_gossip_bound,
    .start_bound = laci_replicas_start_bound,
    .start = ecd_start,
    .end = ecd_end,
    .cost = laci_gossip_cost,
    .exchanges = laci_gossip_exchanges,
};
