// SPDX-License-Identifier: MIT
// Sums in shares: every worker sends every other one its part of that one's
// share (scatter), adds its own share, and sends the result to all (gather).
// Each value crosses the network twice, whatever the number of workers.
// Additions have the order of recursive doubling, so that a sum does not depend
// on the values that are summed with it.
//
// One piece after the other waits for the network twice a piece. Over a
// transport that queues its messages, pieces are sent ahead instead. Exchange t
//
//     sends      the scatter of piece t      and the gather of piece t - 2
//     receives   the scatter of piece t - 1  and the gather of piece t - 3
//
// so all that it waits for was sent one exchange earlier, and the messages of
// one exchange are on their way while the next one is prepared. Two sets of
// scratch are enough: when exchange t returns, the bytes of t - 1 are free, and
// the messages of t + 1 take their place. A last exchange without messages
// returns those of the one before it: a transport that lends the sender's bytes
// would otherwise wait for the next round.
//
// The step of a message is twice its piece, and one more in a gather.
#include "collective/shares.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "collective/number.h"
#include "collective/wire.h"
#include "kernels/vector.h"

// Where the share of worker k begins.
static size_t share_start(const laci_group *g, uint32_t k, size_t n)
{
    return (size_t)((uint64_t)n * k / g->world);
}

static size_t share_count(const laci_group *g, uint32_t k, size_t n)
{
    return share_start(g, k + 1, n) - share_start(g, k, n);
}

// Which of the receives from all workers is that from worker k.
static uint32_t receive_of(const laci_group *g, uint32_t k)
{
    return k - (k > g->rank);
}

static void receive_from_all(laci_group *g)
{
    for (uint32_t peer = 0; peer < g->world; peer++) {
        if (peer != g->rank) {
            laci_wire_receive(g, peer);
        }
    }
}

// Scatter: writes the messages one after the other, from `message` on.
static void send_shares(
    laci_group *g, uint8_t *message, const float *x, size_t n)
{
    for (uint32_t distance = 1; distance < g->world; distance++) {
        const uint32_t to = (g->rank + distance) % g->world;
        const size_t count = share_count(g, to, n);
        const size_t len = count * sizeof(*x);
        laci_put_floats(
            message + LACI_FRAME_SIZE, x + share_start(g, to, n), count);
        laci_wire_frame(g, message, len, to);
        laci_wire_send(g, to, message, len);
        message += laci_aligned(LACI_FRAME_SIZE + len);
    }
}

// A block of the own share.
typedef struct block {
    const float *own; // this worker's part
    size_t at;        // where it begins in the share
    size_t n;
} block;

// Copies worker k's part of the block to `y`, or adds it.
static void take_part(
    const laci_group *g, uint32_t k, const block *b, float *y, bool add)
{
    const uint8_t *body;
    if (k == g->rank && add) {
        g->kernels->vector->add(b->own, y, b->n);
    } else if (k == g->rank) {
        memcpy(y, b->own, b->n * sizeof(*y));
    } else {
        (void)laci_wire_body(g, receive_of(g, k), &body);
        body += b->at * sizeof(*y);
        if (add) {
            laci_number_f32.add(g->kernels, body, y, b->n);
        } else {
            laci_number_f32.get(body, y, b->n);
        }
    }
}

// Adds the parts of a block in the order of doubling: neighbours first, then
// pairs of neighbours. Partial sums that wait for their other half are a stack
// in g->partial, where the last one remains.
static void add_parts(const laci_group *g, const block *b)
{
    const uint32_t core = laci_sum_core(g);
    float *top = g->partial;
    for (uint32_t k = 0; k < core; k++) {
        const bool has_extra = k < g->world - core;
        uint32_t halves = k; // bit i: a sum of 2^i parts waits
        if ((k & 1) != 0 && !has_extra) {
            take_part(g, k, b, top - LACI_SUM_BLOCK_FLOATS, true);
            halves >>= 1;
        } else {
            take_part(g, k, b, top, false);
            if (has_extra) {
                take_part(g, k + core, b, top, true);
            }
            top += LACI_SUM_BLOCK_FLOATS;
        }
        for (; (halves & 1) != 0; halves >>= 1) {
            top -= LACI_SUM_BLOCK_FLOATS;
            g->kernels->vector->add(top, top - LACI_SUM_BLOCK_FLOATS, b->n);
        }
    }
}

// Copies sums to their place. All NaN become the same one, see number.h.
static void place_sums(const float *sums, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = isnan(sums[i]) ? NAN : sums[i];
    }
}

