// SPDX-License-Identifier: MIT
// Moniqua (Lu, De Sa, arXiv:2002.11787), a control: gossip of a few bits of
// each value. A worker sends its values modulo B, rounded at random, and a
// neighbour finds the multiple of B by its own values, which are not far away.
// There is no memory, and no norm is sent.
//
//     d = 1 / (2^bits - 1),  B = 2 theta / (1 - 2 d)
//     l_i = floor((mod(x_i / B, 1) + 1/2) / d + u),  q_i = d l_i - 1/2
//     x_i += gamma sum_j w_ij (mod(q_j B - x_i, B) - e_i) + update
//
// The levels l_i are sent. mod(a, b) is in [-b/2, b/2), u is uniform in [0, 1),
// and e_i = q_i B - mod(x_i, B) is this worker's own rounding error, at most d
// B. If x_i and x_j differ by less than theta, then mod(q_j B - x_i, B) is x_j
// + e_j - x_i, and one worker gains what its neighbour loses: the mean is
// preserved. If they are further apart, it is off by a multiple of B, and
// nothing shows it. Rounding errors do not shrink with the disagreement, so
// there is an error floor.
//
// gamma, theta and 2 bits are those with which PowerGossip (Vogels et al.,
// arXiv:2008.01425) compares itself; every worker draws its own u, as there.
//
// Payload for n values: n levels of `bits` bits, packed as in kernels/pack.h.
#include <math.h>

#include "algorithm/shared/gossip.h"
#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/pack.h"
#include "kernels/vector.h"

enum { STEP }; // the field of a tensor

enum { BITS_MAX = 8, BLOCK = 512, BYTE_BITS = 8 };

typedef struct moniqua {
    double gamma;
    double theta;
    uint32_t bits;
} moniqua;

static const lac_param moniqua_params[] = {
    {.name = "gamma",
     .aliases = "consensus_stepsize",
     .type = LAC_PARAM_F64,
     .offset = offsetof(moniqua, gamma),
     .default_value = "0.005",
     .min = 0,
     .max = 2,
     .above_min = true,
     .help = "step towards the neighbours' values"},
    {.name = "theta",
     .type = LAC_PARAM_F64,
     .offset = offsetof(moniqua, theta),
     .default_value = "0.25",
     .min = 0,
     .max = 1e6,
     .above_min = true,
     .help = "how far apart values of neighbours may be; further ones wrap"},
    {.name = "bits",
     .type = LAC_PARAM_U32,
     .offset = offsetof(moniqua, bits),
     .default_value = "2",
     .min = 2,
     .max = BITS_MAX,
     .help = "bits of a value"},
    {0},
};

// The values that are sent: level l is l width - modulus / 2.
typedef struct grid {
    uint32_t bits;
    double modulus; // B
    double width;   // d B
} grid;

static grid grid_of(const moniqua *s)
{
    const double levels = (double)((1u << s->bits) - 1);
    const double modulus = 2 * s->theta / (1 - 2 / levels);
    return (grid){s->bits, modulus, modulus / levels};
}

static double symmetric_mod(double a, double b)
{
    const double turns = a / b;
    return fabs(turns) < 0x1p30 ? a - b * rint(turns) : remainder(a, b);
}

static uint8_t round_level(const grid *g, double x, double u)
{
    const double above = symmetric_mod(x, g->modulus) + g->modulus / 2;
    const double most = (double)((1u << g->bits) - 1);
    return (uint8_t)fmax(0, fmin(most, floor(above / g->width + u)));
}

static double level_value(const grid *g, uint8_t level)
{
    return level * g->width - g->modulus / 2;
}

static void moniqua_plan(
    const void *state, const laci_worker *w, size_t tensor, laci_plan *plan)
{
    (void)state;
    laci_plan_working(plan, laci_tensor_values(w, tensor));
}

static size_t moniqua_message_bound(
    const void *state, const laci_worker *w, size_t tensor)
{
    const moniqua *const s = state;
    return laci_packed_size(laci_tensor_values(w, tensor), s->bits);
}

static size_t moniqua_block(const laci_item *item, size_t start)
{
    const size_t left = item->n - start;
    return left < BLOCK ? left : BLOCK;
}

static void put_levels(
    const grid *g, laci_round *round, size_t i, laci_writer *message)
{
    const laci_item *const item = &round->items[i];
    const laci_worker *const w = round->worker;
    const size_t len = laci_packed_size(item->n, g->bits);
    const lac_key key = lac_key_make(
        w->seed, LAC_PURPOSE_COMPRESS, round->number, lac_scope_worker(w->rank),
        item->name_hash);
    uint8_t *const out = laci_writer_room(message, len);
    laci_sent(round, i)->bytes = out;
    for (size_t start = 0; start < item->n; start += BLOCK) {
        const size_t n = moniqua_block(item, start);
        uint8_t levels[BLOCK];
        for (size_t k = 0; k < n; k++) {
            const uint32_t draw = lac_key_draw(&key, (uint32_t)(start + k));
            levels[k] = round_level(
                g, (double)item->in[start + k], (double)draw * 0x1p-32);
        }
        w->kernels->pack->pack_bytes(
            g->bits, levels, n, out + laci_packed_size(start, g->bits));
    }
    laci_writer_commit(message, len);
}

