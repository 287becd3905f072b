// SPDX-License-Identifier: MIT
// Signum with majority vote (Bernstein et al., arXiv:1810.05291): every worker
// sends the signs of its momentum, and the result is the sign that most have.
//
//     m_i = b m_i + (1 - b) g_i;  result = sign(sum of sign(m_i))
//
// The sign of 0 is +1, and so is a tie. There is no scale: the learning rate
// is the step. A payload is ceil(n/8) bytes, a bit set for a negative value;
// bits past the last value are 0. The momentum is written only once the round
// has succeeded, which costs computing it twice.
#include <string.h>

#include "algorithm/gradient.h"
#include "algorithm/nonfinite.h"
#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/sign.h"

enum { MOMENTUM, BYTE_BITS = 8 };

typedef struct signum {
    double momentum;
} signum;

static const lac_param signum_params[] = {
    {.name = "momentum",
     .type = LAC_PARAM_F64,
     .offset = offsetof(signum, momentum),
     .default_value = "0.9",
     .min = 0,
     .max = 1,
     .help = "how much of the momentum stays in a round; below 1"},
    {0},
};

static lac_status signum_configure(void *state, const laci_worker *w)
{
    const signum *const settings = state;
    (void)w;
    if (settings->momentum >= 1) {
        return lac_fail(
            LAC_ERR_INVALID, "signum: momentum is 1, expected less");
    }
    return LAC_OK;
}

static size_t values_of(const laci_worker *w, size_t tensor)
{
    const lac_shape shape = lac_layout_tensor(w->layout, tensor)->shape;
    return shape.rows * shape.cols;
}

static size_t signs_size(size_t n)
{
    return n / BYTE_BITS + (n % BYTE_BITS != 0);
}

static void signum_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state;
    laci_plan_field(plan, "momentum", LAC_RANK_ANY, values_of(w, tensor));
}

static size_t signum_message_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    (void)state;
    return signs_size(values_of(w, tensor));
}

// Writes the momentum after this round to `out`, which may be its own place.
static void move(
    const signum *settings, const laci_worker *w, const laci_item *item,
    float *out)
{
    const float *const momentum = laci_fields(w, item->tensor)[MOMENTUM].values;
    w->kernels->gossip->combine(
        (float)settings->momentum, momentum, (float)(1 - settings->momentum),
        item->in, out, item->n);
}

static lac_status take_signs(
    laci_worker *w, const laci_round *round, uint32_t k, size_t i)
{
    const laci_item *const item = &round->items[i];
    laci_view *const view = laci_gradient_view(w, round, k, i);
    LAC_TRY(laci_reader_next(&w->readers[k], &view->bytes, &view->len));
    if (view->len != signs_size(item->n)) {
        return lac_fail(
            LAC_ERR_CORRUPT, "signum: payload has %zu bytes, expected %zu",
            view->len, signs_size(item->n));
    }
    const size_t used = item->n % BYTE_BITS;
    if (used != 0 && view->bytes[view->len - 1] >> used != 0) {
        return lac_fail(
            LAC_ERR_CORRUPT, "signum: bits past the last of %zu values are set",
            item->n);
    }
    return LAC_OK;
}

static lac_status take_all(laci_worker *w, const laci_round *round)
{
    for (uint32_t k = 0; k < w->world; k++) {
        for (size_t i = 0; i < round->count; i++) {
            LAC_TRY(take_signs(w, round, k, i));
        }
        LAC_TRY(laci_reader_done(&w->readers[k]));
    }
    return LAC_OK;
}

// A sum of signs is exact in floats.
static void vote(laci_worker *w, const laci_round *round, size_t i)
{
    const laci_item *const item = &round->items[i];
    const laci_sign_kernels *const sign = w->kernels->sign;
    uint8_t *const signs = (uint8_t *)w->scratch;
    memset(item->out, 0, item->n * sizeof(float));
    for (uint32_t k = 0; k < w->world; k++) {
        const laci_view *const view = laci_gradient_view(w, round, k, i);
        sign->decode_add(1, view->bytes, 1, item->out, item->n);
    }
    (void)sign->encode(item->out, item->n, signs);
    sign->decode(1, signs, item->out, item->n);
}

static lac_status signum_reduce(
    void *state, laci_worker *w, const laci_round *round)
{
    const signum *const settings = state;
    laci_writer *const message = laci_first_message(w, round, 0);
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        uint8_t *const signs = laci_writer_room(message, signs_size(item->n));
        if (item->n > 0) {
            move(settings, w, item, w->scratch);
            (void)w->kernels->sign->encode(w->scratch, item->n, signs);
        }
        laci_writer_commit(message, signs_size(item->n));
    }
    LAC_TRY(laci_first_gather(w, round));
    LAC_TRY(laci_group_abort_on_failure(w->group, take_all(w, round)));
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        if (item->n > 0) {
            move(
                settings, w, item,
                laci_fields(w, item->tensor)[MOMENTUM].values);
            vote(w, round, i);
        }
    }
    return LAC_OK;
}

static void signum_cost(const void *state, const laci_worker *w, lac_cost *out)
{
    for (size_t t = 0; t < lac_layout_count(w->layout); t++) {
        out->payload_bytes += (double)signum_message_bound(state, w, t);
    }
    out->messages = 1;
    out->phases = 1;
}

const laci_algorithm_ops laci_signum_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "signum",
    .plugin.summary = "majority vote on the signs of the momentum",
    .plugin.params = signum_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(signum),
    .family = LAC_FAMILY_GRADIENT,
    .configure = signum_configure,
    .plan = signum_plan,
    .message_bound = signum_message_bound,
    .reduce = signum_reduce,
    .cost = signum_cost,
};
