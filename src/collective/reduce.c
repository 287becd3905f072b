// SPDX-License-Identifier: MIT
// Sums over all workers, the same bits everywhere.
//
// Small ones go by recursive doubling: in step k every worker swaps its sum so
// far with the one whose rank differs in bit k. Both ends add the same two
// numbers, so they stay equal. Workers beyond the largest power of two first
// hand their values to one below, and are told the result at the end.
//
// In large ones every worker adds up one share and tells it to all: each value
// crosses the network twice, whatever the number of workers. It adds in the
// order in which doubling would, so that a sum does not depend on what else is
// summed with it. Where that does not matter, a transport that has a sum of its
// own does large ones itself, after all workers have shown by frames that they
// are about to do the same.
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "collective/number.h"
#include "collective/wire.h"
#include "kernels/vector.h"
#include "transport/transport.h"

// Frames n values as the message at `message`, and gives the room it takes.
static size_t send_values(
    laci_group *g, const laci_number *type, uint32_t peer, uint8_t *message,
    const void *x, size_t n)
{
    const size_t len = n * type->size;
    type->put(message + LACI_FRAME_SIZE, x, n);
    laci_wire_frame(g, message, len, peer);
    laci_wire_send(g, peer, message, len);
    return laci_aligned(LACI_FRAME_SIZE + len);
}

static lac_status send_partial(
    laci_group *g, const laci_number *type, uint32_t peer, size_t n)
{
    uint8_t *const message = g->sets[g->current].scratch;
    (void)send_values(g, type, peer, message, g->sum, n);
    return laci_wire_run(g);
}

static lac_status add_arrived(
    laci_group *g, const laci_number *type, uint32_t i, size_t n)
{
    const uint8_t *body;
    LAC_TRY(laci_wire_expect(g, i, n * type->size, &body));
    type->add(g->kernels, body, g->sum, n);
    return LAC_OK;
}

// A message that is lent is given back in the next exchange, and its sender
// waits for that. Where some workers have one more than others, those would
// wait for the next round, so that messages are copied there.
static void receive_partial(laci_group *g, uint32_t peer)
{
    laci_wire_receive(g, peer);
    if (g->inbox != NULL) {
        lac_receive *const wish = &g->receives[g->receive_count - 1];
        wish->buffer = g->inbox;
        wish->cap = LACI_FRAME_SIZE + g->piece;
    }
}

// The swaps between `core` workers, a power of two.
static lac_status double_up(
    laci_group *g, const laci_number *type, uint32_t core, size_t n)
{
    for (uint32_t bit = 1; bit < core; bit <<= 1) {
        receive_partial(g, g->rank ^ bit);
        LAC_TRY(send_partial(g, type, g->rank ^ bit, n));
        LAC_TRY(add_arrived(g, type, 0, n));
    }
    type->unify_nan(g->sum, n);
    return LAC_OK;
}

// What a worker beyond the core does: hand over, and be told.
static lac_status sum_outside(
    laci_group *g, const laci_number *type, uint32_t core, uint16_t last,
    size_t n)
{
    const uint8_t *body;
    LAC_TRY(send_partial(g, type, g->rank - core, n));
    g->moment.step = last;
    receive_partial(g, g->rank - core);
    LAC_TRY(laci_wire_run(g));
    LAC_TRY(laci_wire_expect(g, 0, n * type->size, &body));
    type->get(body, g->sum, n);
    return LAC_OK;
}

static lac_status sum_inside(
    laci_group *g, const laci_number *type, uint32_t core, uint16_t last,
    size_t n)
{
    const bool helps = g->rank < g->world - core;
    const uint16_t first = g->moment.step;
    if (helps) {
        receive_partial(g, g->rank + core);
        LAC_TRY(laci_wire_run(g));
        LAC_TRY(add_arrived(g, type, 0, n));
    }
    g->moment.step = (uint16_t)(first + 1);
    LAC_TRY(double_up(g, type, core, n));
    g->moment.step = last;
    return helps ? send_partial(g, type, g->rank + core, n) : LAC_OK;
}

// How many workers double: the largest power of two that there are.
static uint32_t core_of(const laci_group *g)
{
    uint32_t core = 1;
    while (core <= g->world / 2) {
        core *= 2;
    }
    return core;
}

