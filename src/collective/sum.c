// SPDX-License-Identifier: MIT
// Sums over all workers, the same bits everywhere.
//
// Small sums use recursive doubling: in step k every worker swaps its partial
// sum with the worker whose rank differs in bit k. Both ends add the same two
// numbers, so they stay equal. Workers beyond the largest power of two first
// send their values to a worker below it, and receive the result at the end.
//
// Large sums are cut in shares, one for each worker (shares.c). Where the order
// of additions does not matter, the transport's own all-reduce does large sums,
// after an exchange that shows that all workers are about to sum the same.
#include <inttypes.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/fail.h"
#include "collective/finite.h"
#include "collective/listing.h"
#include "collective/number.h"
#include "collective/shares.h"
#include "collective/wire.h"
#include "transport/transport.h"

// Appends the partial sum to the next run's messages.
static void send_partial(
    laci_group *g, const laci_number *type, uint32_t peer, size_t n)
{
    uint8_t *const message = g->sets[g->current].scratch;
    const size_t len = n * type->size;
    laci_finite_send(g, type, g->sum, n);
    type->put(message + LACI_FRAME_SIZE, g->sum, n);
    laci_wire_frame(g, message, len, peer);
    laci_wire_send(g, peer, message, len);
}

// A lent message is returned in the next exchange, and its sender waits for
// that. Where some workers have one exchange more than others, they would wait
// for the next round, so messages are copied there.
static void receive_partial(laci_group *g, uint32_t peer)
{
    laci_wire_receive(g, peer);
    if (g->inbox != NULL) {
        lac_receive *const receive = &g->receives[g->receive_count - 1];
        receive->buffer = g->inbox;
        receive->cap = LACI_FRAME_SIZE + g->rules.piece;
    }
}

static lac_status add_partial(laci_group *g, const laci_number *type, size_t n)
{
    const uint8_t *body;
    LAC_TRY(laci_wire_expect(g, 0, n * type->size, &body));
    LAC_TRY(laci_finite_receive(g, type, g->receives[0].peer, body, n));
    type->add_bytes(g->kernels, body, g->sum, n);
    return LAC_OK;
}

// Recursive doubling of one worker of the core.
static lac_status sum_in_core(
    laci_group *g, const laci_number *type, uint32_t core, size_t n)
{
    const uint16_t first = g->frame.step;
    const bool has_extra = g->rank < g->world - core;
    if (has_extra) {
        receive_partial(g, g->rank + core);
        LAC_TRY(laci_wire_run(g));
        LAC_TRY(add_partial(g, type, n));
    }
    g->frame.step = (uint16_t)(first + 1);
    for (uint32_t bit = 1; bit < core; bit <<= 1) {
        receive_partial(g, g->rank ^ bit);
        send_partial(g, type, g->rank ^ bit, n);
        LAC_TRY(laci_wire_run(g));
        LAC_TRY(add_partial(g, type, n));
    }
    laci_finite_end(g, type, g->sum_at, g->sum, n);
    if (has_extra) {
        send_partial(g, type, g->rank + core, n);
        LAC_TRY(laci_wire_run(g));
    }
    return LAC_OK;
}

// A worker beyond the core sends its values and receives the result, which
// carries step `last`.
static lac_status sum_as_extra(
    laci_group *g, const laci_number *type, uint32_t partner, uint16_t last,
    size_t n)
{
    const uint8_t *body;
    send_partial(g, type, partner, n);
    LAC_TRY(laci_wire_run(g));
    g->frame.step = last;
    receive_partial(g, partner);
    LAC_TRY(laci_wire_run(g));
    LAC_TRY(laci_wire_expect(g, 0, n * type->size, &body));
    LAC_TRY(laci_finite_end_received(g, type, partner, g->sum_at, body, n));
    type->get(body, g->sum, n);
    return LAC_OK;
}

