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

// v = x + e
static void deepsqueeze_add(laci_loop *loop, size_t i, size_t first, size_t n)
{
    const laci_kernels *const kernels = loop->round->worker->kernels;
    const laci_item *const item = &loop->round->items[i];
    const float *const error = item->fields[ERROR].values;
    float *const v = item->fields[NEXT].values + first;
    kernels->gossip->apply(item->in + first, error + first, v, n);
    if (!laci_all_finite(kernels, v, n)) {
        laci_loop_fail(loop, i);
    }
}

// Fails where the sum overflows: a sparsifier may leave that value out, and the
// error memory would keep it.
static lac_status add_error(const laci_round *round, size_t i)
{
    if (laci_split(NULL, round, i, i + 1, LAC_PART, deepsqueeze_add) != i) {
        return LAC_OK;
    }
    LAC_TRY(laci_nonfinite_find(round, i));
    return lac_fail(
        LAC_ERR_INVALID,
        "deepsqueeze: worker %u has values in %s that overflow its error "
        "memory",
        round->worker->rank, round->items[i].name);
}

static lac_status deepsqueeze_exchange(laci_round *round)
{
    const lac_compressor *const c = round->worker->compressor;
    for (size_t i = 0; i < round->count; i++) {
        LAC_TRY(laci_group_abort_on_failure(round->group, add_error(round, i)));
        laci_gossip_put(round, c, i, round->items[i].fields[NEXT].values);
    }
    return laci_gossip_exchange(round, c, 0);
}

// Subtracts the payload of a part from v, and writes the step of the part.
static void deepsqueeze_apply(
    const laci_step_size *gamma, const laci_round *round, size_t i,
    size_t first, size_t n, float *step)
{
    const laci_view *const sent = laci_sent(round, i);
    const float own = (float)(gamma->value * (round->self_weight - 1));
    laci_view_add_part(
        sent, first, n, -1, round->items[i].fields[NEXT].values + first);
    memset(step, 0, n * sizeof(*step));
    laci_view_add_part(sent, first, n, own, step);
    for (uint32_t k = 0; k < round->edge_count; k++) {
        laci_view_add_part(
            laci_received(round, k, i), first, n,
            (float)(gamma->value * round->edges[k].weight), step);
    }
}

static void deepsqueeze_step(
    const laci_round *round, size_t i, size_t first, size_t n,
    const float *step)
{
    const laci_kernels *const kernels = round->worker->kernels;
    const laci_item *const item = &round->items[i];
    float *const x = item->out + first;
    kernels->gossip->apply(item->in + first, step, x, n);
    if (item->update != NULL) {
        kernels->vector->add(item->update + first, x, n);
    }
}

// v without the payload is the next error memory.
static void swap_errors(const laci_round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        laci_field *const fields = round->items[i].fields;
        float *const error = fields[ERROR].values;
        fields[ERROR].values = fields[NEXT].values;
        fields[NEXT].values = error;
    }
}

// Applies the payloads of the values, and steps at once. Each range has room
// for the step of a part where its own steps would be.
static void apply_and_step(laci_loop *loop, size_t i, size_t first, size_t n)
{
    const laci_round *const round = loop->round;
    const laci_item *const item = &round->items[i];
    float part[LAC_PART];
    float *const step = n <= LAC_PART ? part : item->fields[STEP].values;
    deepsqueeze_apply(loop->context, round, i, first, n, step);
    deepsqueeze_step(round, i, first, n, step);
}

static lac_status deepsqueeze_begin(void *state, laci_round *round)
{
    LAC_TRY(deepsqueeze_exchange(round));
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        deepsqueeze_apply(
            state, round, i, 0, item->n, item->fields[STEP].values);
    }
    return LAC_OK;
}

static lac_status deepsqueeze_end(void *state, laci_round *round)
{
    (void)state;
    swap_errors(round);
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        deepsqueeze_step(round, i, 0, item->n, item->fields[STEP].values);
    }
    return LAC_OK;
}

static lac_status deepsqueeze_mix(void *state, laci_round *round)
{
    LAC_TRY(deepsqueeze_exchange(round));
    (void)laci_split(
        state, round, 0, round->count,
        laci_part_size(round->worker->compressor), apply_and_step);
    swap_errors(round);
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
    .scans = true,
    .configure = laci_gamma_configure,
    .plan = deepsqueeze_plan,
    .message_bound = laci_gossip_bound,
    .start = deepsqueeze_start,
    .begin = deepsqueeze_begin,
    .end = deepsqueeze_end,
    .mix = deepsqueeze_mix,
    .cost = laci_gossip_cost,
    .exchanges = laci_gossip_exchanges,
    .step = laci_gamma_step,
};
