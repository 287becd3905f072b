// SPDX-License-Identifier: MIT
// DeepSqueeze (Tang et al., arXiv:1907.07346): gossip of compressed values with
// an error memory, and a small step towards the neighbours' values. It needs
// one vector of memory and no replicas.
//
//     v_i = x_i + e_i;  m_i = C(v_i), sent;  e_i = v_i - m_i
//     x_i += gamma (sum_j w_ij m_j - (1 - w_ii) m_i) + update
#include <string.h>

#include "algorithm/shared/gamma.h"
#include "algorithm/shared/gossip.h"
#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/vector.h"

// The fields of a tensor: the error memory; v, from which m is subtracted to
// give the next error memory; the step.
enum { ERROR, NEXT, STEP };

enum { BLOCK = 1 << 13 }; // values

static const lac_param deepsqueeze_params[] = {
    LACI_GAMMA_PARAM,
    {0},
};

static void deepsqueeze_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state;
    const size_t n = laci_tensor_values(w, tensor);
    laci_plan_own(plan, "error", n);
    laci_plan_working(plan, n);
    laci_plan_working(plan, n);
}

static lac_status deepsqueeze_start(void *state, laci_round *round)
{
    return laci_gamma_find(state, round, laci_gamma_deepsqueeze);
}

// v = x + e, in blocks that stay in the cache. Fails where the sum overflows: a
// sparsifier may leave that value out, and the error memory would keep it.
static lac_status add_error(const laci_round *round, size_t i)
{
    const laci_worker *const w = round->worker;
    const laci_item *const item = &round->items[i];
    const float *const error = item->fields[ERROR].values;
    float *const v = item->fields[NEXT].values;
    for (size_t start = 0; start < item->n; start += BLOCK) {
        const size_t left = item->n - start;
        const size_t n = left < BLOCK ? left : BLOCK;
        w->kernels->gossip->apply(
            item->in + start, error + start, v + start, n);
        if (!laci_all_finite(w->kernels, v + start, n)) {
            return lac_fail(
                LAC_ERR_INVALID,
                "deepsqueeze: worker %u has values in %s that overflow its "
                "error memory",
                w->rank, item->name);
        }
    }
    return LAC_OK;
}

static lac_status deepsqueeze_begin(void *state, laci_round *round)
{
    const laci_step_size *const gamma = state;
    const laci_worker *const w = round->worker;
    for (size_t i = 0; i < round->count; i++) {
        LAC_TRY(laci_group_abort_on_failure(round->group, add_error(round, i)));
        laci_gossip_put(
            round, w->compressor, i, round->items[i].fields[NEXT].values);
    }
    LAC_TRY(laci_gossip_exchange(round, w->compressor, 0));
    const float own = (float)(gamma->value * (round->self_weight - 1));
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        float *const step = item->fields[STEP].values;
        laci_view_add(laci_sent(round, i), -1, item->fields[NEXT].values);
        memset(step, 0, item->n * sizeof(*step));
        laci_view_add(laci_sent(round, i), own, step);
        for (uint32_t k = 0; k < round->edge_count; k++) {
            laci_view_add(
                laci_received(round, k, i),
                (float)(gamma->value * round->edges[k].weight), step);
        }
    }
    return LAC_OK;
}

static lac_status deepsqueeze_end(void *state, laci_round *round)
{
    (void)state;
    const laci_kernels *const kernels = round->worker->kernels;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        float *const error = item->fields[ERROR].values;
        item->fields[ERROR].values = item->fields[NEXT].values;
        item->fields[NEXT].values = error;
        kernels->gossip->apply(
            item->in, item->fields[STEP].values, item->out, item->n);
        if (item->update != NULL) {
            kernels->vector->add(item->update, item->out, item->n);
        }
    }
    return LAC_OK;
}

const laci_algorithm_ops laci_deepsqueeze_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "deepsqueeze",
    .plugin.summary = "gossip of compressed values with an error memory",
    .plugin.example = "deepsqueeze dithering:levels=127",
    .plugin.params = deepsqueeze_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(laci_step_size),
    .family = LAC_FAMILY_MODEL,
    .keeps_mean = true,
    .converges = true,
    .takes_compressor = true,
    .form = LAC_FORM_CONTRACTIVE,
    .configure = laci_gamma_configure,
    .plan = deepsqueeze_plan,
    .message_bound = laci_gossip_bound,
    .start = deepsqueeze_start,
    .begin = deepsqueeze_begin,
    .end = deepsqueeze_end,
    .cost = laci_gossip_cost,
    .exchanges = laci_gossip_exchanges,
    .step = laci_gamma_step,
};