// Adds what a scatter brought, the first receives of the last run, to the own
// share of x[0..n). The sum goes there and to the body of the next gather,
// which begins the scratch of the current set.
static lac_status add_shares(laci_group *g, float *x, size_t n)
{
    const size_t count = share_count(g, g->rank, n);
    float *const own = x + share_start(g, g->rank, n);
    for (uint32_t i = 0; i + 1 < g->world; i++) {
        const uint8_t *body;
        LAC_TRY(laci_wire_expect(g, i, count * sizeof(*x), &body));
    }
    uint8_t *const sums = g->sets[g->current].scratch + LACI_FRAME_SIZE;
    for (size_t at = 0; at < count; at += LACI_SUM_BLOCK_FLOATS) {
        const size_t left = count - at;
        const block b = {
            .own = own + at,
            .at = at,
            .n = left < LACI_SUM_BLOCK_FLOATS ? left : LACI_SUM_BLOCK_FLOATS,
        };
        add_parts(g, &b);
        place_sums(g->partial, own + at, b.n);
        laci_put_floats(sums + at * sizeof(*x), own + at, b.n);
    }
    return LAC_OK;
}

// Gather: sends the sum of the own share, of a piece of n values, to all.
static void send_sum(laci_group *g, size_t n)
{
    uint8_t *const message = g->sets[g->current].scratch;
    const size_t len = share_count(g, g->rank, n) * sizeof(float);
    laci_wire_frame(g, message, len, LAC_RANK_ANY);
    for (uint32_t distance = 1; distance < g->world; distance++) {
        laci_wire_send(g, (g->rank + distance) % g->world, message, len);
    }
}

// Copies what a gather brought, from receive number `first` on, to its place.
static lac_status take_sums(laci_group *g, uint32_t first, float *x, size_t n)
{
    for (uint32_t k = 0; k < g->world; k++) {
        const size_t count = share_count(g, k, n);
        const uint8_t *body;
        if (k == g->rank) {
            continue;
        }
        LAC_TRY(laci_wire_expect(
            g, first + receive_of(g, k), count * sizeof(*x), &body));
        laci_get_floats(body, x + share_start(g, k, n), count);
    }
    return LAC_OK;
}

lac_status laci_sum_shares(laci_group *g, float *x, size_t n)
{
    send_shares(g, g->sets[g->current].scratch, x, n);
    receive_from_all(g);
    LAC_TRY(laci_wire_run(g));
    LAC_TRY(add_shares(g, x, n));
    send_sum(g, n);
    receive_from_all(g);
    LAC_TRY(laci_wire_run(g));
    return take_sums(g, 0, x, n);
}

// A sum and its pieces.
typedef struct pieces {
    float *x;
    size_t n;
    size_t most; // values of a piece, except the last
    size_t count;
} pieces;

static float *piece_at(const pieces *p, size_t k)
{
    return p->x + k * p->most;
}

static size_t piece_count(const pieces *p, size_t k)
{
    const size_t left = p->n - k * p->most;
    return left < p->most ? left : p->most;
}

static void set_step(laci_group *g, size_t piece, bool gather)
{
    g->frame.step = (uint16_t)(2 * piece + gather);
}

// Lists the messages of exchange t. A piece before the first is a large number,
// because the numbers are unsigned, and thus not below count either.
static void list_ahead(laci_group *g, const pieces *p, size_t t)
{
    if (t < p->count) {
        // The message of a gather is before those of a scatter.
        const size_t sum = (p->most / g->world + 1) * sizeof(float);
        uint8_t *const message =
            g->sets[g->current].scratch + laci_aligned(LACI_FRAME_SIZE + sum);
        set_step(g, t, false);
        send_shares(g, message, piece_at(p, t), piece_count(p, t));
    }
    if (t - 2 < p->count) {
        set_step(g, t - 2, true);
        send_sum(g, piece_count(p, t - 2));
    }
    if (t - 1 < p->count) {
        set_step(g, t - 1, false);
        receive_from_all(g);
    }
    if (t - 3 < p->count) {
        set_step(g, t - 3, true);
        receive_from_all(g);
    }
}

lac_status laci_sum_ahead(laci_group *g, float *x, size_t n)
{
    const size_t most = g->piece / sizeof(*x);
    const pieces p = {x, n, most, (n - 1) / most + 1};
    for (size_t t = 0; t < p.count + 4; t++) {
        list_ahead(g, &p, t);
        LAC_TRY(laci_wire_run(g));
        const bool scattered = t - 1 < p.count;
        if (scattered) {
            LAC_TRY(add_shares(g, piece_at(&p, t - 1), piece_count(&p, t - 1)));
        }
        if (t - 3 < p.count) {
            LAC_TRY(take_sums(
                g, scattered ? g->world - 1 : 0, piece_at(&p, t - 3),
                piece_count(&p, t - 3)));
        }
    }
    return LAC_OK;
}
