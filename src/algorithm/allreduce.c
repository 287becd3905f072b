// SPDX-License-Identifier: MIT
// The exact mean over all workers, the baseline of the gradient family: all
// tensors of a call are added up in one go and divided by the number of
// workers.
//
// Over a transport with a sum of its own, which is up to twice as fast, calls
// of more than 16 KiB use that. All workers have the same bits then too, but
// the last of them may depend on how tensors are grouped in calls.
#include <string.h>

#include "algorithm/nonfinite.h"
#include "base/fail.h"
#include "kernels/gossip.h"

static void allreduce_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state, (void)w, (void)tensor, (void)plan;
}

static size_t allreduce_message_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    (void)state, (void)w, (void)tensor;
    return 0;
}

static size_t allreduce_sum_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    (void)state;
    const lac_shape shape = lac_layout_tensor(w->layout, tensor)->shape;
    return shape.rows * shape.cols;
}

static lac_status allreduce_reduce(
    void *state, laci_worker *w, const laci_round *round)
{
    (void)state;
    size_t n = 0;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        if (item->n > 0) {
            memcpy(w->sums + n, item->in, item->n * sizeof(float));
        }
        n += item->n;
    }
    LAC_TRY(laci_first_sum(w, round, w->sums, n));
    const float *next = w->sums;
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
    .native_sums = true,
    .plan = allreduce_plan,
    .message_bound = allreduce_message_bound,
    .sum_bound = allreduce_sum_bound,
    .reduce = allreduce_reduce,
    .cost = allreduce_cost,
};