// One piece by recursive doubling.
static lac_status sum_small(
    laci_group *g, const laci_number *type, void *x, size_t n)
{
    const uint32_t core = core_of(g);
    uint16_t last = (uint16_t)(g->moment.step + 1);
    for (uint32_t bit = 1; bit < core; bit <<= 1) {
        last++;
    }
    g->sum = n == 0 ? g->partial : x; // in its place: lost when this fails
    LAC_TRY(
        g->rank < core ? sum_inside(g, type, core, last, n)
                       : sum_outside(g, type, core, last, n));
    g->moment.step = (uint16_t)(last + 1);
    return LAC_OK;
}

// Where the share of worker k begins.
static size_t share_start(const laci_group *g, uint32_t k, size_t n)
{
    return (size_t)((uint64_t)n * k / g->world);
}

static void receive_from_all(laci_group *g)
{
    for (uint32_t peer = 0; peer < g->world; peer++) {
        if (peer != g->rank) {
            laci_wire_receive(g, peer);
        }
    }
}

// Copies worker k's part of the own share to `y`, or adds it.
static lac_status take_part(
    laci_group *g, uint32_t k, const float *x, float *y, size_t n, bool add)
{
    const uint8_t *body;
    if (k == g->rank && add) {
        g->kernels->vector->add(x, y, n);
    } else if (k == g->rank) {
        memcpy(y, x, n * sizeof(*x));
    } else {
        LAC_TRY(laci_wire_expect(g, k - (k > g->rank), n * sizeof(*x), &body));
        if (add) {
            laci_number_f32.add(g->kernels, body, y, n);
        } else {
            laci_number_f32.get(body, y, n);
        }
    }
    return LAC_OK;
}

// Adds up the parts of the own share, `n` values at `x` and what has arrived,
// as doubling does: neighbours first, then pairs of neighbours. Sums that wait
// for their other half lie one after the other in g->partial; they are fewer
// than workers, so that a piece is room enough.
static lac_status add_parts(laci_group *g, const float *x, size_t n)
{
    const uint32_t core = core_of(g);
    float *top = g->partial;
    for (uint32_t k = 0; k < core; k++) {
        LAC_TRY(take_part(g, k, x, top, n, false));
        if (k < g->world - core) {
            LAC_TRY(take_part(g, k + core, x, top, n, true));
        }
        for (uint32_t bit = 1; (k & bit) != 0; bit <<= 1) {
            g->kernels->vector->add(top, top - n, n);
            top -= n;
        }
        top += n;
    }
    laci_number_f32.unify_nan(g->partial, n);
    return LAC_OK;
}

// Everybody sends everybody its part of their share, and adds up its own.
static lac_status reduce_shares(laci_group *g, const float *x, size_t n)
{
    uint8_t *message = g->sets[g->current].scratch;
    for (uint32_t distance = 1; distance < g->world; distance++) {
        const uint32_t to = (g->rank + distance) % g->world;
        const size_t start = share_start(g, to, n);
        message += send_values(
            g, &laci_number_f32, to, message, x + start,
            share_start(g, to + 1, n) - start);
    }
    receive_from_all(g);
    LAC_TRY(laci_wire_run(g));
    const size_t start = share_start(g, g->rank, n);
    return add_parts(g, x + start, share_start(g, g->rank + 1, n) - start);
}

// Puts the share of worker k, which has arrived, where it belongs.
static lac_status take_share(laci_group *g, uint32_t k, float *x, size_t n)
{
    const size_t start = share_start(g, k, n);
    const size_t count = share_start(g, k + 1, n) - start;
    const uint8_t *body;
    LAC_TRY(laci_wire_expect(g, k - (k > g->rank), count * sizeof(*x), &body));
    laci_get_floats(body, x + start, count);
    return LAC_OK;
}

