// SPDX-License-Identifier: MIT
// Signum with majority vote (Bernstein et al., arXiv:1810.05291): every worker
// sends the signs of its momentum, and the result is the sign that most have.
//
//     m_i = b m_i + (1 - b) g_i;  result = sign(sum of sign(m_i))
//
// The sign of 0 is +1, and so is a tie, as in the code of the PowerSGD paper.
// With tie=zero a tie is 0: no step. An even number of workers often ties where
// the gradient is mostly noise (3 of 8 times with four workers), and +1 then
// moves all such values in one direction. There is no scale: the learning rate
// is the step. A payload is ceil(n/8) bytes, a bit set for a negative value;
// bits past the last value are 0. The momentum is written only after the round
// has succeeded, so it is computed twice.
#include <string.h>

#include "algorithm/framework/round.h"
#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/sign.h"
#include "kernels/vector.h"

enum { MOMENTUM, BYTE_BITS = 8 };

enum tie { TIE_PLUS, TIE_ZERO };

typedef struct signum {
    double momentum;
    uint32_t tie; // enum tie
} signum;

static const lac_param signum_params[] = {
    {.name = "momentum",
     .type = LAC_PARAM_F64,
     .offset = offsetof(signum, momentum),
     .default_value = "0.9",
     .min = 0,
     .max = 1,
     .help = "the part of the momentum that stays in a round; below 1"},
    {.name = "tie",
     .type = LAC_PARAM_CHOICE,
     .offset = offsetof(signum, tie),
     .default_value = "plus",
     .choices = "plus|zero",
     .help = "the result of a tie: +1 or 0"},
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

static size_t signs_size(size_t n)
{
    return n / BYTE_BITS + (n % BYTE_BITS != 0);
}

static void signum_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state;
    laci_plan_own(plan, "momentum", laci_tensor_values(w, tensor));
}

static size_t signum_message_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    (void)state;
    return signs_size(laci_tensor_values(w, tensor));
}

// A part of an item: values [first, first + n).
typedef struct signum_part {
    size_t item;
    size_t first;
    size_t n;
} signum_part;

// What a loop needs.
typedef struct signum_loop {
    const signum *settings;
    uint8_t *message; // room for the signs of the first item
} signum_loop;

// Writes the momentum of a part after this round to `out`, which may be that of
// the field itself.
static void next_momentum(
    const signum *settings, const laci_round *round, const signum_part *p,
    float *out)
{
    const laci_item *const item = &round->items[p->item];
    round->worker->kernels->gossip->combine(
        (float)settings->momentum, item->fields[MOMENTUM].values + p->first,
        (float)(1 - settings->momentum), item->in + p->first, NULL, out, p->n);
}

// Writes the signs of the next momentum, and looks for values that are not
// finite. The momentum itself stays, in case the exchange fails.
static void signum_put(laci_loop *loop, size_t i, size_t first, size_t n)
{
    const signum_loop *const l = loop->context;
    const laci_round *const round = loop->round;
    uint8_t *const signs = l->message + laci_sent_at(round, i);
    const laci_kernels *const kernels = round->worker->kernels;
    float next[LAC_PART];
    next_momentum(l->settings, round, &(signum_part){i, first, n}, next);
    (void)kernels->sign->encode(next, n, signs + first / BYTE_BITS);
    if (!laci_all_finite(kernels, round->items[i].in + first, n)) {
        laci_loop_fail(loop, i);
    }
}

static lac_status take_signs(laci_round *round, uint32_t k, size_t i)
{
    const laci_item *const item = &round->items[i];
    laci_view *const view = laci_received(round, k, i);
    LAC_TRY(laci_reader_next(&round->readers[k], &view->bytes, &view->len));
    if (view->len != signs_size(item->n)) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "signum: worker %u sent %zu bytes for %s, expected %zu",
            round->readers[k].peer, view->len, item->name, signs_size(item->n));
    }
    const size_t used = item->n % BYTE_BITS;
    if (used != 0 && view->bytes[view->len - 1] >> used != 0) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "signum: worker %u set bits past the last of %zu values of %s",
            round->readers[k].peer, item->n, item->name);
    }
    return LAC_OK;
}

static lac_status take_votes(laci_round *round)
{
    for (uint32_t k = 0; k < round->worker->world; k++) {
        for (size_t i = 0; i < round->count; i++) {
            LAC_TRY(take_signs(round, k, i));
        }
        LAC_TRY(laci_reader_done(&round->readers[k]));
    }
    return LAC_OK;
}

static void keep_signs(float *sums, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sums[i] = (float)((sums[i] > 0) - (sums[i] < 0));
    }
}

// Floats add signs exactly.
static void vote(
    const signum *settings, const laci_round *round, const signum_part *p)
{
    const laci_sign_kernels *const sign = round->worker->kernels->sign;
    float *const out = round->items[p->item].out + p->first;
    uint8_t signs[LAC_PART / BYTE_BITS];
    memset(out, 0, p->n * sizeof(*out));
    for (uint32_t k = 0; k < round->worker->world; k++) {
        const laci_view *const view = laci_received(round, k, p->item);
        sign->decode_add(1, view->bytes + p->first / BYTE_BITS, 1, out, p->n);
    }
    if (settings->tie == TIE_ZERO) {
        keep_signs(out, p->n);
        return;
    }
    (void)sign->encode(out, p->n, signs);
    sign->decode(1, signs, out, p->n);
}

static void signum_apply(laci_loop *loop, size_t i, size_t first, size_t n)
{
    const signum_loop *const l = loop->context;
    float *const momentum = loop->round->items[i].fields[MOMENTUM].values;
    const signum_part part = {i, first, n};
    next_momentum(l->settings, loop->round, &part, momentum + first);
    vote(l->settings, loop->round, &part);
}

static lac_status signum_reduce(void *state, laci_round *round)
{
    signum_loop loop = {.settings = state};
    laci_writer *const message = laci_nonfinite_message(round, 0);
    for (size_t i = 0; i < round->count; i++) {
        const size_t len = signs_size(round->items[i].n);
        uint8_t *const room = laci_writer_room(message, len);
        loop.message = i == 0 ? room : loop.message;
        round->sent[i] = (laci_view){.bytes = room, .len = len};
        laci_writer_commit(message, len);
    }
    if (laci_split(&loop, round, 0, round->count, LAC_PART, signum_put) !=
        round->count) {
        return LACI_SCAN;
    }
    LAC_TRY(laci_nonfinite_gather(round));
    LAC_TRY(laci_group_abort_on_failure(round->group, take_votes(round)));
    (void)laci_split(&loop, round, 0, round->count, LAC_PART, signum_apply);
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

static void signum_exchanges(
    const void *state, const laci_worker *w, laci_listing *out)
{
    size_t body = 0;
    for (size_t t = 0; t < lac_layout_count(w->layout); t++) {
        body += LACI_LENGTH_SIZE + signum_message_bound(state, w, t);
    }
    laci_nonfinite_list_gather(out, body);
}

const laci_algorithm_ops laci_signum_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "signum",
    .plugin.summary = "majority vote on the signs of the momentum",
    .plugin.example = "signum:tie=zero",
    .plugin.params = signum_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(signum),
    .family = LAC_FAMILY_GRADIENT,
    .finds_nonfinite = true,
    .configure = signum_configure,
    .plan = signum_plan,
    .message_bound = signum_message_bound,
    .reduce = signum_reduce,
    .cost = signum_cost,
    .exchanges = signum_exchanges,
};
