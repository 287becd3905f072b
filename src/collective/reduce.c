// SPDX-License-Identifier: MIT
// Sums over all workers, the same bits everywhere.
//
// Small ones go by recursive doubling: in step k every worker swaps its sum so
// far with the one whose rank differs in bit k. Both ends add the same two
// numbers, so they stay equal. Workers beyond the largest power of two first
// hand their values to one below, and are told the result at the end.
//
// In large ones every worker adds up one share, in the order of ranks, and
// tells it to all: each value crosses the network twice, whatever the number
// of workers. A transport that has a sum of its own does large ones itself,
// after all workers have shown by frames that they are about to do the same.
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "collective/wire.h"
#include "kernels/vector.h"
#include "transport/transport.h"

// What is summed: how it looks in a message, and how to add it up.
typedef struct number {
    size_t size;
    void (*put)(uint8_t *out, const void *x, size_t n);
    void (*get)(const uint8_t *in, void *x, size_t n);
    void (*add)(const laci_group *g, const uint8_t *in, void *y, size_t n);

    // NaN with NaN keeps the bits of one of them, and it is not said which.
    void (*unify_nan)(void *x, size_t n);
} number;

static void put_f32(uint8_t *out, const void *x, size_t n)
{
    laci_put_floats(out, x, n);
}

static void get_f32(const uint8_t *in, void *x, size_t n)
{
    laci_get_floats(in, x, n);
}

static void add_f32(const laci_group *g, const uint8_t *in, void *y, size_t n)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if ((uintptr_t)in % sizeof(float) == 0) {
        g->kernels->vector->add((const void *)in, y, n);
        return;
    }
#endif
    float *const sums = y;
    for (size_t i = 0; i < n; i++) {
        sums[i] += laci_get_f32(in + sizeof(float) * i);
    }
}

static void unify_nan_f32(void *x, size_t n)
{
    float *const values = x;
    for (size_t i = 0; i < n; i++) {
        values[i] = isnan(values[i]) ? NAN : values[i];
    }
}

static const number f32 = {
    sizeof(float), put_f32, get_f32, add_f32, unify_nan_f32,
};

static void put_f64(uint8_t *out, const void *x, size_t n)
{
    const double *const values = x;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof(bits));
        laci_put_u64(out + sizeof(bits) * i, bits);
    }
}

