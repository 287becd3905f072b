// SPDX-License-Identifier: MIT
// The exact mean over all workers, the baseline of the gradient family: one sum
// of all tensors of a call, divided by the number of workers.
//
// Calls of more than 16 KiB use the transport's own all-reduce if it has one,
// which is up to twice as fast. All workers still get the same bits, but the
// last of them may depend on the grouping of tensors into calls.
#include <string.h>

#include "algorithm/framework/round.h"
#include "kernels/gossip.h"

static void allreduce_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state, (void)w, (void)tensor, (void)plan;
}

static size_t allreduce_sum_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    (void)state;
    return laci_tensor_values(w, tensor);
}

static lac_status allreduce_reduce(void *state, laci_round *round)
{
    (void)state;
    size_t n = 0;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        if (item->n > 0) {
            memcpy(round->sums + n, item->in, item->n * sizeof(float));
        }
        n += item->n;
    }
    LAC_TRY(laci_nonfinite_sum(round, round->sums, n));
    const laci_worker *const w = round->worker;
    const float *next = round->sums;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        w->kernels->gossip->scale(
            (float)(1.0 / w->world), next, item->out, item->n);
        next += item->n;
    }
    return LAC_OK;
}

static void allreduce_cost(
    const void *state, const laci_worker *w, lac_cost *out)
{
    (void)state;
    out->payload_bytes =
        (double)lac_layout_values(w->layout) * (double)sizeof(float);
    out->messages = 1;
    out->phases = 1;
}

const laci_algorithm_ops laci_allreduce_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "allreduce",
    .plugin.summary = "the exact mean over all workers",
    .plugin.param_size = sizeof(lac_param),
    .family = LAC_FAMILY_GRADIENT,
    .baseline = true,
    .native_sums = true,
    .plan = allreduce_plan,
    .sum_bound = allreduce_sum_bound,
    .reduce = allreduce_reduce,
    .cost = allreduce_cost,
};