static lac_status take_levels(
    const grid *g, laci_round *round, uint32_t k, size_t i)
{
    const laci_item *const item = &round->items[i];
    const size_t expected = laci_packed_size(item->n, g->bits);
    const unsigned used = (unsigned)(item->n * g->bits % BYTE_BITS);
    laci_view *const view = laci_received(round, k, i);
    LAC_TRY(laci_reader_next(&round->readers[k], &view->bytes, &view->len));
    if (view->len != expected) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "moniqua: worker %u sent %zu bytes for %s, expected %zu",
            round->readers[k].peer, view->len, item->name, expected);
    }
    if (used != 0 && view->bytes[view->len - 1] >> used != 0) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "moniqua: worker %u set bits past the last of %zu values of %s",
            round->readers[k].peer, item->n, item->name);
    }
    return LAC_OK;
}

static lac_status take_all_levels(const grid *g, laci_round *round)
{
    for (uint32_t k = 0; k < round->edge_count; k++) {
        for (size_t i = 0; i < round->count; i++) {
            LAC_TRY(take_levels(g, round, k, i));
        }
        LAC_TRY(laci_reader_done(&round->readers[k]));
    }
    return LAC_OK;
}

// A block of values: their own rounding errors, and the sum of the weighted
// steps to the neighbours.
typedef struct block {
    double errors[BLOCK];
    double sum[BLOCK];
    uint8_t levels[BLOCK];
} block;

static void unpack_block(
    const laci_round *round, const grid *g, const uint8_t *payload,
    size_t start, size_t n, block *b)
{
    round->worker->kernels->pack->unpack_bytes(
        g->bits, payload + laci_packed_size(start, g->bits), n, b->levels);
}

static void step_block(
    const laci_round *round, const grid *g, size_t i, size_t start, block *b)
{
    const laci_item *const item = &round->items[i];
    const float *const x = item->in + start;
    const size_t n = moniqua_block(item, start);
    unpack_block(round, g, laci_sent(round, i)->bytes, start, n, b);
    for (size_t j = 0; j < n; j++) {
        b->errors[j] = level_value(g, b->levels[j]) -
                       symmetric_mod((double)x[j], g->modulus);
        b->sum[j] = 0;
    }
    for (uint32_t k = 0; k < round->edge_count; k++) {
        const double weight = round->edges[k].weight;
        unpack_block(round, g, laci_received(round, k, i)->bytes, start, n, b);
        for (size_t j = 0; j < n; j++) {
            const double away = level_value(g, b->levels[j]) - (double)x[j];
            b->sum[j] +=
                weight * (symmetric_mod(away, g->modulus) - b->errors[j]);
        }
    }
}

static void compute_step(
    const moniqua *s, const laci_round *round, const grid *g, size_t i)
{
    const laci_item *const item = &round->items[i];
    float *const step = item->fields[STEP].values;
    for (size_t start = 0; start < item->n; start += BLOCK) {
        block b;
        step_block(round, g, i, start, &b);
        for (size_t j = 0; j < moniqua_block(item, start); j++) {
            step[start + j] = (float)(s->gamma * b.sum[j]);
        }
    }
}

static lac_status moniqua_begin(void *state, laci_round *round)
{
    const moniqua *const s = state;
    const grid g = grid_of(s);
    laci_writer *const message = laci_group_message(round->group, 0);
    for (size_t i = 0; i < round->count; i++) {
        put_levels(&g, round, i, message);
    }
    LAC_TRY(laci_group_exchange(
        round->group, round->number, 0, round->edges, round->edge_count, true,
        round->readers));
    LAC_TRY(
        laci_group_abort_on_failure(round->group, take_all_levels(&g, round)));
    for (size_t i = 0; i < round->count; i++) {
        compute_step(s, round, &g, i);
    }
    return LAC_OK;
}

static lac_status moniqua_end(void *state, laci_round *round)
{
    (void)state;
    const laci_kernels *const kernels = round->worker->kernels;
    for (size_t i = 0; i < round->count; i++) {
        const laci_item *const item = &round->items[i];
        kernels->gossip->apply(
            item->in, item->fields[STEP].values, item->out, item->n);
        if (item->update != NULL) {
            kernels->vector->add(item->update, item->out, item->n);
        }
    }
    return LAC_OK;
}

static void moniqua_cost(const void *state, const laci_worker *w, lac_cost *out)
{
    for (size_t t = 0; t < lac_layout_count(w->layout); t++) {
        out->payload_bytes += (double)moniqua_message_bound(state, w, t);
    }
    out->messages = laci_gossip_degree(w);
    out->phases = 1;
}

static void moniqua_exchanges(
    const void *state, const laci_worker *w, laci_listing *out)
{
    size_t body = 0;
    for (size_t t = 0; t < lac_layout_count(w->layout); t++) {
        body += LACI_LENGTH_SIZE + moniqua_message_bound(state, w, t);
    }
    laci_gossip_list(out, w, body);
}

const laci_algorithm_ops laci_moniqua_algorithm = {
    .plugin.size = sizeof(laci_algorithm_ops),
    .plugin.name = "moniqua",
    .plugin.summary = "gossip of values modulo a range: wraps if it is left",
    .plugin.example = "moniqua",
    .plugin.params = moniqua_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(moniqua),
    .family = LAC_FAMILY_MODEL,
    .control = true,
    .plan = moniqua_plan,
    .message_bound = moniqua_message_bound,
    .begin = moniqua_begin,
    .end = moniqua_end,
    .cost = moniqua_cost,
    .exchanges = moniqua_exchanges,
};