static double get_one_f64(const uint8_t *in)
{
    const uint64_t bits = laci_get_u64(in);
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static void get_f64(const uint8_t *in, void *x, size_t n)
{
    double *const values = x;
    for (size_t i = 0; i < n; i++) {
        values[i] = get_one_f64(in + sizeof(double) * i);
    }
}

static void add_f64(const laci_group *g, const uint8_t *in, void *y, size_t n)
{
    (void)g;
    double *const sums = y;
    for (size_t i = 0; i < n; i++) {
        sums[i] += get_one_f64(in + sizeof(double) * i);
    }
}

static void unify_nan_f64(void *x, size_t n)
{
    double *const values = x;
    for (size_t i = 0; i < n; i++) {
        values[i] = isnan(values[i]) ? (double)NAN : values[i];
    }
}

static const number f64 = {
    sizeof(double), put_f64, get_f64, add_f64, unify_nan_f64,
};

// Frames n values as the message at `message`, and gives the room it takes.
static size_t send_values(
    laci_group *g, const number *type, uint32_t peer, uint8_t *message,
    const void *x, size_t n)
{
    const size_t len = n * type->size;
    type->put(message + LACI_FRAME_SIZE, x, n);
    laci_wire_frame(g, message, len, peer);
    laci_wire_send(g, peer, message, len);
    return laci_aligned(LACI_FRAME_SIZE + len);
}

static lac_status send_partial(
    laci_group *g, const number *type, uint32_t peer, size_t n)
{
    uint8_t *const message = g->sets[g->current].scratch;
    (void)send_values(g, type, peer, message, g->partial, n);
    return laci_wire_run(g);
}

static lac_status add_arrived(
    laci_group *g, const number *type, uint32_t i, size_t n)
{
    const uint8_t *body;
    LAC_TRY(laci_wire_expect(g, i, n * type->size, &body));
    type->add(g, body, g->partial, n);
    return LAC_OK;
}

// The swaps between `core` workers, a power of two.
static lac_status double_up(
    laci_group *g, const number *type, uint32_t core, size_t n)
{
    for (uint32_t bit = 1; bit < core; bit <<= 1) {
        laci_wire_receive(g, g->rank ^ bit);
        LAC_TRY(send_partial(g, type, g->rank ^ bit, n));
        LAC_TRY(add_arrived(g, type, 0, n));
    }
    type->unify_nan(g->partial, n);
    return LAC_OK;
}

// What a worker beyond the core does: hand over, and be told.
static lac_status sum_outside(
    laci_group *g, const number *type, uint32_t core, uint16_t last, size_t n)
{
    const uint8_t *body;
    LAC_TRY(send_partial(g, type, g->rank - core, n));
    g->moment.step = last;
    laci_wire_receive(g, g->rank - core);
    LAC_TRY(laci_wire_run(g));
    LAC_TRY(laci_wire_expect(g, 0, n * type->size, &body));
    type->get(body, g->partial, n);
    return LAC_OK;
}

static lac_status sum_inside(
    laci_group *g, const number *type, uint32_t core, uint16_t last, size_t n)
{
    const bool helps = g->rank < g->world - core;
    const uint16_t first = g->moment.step;
    if (helps) {
        laci_wire_receive(g, g->rank + core);
        LAC_TRY(laci_wire_run(g));
        LAC_TRY(add_arrived(g, type, 0, n));
    }
    g->moment.step = (uint16_t)(first + 1);
    LAC_TRY(double_up(g, type, core, n));
    g->moment.step = last;
    return helps ? send_partial(g, type, g->rank + core, n) : LAC_OK;
}

// One piece by recursive doubling.
static lac_status sum_small(
    laci_group *g, const number *type, void *x, size_t n)
{
    uint32_t core = 1;
    uint16_t last = (uint16_t)(g->moment.step + 1);
    for (; core <= g->world / 2; core *= 2) {
        last++;
    }
    if (n > 0) {
        memcpy(g->partial, x, n * type->size);
    }
    LAC_TRY(
        g->rank < core ? sum_inside(g, type, core, last, n)
                       : sum_outside(g, type, core, last, n));
    g->moment.step = (uint16_t)(last + 1);
    if (n > 0) {
        memcpy(x, g->partial, n * type->size);
    }
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

// Adds up the parts of the own share that have arrived, in the order of ranks.
static lac_status add_parts(laci_group *g, const float *x, size_t n)
{
    const size_t start = share_start(g, g->rank, n);
    const size_t own = share_start(g, g->rank + 1, n) - start;
    memset(g->partial, 0, own * sizeof(*x));
    for (uint32_t k = 0; k < g->rank; k++) {
        LAC_TRY(add_arrived(g, &f32, k, own));
    }
    g->kernels->vector->add(x + start, g->partial, own);
    for (uint32_t k = g->rank; k + 1 < g->world; k++) {
        LAC_TRY(add_arrived(g, &f32, k, own));
    }
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
            g, &f32, to, message, x + start, share_start(g, to + 1, n) - start);
    }
    receive_from_all(g);
    LAC_TRY(laci_wire_run(g));
    return add_parts(g, x, n);
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
        return sum_small(g, &f32, x, n);
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
            return laci_group_agree(
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
    if (n * sizeof(*x) > LACI_SUM_SMALL &&
        laci_transport_has_allreduce(g->transport)) {
        LAC_TRY(meet(g, n));
        const double deadline = lac_transport_now(g->transport) + g->timeout;
        return laci_group_agree(
            g, laci_transport_allreduce(g->transport, x, n, deadline));
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
        LAC_TRY(sum_small(g, &f64, n == 0 ? x : x + done, now));
        done += now;
    } while (done < n);
    return LAC_OK;
}