// Sums numbers [at, at + n) of x by recursive doubling, in place: x is lost
// when this fails.
static lac_status sum_doubling(
    laci_group *g, const laci_number *type, void *x, size_t at, size_t n)
{
    const uint32_t core = laci_sum_core(g->world);
    uint16_t last = (uint16_t)(g->frame.step + 1);
    for (uint32_t bit = 1; bit < core; bit <<= 1) {
        last++;
    }
    g->sum = n == 0 ? g->partial : (uint8_t *)x + at * type->size;
    g->sum_at = at;
    if (g->rank < core) {
        LAC_TRY(sum_in_core(g, type, core, n));
    } else {
        LAC_TRY(sum_as_extra(g, type, g->rank - core, last, n));
    }
    g->frame.step = (uint16_t)(last + 1);
    return LAC_OK;
}

// Lists an exchange in which workers send at most one message each.
static void list_pairs(
    laci_listing *l, uint32_t messages, uint64_t len, uint32_t times)
{
    laci_listing_add(
        l, (lac_exchange){
               .messages = 1,
               .times = times,
               .bytes = LACI_FRAME_SIZE + len,
               .largest = LACI_FRAME_SIZE + len,
               .total = messages * (LACI_FRAME_SIZE + len),
           });
}

static void list_doubling(laci_listing *l, size_t size, size_t n)
{
    const uint32_t core = laci_sum_core(l->rules.world);
    const uint32_t extras = l->rules.world - core;
    uint32_t steps = 0;
    while (core >> steps > 1) {
        steps++;
    }
    if (extras > 0) {
        list_pairs(l, extras, n * size, 1);
    }
    list_pairs(l, core, n * size, steps);
    if (extras > 0) {
        list_pairs(l, extras, n * size, 1);
    }
}

// Every worker shows the next one in the ring that it is about to sum n values,
// and compares what it is shown. If all agree with the one before them, all
// mean the same sum. Otherwise some worker fails here and does not enter the
// sum, so that nobody's sum is completed, and the abort ends those of the
// others.
static lac_status sum_check(laci_group *g, size_t n)
{
    const uint32_t to = (g->rank + 1) % g->world;
    const uint32_t from = (g->rank + g->world - 1) % g->world;
    uint8_t *const message = g->sets[g->current].scratch;
    const uint8_t *body;
    laci_put_u64(message + LACI_FRAME_SIZE, n);
    laci_wire_frame(g, message, sizeof(uint64_t), to);
    laci_wire_send(g, to, message, sizeof(uint64_t));
    laci_wire_receive(g, from);
    LAC_TRY(laci_wire_run(g));
    LAC_TRY(laci_wire_expect(g, 0, sizeof(uint64_t), &body));
    const uint64_t theirs = laci_get_u64(body);
    if (theirs == n) {
        return LAC_OK;
    }
    return laci_group_abort_on_failure(
        g, lac_fail(
               LAC_ERR_PEER,
               "worker %" PRIu32 " sums %" PRIu64 " values, worker %" PRIu32
               " %zu",
               from, theirs, g->rank, n));
}

static lac_status sum_native(laci_group *g, float *x, size_t n)
{
    LAC_TRY(sum_check(g, n));
    const double start = lac_transport_now(g->transport);
    const lac_status status =
        laci_transport_allreduce(g->transport, x, n, start + g->timeout);
    laci_wire_waited(g, start);
    LAC_TRY(laci_group_abort_on_failure(g, status));
    laci_finite_end(g, &laci_number_f32, 0, x, n);
    return LAC_OK;
}

static lac_status sum_in_pieces(
    laci_group *g, const laci_number *type, void *x, size_t n)
{
    const size_t most = g->rules.piece / type->size;
    if (laci_goes_ahead(&g->rules, type->size, n)) {
        return laci_sum_ahead(g, type, x, n);
    }
    size_t done = 0;
    do {
        const size_t now = n - done < most ? n - done : most;
        if (laci_has_shares(&g->rules, now * type->size)) {
            LAC_TRY(laci_sum_shares(g, type, x, done, now));
        } else {
            LAC_TRY(sum_doubling(g, type, x, done, now));
        }
        done += now;
    } while (done < n);
    return LAC_OK;
}

// Lists `times` pieces of n numbers.
static void list_alike(laci_listing *l, size_t size, size_t n, size_t times)
{
    l->times = times;
    if (laci_has_shares(&l->rules, n * size)) {
        laci_list_shares(l, size, n);
    } else {
        list_doubling(l, size, n);
    }
    l->times = 1;
}