// Everybody tells everybody its share.
static lac_status gather_shares(laci_group *g, float *x, size_t n)
{
    const size_t start = share_start(g, g->rank, n);
    const size_t own = share_start(g, g->rank + 1, n) - start;
    uint8_t *const message = g->sets[g->current].scratch;
    laci_put_floats(message + LACI_FRAME_SIZE, g->partial, own);
    laci_wire_frame(g, message, own * sizeof(*x), LAC_RANK_ANY);
    for (uint32_t distance = 1; distance < g->world; distance++) {
        const uint32_t to = (g->rank + distance) % g->world;
        laci_wire_send(g, to, message, own * sizeof(*x));
    }
    receive_from_all(g);
    LAC_TRY(laci_wire_run(g));
    memcpy(x + start, g->partial, own * sizeof(*x));
    for (uint32_t k = 0; k < g->rank; k++) {
        LAC_TRY(take_share(g, k, x, n));
    }
    for (uint32_t k = g->rank + 1; k < g->world; k++) {
        LAC_TRY(take_share(g, k, x, n));
    }
    return LAC_OK;
}

static lac_status sum_piece(laci_group *g, float *x, size_t n)
{
    const size_t size = n * sizeof(*x);
    if (size <= LACI_SUM_SMALL || size / g->world < LACI_SUM_SHARE) {
        return sum_small(g, &laci_number_f32, x, n);
    }
    LAC_TRY(reduce_shares(g, x, n));
    return gather_shares(g, x, n);
}

// Tells every worker, by way of others, that all are about to sum n values.
static lac_status meet(laci_group *g, size_t n)
{
    for (uint64_t distance = 1; distance < g->world; distance *= 2) {
        const uint32_t ahead = (uint32_t)((g->rank + distance) % g->world);
        const uint32_t behind =
            (uint32_t)((g->rank + g->world - distance) % g->world);
        uint8_t *const message = g->sets[g->current].scratch;
        const uint8_t *body;
        laci_put_u64(message + LACI_FRAME_SIZE, n);
        laci_wire_frame(g, message, sizeof(uint64_t), ahead);
        laci_wire_send(g, ahead, message, sizeof(uint64_t));
        laci_wire_receive(g, behind);
        LAC_TRY(laci_wire_run(g));
        LAC_TRY(laci_wire_expect(g, 0, sizeof(uint64_t), &body));
        const uint64_t theirs = laci_get_u64(body);
        if (theirs != n) {
            return laci_group_abort_on_failure(
                g, lac_fail(
                       LAC_ERR_PEER,
                       "worker %" PRIu32 " sums %" PRIu64
                       " values, worker %" PRIu32 " %zu",
                       behind, theirs, g->rank, n));
        }
    }
    return LAC_OK;
}

static lac_status sum_all(laci_group *g, float *x, size_t n)
{
    if (g->native_sums && n * sizeof(*x) > LACI_SUM_SMALL &&
        laci_transport_has_allreduce(g->transport)) {
        LAC_TRY(meet(g, n));
        const double begun = lac_transport_now(g->transport);
        const lac_status status =
            laci_transport_allreduce(g->transport, x, n, begun + g->timeout);
        laci_wire_waited(g, begun);
        return laci_group_abort_on_failure(g, status);
    }
    const size_t most = g->piece / sizeof(*x);
    size_t done = 0;
    do {
        const size_t now = n - done < most ? n - done : most;
        LAC_TRY(sum_piece(g, n == 0 ? x : x + done, now));
        done += now;
    } while (done < n);
    return LAC_OK;
}

lac_status laci_group_sum_noting(
    laci_group *g, uint64_t round, uint32_t phase, float *x, size_t n,
    size_t notes)
{
    if (g->world == 1) {
        return LAC_OK;
    }
    LAC_TRY(laci_wire_start(g, round, phase));
    LAC_TRY(sum_all(g, x, n + notes));
    laci_wire_count(g, n * sizeof(*x), (n + notes) * sizeof(*x));
    return LAC_OK;
}

lac_status laci_group_sum(
    laci_group *g, uint64_t round, uint32_t phase, float *x, size_t n)
{
    return laci_group_sum_noting(g, round, phase, x, n, 0);
}

lac_status laci_group_sum_f64(
    laci_group *g, uint64_t round, uint32_t phase, double *x, size_t n)
{
    if (g->world == 1) {
        return LAC_OK;
    }
    LAC_TRY(laci_wire_start(g, round, phase));
    const size_t most = g->piece / sizeof(*x);
    size_t done = 0;
    do {
        const size_t now = n - done < most ? n - done : most;
        LAC_TRY(sum_small(g, &laci_number_f64, n == 0 ? x : x + done, now));
        done += now;
    } while (done < n);
    return LAC_OK;
}
