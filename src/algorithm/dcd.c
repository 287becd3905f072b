// SPDX-License-Identifier: MIT
// DCD-PSGD, difference compression (Tang et al., arXiv:1803.06443): a worker
// mixes replicas of its neighbours and applies the *compressed* change to its
// own values too, so that replicas equal their owners bit for bit.
//
//     z_i = sum_j w_ij xhat_j + update - x_i      (xhat_i = x_i)
//     x_i += C(z_i), sent;  xhat_j += C(z_j)
//
// C must be unbiased; its variance must stay below a limit of the graph, or
// the values diverge. The mean drifts by the mean of the noise.
#include "algorithm/shared/gossip.h"

#include <string.h>

#include "kernels/gossip.h"
#include "kernels/vector.h"

static void dcd_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state;
    laci_replicas_plan(w, "replica", tensor, plan);
}

// Writes z to the scratch.
static void dcd_write_z(laci_loop *loop, size_t i, size_t first, size_t n)
{
    const laci_round *const round = loop->round;
    const laci_kernels *const kernels = round->worker->kernels;
    const float *const x = round->items[i].in + first;
    float *const z = round->scratch + first;
    laci_replicas_mix(round, i, first, n, x, z);
    kernels->gossip->subtract(z, x, z, n);
    if (!laci_all_finite(kernels, z, n)) {
        laci_loop_fail(loop, i);
    }
}

static void dcd_apply(laci_loop *loop, size_t i, size_t first, size_t n)
{
    const laci_round *const round = loop->round;
    const laci_item *const item = &round->items[i];
    float *const x = item->out + first;
    if (item->out != item->in) {
        memcpy(x, item->in + first, n * sizeof(*x));
    }
    laci_view_add_part(laci_sent(round, i), first, n, 1, x);
    for (uint32_t k = 0; k < round->edge_count; k++) {
        laci_view_add_part(
            laci_received(round, k, i), first, n, 1,
            item->fields[k].values + first);
    }
}

static lac_status dcd_end(void *state, laci_round *round)
{
    (void)state;
    return laci_replicas_round(round, dcd_write_z, dcd_apply);
}

const laci_algorithm_ops laci_dcd_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "dcd",
    .plugin.summary = "difference compression with replicas of neighbours",
    .plugin.example = "dcd qsgd:bucket=512",
    .family = LAC_FAMILY_MODEL,
    .takes_compressor = true,
    .form = LAC_FORM_UNBIASED,
    .fixed_graph = true,
    .takes_update = true,
    .scratch = true,
    .scans = true,
    .plan = dcd_plan,
    .message_bound = laci_gossip_bound,
    .start_bound = laci_replicas_start_bound,
    .start = laci_replicas_start,
    .end = dcd_end,
    .cost = laci_gossip_cost,
    .exchanges = laci_gossip_exchanges,
};