static void list_in_pieces(laci_listing *l, size_t size, size_t n)
{
    const size_t most = l->rules.piece / size;
    const size_t whole = n / most;
    const size_t rest = n - whole * most;
    if (laci_goes_ahead(&l->rules, size, n)) {
        laci_list_ahead(l, size, n, false);
        return;
    }
    if (whole > 0) {
        list_alike(l, size, most, whole);
    }
    if (rest > 0 || n == 0) {
        list_alike(l, size, rest, 1);
    }
}

void laci_list_sum(laci_listing *l, size_t n)
{
    const uint32_t world = l->rules.world;
    if (world == 1) {
        return;
    }
    if (!laci_is_native(&l->rules, n)) {
        list_in_pieces(l, sizeof(float), n);
        return;
    }
    list_pairs(l, world, sizeof(uint64_t), 1);
    laci_listing_add(
        l, (lac_exchange){
               .flags = LAC_EXCHANGE_ALLREDUCE,
               .bytes = n * sizeof(float),
               .largest = n * sizeof(float),
               .total = n * sizeof(float) * world,
           });
}

void laci_list_numbers(laci_listing *l, const laci_number *type, size_t n)
{
    if (l->rules.world > 1) {
        list_in_pieces(l, type->size, n);
    }
}

static lac_status start_sum(laci_group *g, uint64_t round, uint32_t phase)
{
    g->nonfinite = SIZE_MAX;
    return laci_wire_start(g, round, phase);
}

lac_status laci_group_sum(
    laci_group *g, uint64_t round, uint32_t phase, float *x, size_t n,
    size_t notes)
{
    const size_t all = n + notes;
    if (g->world == 1) {
        return LAC_OK;
    }
    LAC_TRY(start_sum(g, round, phase));
    if (laci_is_native(&g->rules, all)) {
        LAC_TRY(sum_native(g, x, all));
    } else {
        LAC_TRY(sum_in_pieces(g, &laci_number_f32, x, all));
    }
    laci_wire_count(g, n * sizeof(*x), all * sizeof(*x));
    return LAC_OK;
}

bool laci_group_streams(const laci_group *g, const laci_number *type, size_t n)
{
    const bool native =
        type == &laci_number_f32 && laci_is_native(&g->rules, n);
    return g->world > 1 && laci_goes_ahead(&g->rules, type->size, n) && !native;
}

bool laci_list_streams(const laci_listing *l, size_t n)
{
    return l->rules.world > 1 && laci_goes_ahead(&l->rules, sizeof(float), n) &&
           !laci_is_native(&l->rules, n);
}

void laci_list_sum_stream(laci_listing *l, size_t n)
{
    laci_list_ahead(l, sizeof(float), n, true);
}

lac_status laci_group_sum_stream(
    laci_group *g, uint64_t round, uint32_t phase,
    const laci_number_stream *stream, size_t n, float *note)
{
    LAC_TRY(start_sum(g, round, phase));
    LAC_TRY(laci_sum_stream(g, stream, n, note));
    const size_t size = stream->type->size;
    laci_wire_count(g, n * size, (n + (note != NULL)) * size);
    return LAC_OK;
}

// Sums all numbers, of which the first `n` are payload.
static lac_status sum_numbers(
    laci_group *g, const laci_number *type, void *x, size_t n, size_t all)
{
    LAC_TRY(sum_in_pieces(g, type, x, all));
    laci_wire_count(g, n * type->size, all * type->size);
    return LAC_OK;
}

lac_status laci_group_sum_numbers(
    laci_group *g, uint64_t round, uint32_t phase, const laci_number *type,
    void *x, size_t n)
{
    if (g->world == 1) {
        return LAC_OK;
    }
    LAC_TRY(start_sum(g, round, phase));
    return sum_numbers(g, type, x, n, n);
}

lac_status laci_group_sum_f64(
    laci_group *g, uint64_t round, uint32_t phase, double *x, size_t n)
{
    return laci_group_sum_numbers(g, round, phase, &laci_number_f64, x, n);
}

lac_status laci_group_max(
    laci_group *g, uint64_t round, uint32_t phase, float *x, size_t n,
    size_t notes)
{
    if (g->world == 1) {
        return LAC_OK;
    }
    LAC_TRY(start_sum(g, round, phase));
    return sum_numbers(g, &laci_number_max, x, n, n + notes);
}
