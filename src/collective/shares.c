// SPDX-License-Identifier: MIT
// Sums in shares: every worker sends every other one its part of that one's
// share (scatter), adds its own share, and sends the result to all (gather).
// Each value crosses the network twice, whatever the number of workers.
// Additions have the order of recursive doubling, so that a sum does not depend
// on the values that are summed with it.
//
// The values come from a stream and their sums go to it. Nothing is kept but
// messages: parts of others are loaded into the message that carries them, the
// own part is loaded when it is added, and sums are stored when they are added
// or from the messages of the gather. Each value of the caller is
// thus read once and written once, and the rest stays in the cache.
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
// the messages of t + 1 take their place, once the sums of piece t - 3 among
// them are stored. A last exchange without messages returns those of the one
// before it: a transport that lends the sender's bytes would otherwise wait for
// the next round.
//
// The step of a message is twice its piece, and one more in a gather.
//
// Large pieces hide a long latency, small ones stay in the cache: see
// end_pace.
#include "collective/shares.h"

#include <string.h>

#include "base/alloc.h"
#include "collective/finite.h"
#include "collective/listing.h"
#include "collective/wire.h"

// Numbers that travel after the values of the first piece: the note, if there
// is one, and whether the last sum was slow.
enum { SLOW, NOTE, TAIL_MAX };

// Some values of a stream, and the tail that follows them in the first piece.
typedef struct piece {
    const laci_number_stream *stream;
    const laci_number *type; // that of the stream
    size_t at;               // of its first value in the stream
    size_t values;           // without the tail
    size_t n;                // with it
    const double *tail;
    bool early; // the own sums are stored when they are added
} piece;

// Of n numbers of a piece from `at` on, the number that are values.
static size_t piece_values(const piece *p, size_t at, size_t n)
{
    const size_t left = at < p->values ? p->values - at : 0;
    return n < left ? n : left;
}

static void load_part(const piece *p, size_t at, size_t n, void *x)
{
    const size_t values = piece_values(p, at, n);
    if (values > 0) {
        p->stream->load(p->stream->context, p->at + at, values, x);
    }
    for (size_t i = values; i < n; i++) {
        p->type->write(x, i, p->tail[at + i - p->values]);
    }
}

static void store_part(const piece *p, size_t at, size_t n, const void *sums)
{
    const size_t values = piece_values(p, at, n);
    if (values > 0) {
        p->stream->store(p->stream->context, p->at + at, values, sums);
    }
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

// The numbers of a block when so many are left.
static size_t block_count(const piece *p, size_t left)
{
    const size_t most = LACI_SUM_BLOCK_SIZE / p->type->size;
    return left < most ? left : most;
}

// Writes n numbers of a piece, from `at` on, to the body of a message.
static void load_body(
    const laci_group *g, const piece *p, size_t at, size_t n, uint8_t *body)
{
    for (size_t done = 0; done < n;) {
        const size_t now = block_count(p, n - done);
        uint8_t *const out = body + done * p->type->size;
        void *const x = laci_numbers_begin(p->type, out, g->partial);
        load_part(p, at + done, now, x);
        laci_finite_send(g, p->type, x, now);
        laci_numbers_end(p->type, out, x, now);
        done += now;
    }
}

// Scatter: writes the messages one after the other, from `message` on.
static void send_shares(laci_group *g, uint8_t *message, const piece *p)
{
    for (uint32_t distance = 1; distance < g->world; distance++) {
        const uint32_t to = (g->rank + distance) % g->world;
        const size_t count = laci_share_count(&g->rules, to, p->n);
        const size_t len = count * p->type->size;
        load_body(
            g, p, laci_share_start(&g->rules, to, p->n), count,
            message + LACI_FRAME_SIZE);
        laci_wire_frame(g, message, len, to);
        laci_wire_send(g, to, message, len);
        message += laci_aligned(LACI_FRAME_SIZE + len);
    }
}

// A block of the own share.
typedef struct block {
    const piece *piece;
    size_t at; // where it begins in the share
    size_t n;
} block;

static void load_own(const laci_group *g, const block *b, void *x)
{
    const size_t start = laci_share_start(&g->rules, g->rank, b->piece->n);
    load_part(b->piece, start + b->at, b->n, x);
}

// Copies worker k's part of the block to `y`, or adds it. It is checked first,
// which brings it to the cache.
static lac_status take_part(
    laci_group *g, uint32_t k, const block *b, void *y, bool add)
{
    const laci_number *const type = b->piece->type;
    const uint8_t *body;
    if (k == g->rank && add) {
        load_own(g, b, g->own);
        type->add(g->kernels, g->own, y, b->n);
        return LAC_OK;
    }
    if (k == g->rank) {
        load_own(g, b, y);
        return LAC_OK;
    }
    (void)laci_wire_body(g, receive_of(g, k), &body);
    body += b->at * type->size;
    LAC_TRY(laci_finite_receive(g, type, k, body, b->n));
    if (add) {
        type->add_bytes(g->kernels, body, y, b->n);
    } else {
        type->get(body, y, b->n);
    }
    return LAC_OK;
}

// Copies the part of worker k, with that of its partner outside the core.
static lac_status take_pair(laci_group *g, uint32_t k, const block *b, void *y)
{
    const uint32_t core = laci_sum_core(g->world);
    LAC_TRY(take_part(g, k, b, y, false));
    return k < g->world - core ? take_part(g, k + core, b, y, true) : LAC_OK;
}

// Adds the parts of a block in the order of doubling: neighbours first, then
// pairs of neighbours. Partial sums that wait for their other half are a stack
// in g->partial, where the last one remains.
static lac_status add_parts(laci_group *g, const block *b)
{
    const uint32_t core = laci_sum_core(g->world);
    uint8_t *top = g->partial;
    for (uint32_t k = 0; k < core; k++) {
        const bool has_extra = k < g->world - core;
        uint32_t halves = k; // bit i: a sum of 2^i parts waits
        if ((k & 1) != 0 && !has_extra) {
            LAC_TRY(take_part(g, k, b, top - LACI_SUM_BLOCK_SIZE, true));
            halves >>= 1;
        } else {
            LAC_TRY(take_pair(g, k, b, top));
            top += LACI_SUM_BLOCK_SIZE;
        }
        for (; (halves & 1) != 0; halves >>= 1) {
            top -= LACI_SUM_BLOCK_SIZE;
            b->piece->type->add(
                g->kernels, top, top - LACI_SUM_BLOCK_SIZE, b->n);
        }
    }
    return LAC_OK;
}

// Copies sums to a message and returns them.
static const void *place_sums(
    const laci_number *type, void *sums, uint8_t *out, size_t n)
{
    void *const x = laci_numbers_begin(type, out, sums);
    if (x != sums) {
        memcpy(x, sums, n * type->size);
    }
    laci_numbers_end(type, out, x, n);
    return x;
}

// Adds what a scatter brought, the first receives of the last run, to the own
// share of the piece. The sum goes to the body of the next gather, which begins
// the scratch of the current set.
static lac_status add_shares(laci_group *g, const piece *p)
{
    const size_t start = laci_share_start(&g->rules, g->rank, p->n);
    const size_t count = laci_share_count(&g->rules, g->rank, p->n);
    for (uint32_t i = 0; i + 1 < g->world; i++) {
        const uint8_t *body;
        LAC_TRY(laci_wire_expect(g, i, count * p->type->size, &body));
    }
    uint8_t *const sums = g->sets[g->current].scratch + LACI_FRAME_SIZE;
    for (size_t at = 0; at < count;) {
        const block b = {p, at, block_count(p, count - at)};
        LAC_TRY(add_parts(g, &b));
        laci_finite_end(g, p->type, p->at + start + at, g->partial, b.n);
        const void *const placed =
            place_sums(p->type, g->partial, sums + at * p->type->size, b.n);
        if (p->early) {
            store_part(p, start + at, b.n, placed);
        }
        at += b.n;
    }
    return LAC_OK;
}

// Gather: sends the sum of the own share of a piece to all.
static void send_sum(laci_group *g, const piece *p)
{
    uint8_t *const message = g->sets[g->current].scratch;
    const size_t len =
        laci_share_count(&g->rules, g->rank, p->n) * p->type->size;
    laci_wire_frame(g, message, len, LAC_RANK_ANY);
    for (uint32_t distance = 1; distance < g->world; distance++) {
        laci_wire_send(g, (g->rank + distance) % g->world, message, len);
    }
}

// The messages of a gather: that of worker k is receive number
// `first + receive_of(k)` of the last run, or this worker's own.
typedef struct gathered {
    uint32_t first;
    const uint8_t *own;
} gathered;

static const uint8_t *gathered_sums(
    const laci_group *g, const gathered *from, uint32_t k)
{
    const uint8_t *body = from->own + LACI_FRAME_SIZE;
    if (k != g->rank) {
        (void)laci_wire_body(g, from->first + receive_of(g, k), &body);
    }
    return body;
}

static lac_status check_sums(
    laci_group *g, const gathered *from, const piece *p)
{
    for (uint32_t k = 0; k < g->world; k++) {
        const uint8_t *body;
        if (k != g->rank) {
            LAC_TRY(laci_wire_expect(
                g, from->first + receive_of(g, k),
                laci_share_count(&g->rules, k, p->n) * p->type->size, &body));
        }
    }
    return LAC_OK;
}

// Copies the sums of the tail, which ends the last share.
static void take_tail(
    const laci_group *g, const gathered *from, const piece *p, double *tail_out)
{
    const uint32_t last = g->world - 1;
    const size_t count = p->n - p->values;
    const size_t before = laci_share_count(&g->rules, last, p->n) - count;
    const uint8_t *const body = gathered_sums(g, from, last);
    double room[TAIL_MAX];
    p->type->get(body + before * p->type->size, room, count);
    for (size_t i = 0; i < count; i++) {
        tail_out[i] = p->type->read(room, i);
    }
}

// Uses the share of worker k: the sums of others are checked, and stored if
// that is wanted.
static lac_status take_share(
    laci_group *g, const gathered *from, const piece *p, uint32_t k, bool store)
{
    const uint8_t *const body = gathered_sums(g, from, k);
    const size_t start = laci_share_start(&g->rules, k, p->n);
    const size_t count = laci_share_count(&g->rules, k, p->n);
    for (size_t at = 0; at < count;) {
        const size_t now = block_count(p, count - at);
        const uint8_t *const in = body + at * p->type->size;
        if (k != g->rank) {
            LAC_TRY(laci_finite_end_received(
                g, p->type, k, p->at + start + at, in, now));
        }
        if (store) {
            store_part(
                p, start + at, now,
                laci_numbers_view(p->type, in, g->partial, now));
        }
        at += now;
    }
    return LAC_OK;
}

static lac_status take_sums(
    laci_group *g, const gathered *from, const piece *p, bool store)
{
    for (uint32_t k = 0; k < g->world; k++) {
        if (k != g->rank || !p->early) {
            LAC_TRY(take_share(g, from, p, k, store));
        }
    }
    return LAC_OK;
}

// A vector as a stream.

typedef struct vector {
    uint8_t *x;
    size_t size; // of a number
} vector;

static void vector_load(void *context, size_t at, size_t n, void *x_out)
{
    const vector *const v = context;
    memcpy(x_out, v->x + at * v->size, n * v->size);
}

static void vector_store(void *context, size_t at, size_t n, const void *sums)
{
    const vector *const v = context;
    memcpy(v->x + at * v->size, sums, n * v->size);
}

static laci_number_stream stream_of(const laci_number *type, vector *v)
{
    return (laci_number_stream){type, v, vector_load, vector_store};
}

lac_status laci_sum_shares(
    laci_group *g, const laci_number *type, void *x, size_t at, size_t n)
{
    vector v = {x, type->size};
    const laci_number_stream stream = stream_of(type, &v);
    const piece p = {
        .stream = &stream,
        .type = type,
        .at = at,
        .values = n,
        .n = n,
        .early = true,
    };
    send_shares(g, g->sets[g->current].scratch, &p);
    receive_from_all(g);
    LAC_TRY(laci_wire_run(g));
    LAC_TRY(add_shares(g, &p));
    const gathered from = {.own = g->sets[g->current].scratch};
    send_sum(g, &p);
    receive_from_all(g);
    LAC_TRY(laci_wire_run(g));
    LAC_TRY(check_sums(g, &from, &p));
    return take_sums(g, &from, &p, true);
}

// Shares differ by at most one number.
void laci_list_shares(laci_listing *l, size_t size, size_t n)
{
    const size_t least = n / l->rules.world;
    const size_t largest = least + (n % l->rules.world != 0);
    const laci_bodies shares = {largest * size, least * size, n * size};
    laci_list_scatter(l, &shares);
    laci_list_gather(l, &shares);
}

// A sum and its pieces.
typedef struct pieces {
    const laci_number_stream *stream;
    size_t n;
    size_t most; // values of a piece, except the last
    size_t count;
    double tail[TAIL_MAX];
    size_t tail_count;
    double start; // when the first scatter had arrived
} pieces;

// The tail follows the values of the first piece: its sum is known before any
// is stored, and the values of all pieces stay aligned. The exchange that ends
// piece 0 brings the scatter of piece 2: from there on own sums are stored at
// once, where the own values have just been read.
static piece piece_of(const pieces *p, size_t k)
{
    const size_t left = p->n - k * p->most;
    const size_t values = left < p->most ? left : p->most;
    return (piece){
        .stream = p->stream,
        .type = p->stream->type,
        .at = k * p->most,
        .values = values,
        .n = values + (k == 0 ? p->tail_count : 0),
        .tail = p->tail,
        .early = p->tail_count == NOTE || k >= 2,
    };
}

size_t laci_sum_most(const laci_group *g, const laci_number *type)
{
    const bool small = g->pace.small && g->rules.piece > LACI_SUM_PIECE &&
                       LACI_SUM_PIECE / g->world >= LACI_SUM_SHARE;
    return (small ? LACI_SUM_PIECE : g->rules.piece) / type->size;
}

// Chooses the pieces of the next sum, the same on all workers. The messages and
// the values between load and store of workers on one machine, or on a fast
// network, fit the cache if pieces are small. Where small ones have turned out
// slow, because they do not hide the latency, large ones are kept for long.
static void end_pace(laci_group *g, const pieces *p)
{
    laci_pace *const pace = &g->pace;
    const bool slow = p->tail[SLOW] != 0;
    if (pace->small && slow) {
        pace->small = false;
        pace->wait = LACI_PACE_WAIT;
    } else if (pace->wait > 0) {
        pace->wait--;
    } else {
        pace->small = !slow;
    }
    const double seconds = lac_transport_now(g->transport) - p->start;
    // What arrived since then: all but the first piece, or half of the only
    // one.
    const size_t n = p->count == 1 ? p->n / 2 : p->n - p->most;
    const double bytes = (double)n * (double)p->stream->type->size;
    pace->slow = bytes < seconds * LACI_PACE_FAST;
}

static void set_step(laci_group *g, size_t k, bool gather)
{
    g->frame.step = (uint16_t)(2 * k + gather);
}

// Lists the messages of exchange t. A piece before the first is a large number,
// because the numbers are unsigned, and thus not below count either.
static void list_ahead(laci_group *g, const pieces *p, size_t t)
{
    if (t < p->count) {
        // The message of a gather is before those of a scatter.
        const size_t sum =
            (p->most / g->world + TAIL_MAX) * p->stream->type->size;
        uint8_t *const message =
            g->sets[g->current].scratch + laci_aligned(LACI_FRAME_SIZE + sum);
        const piece scattered = piece_of(p, t);
        set_step(g, t, false);
        send_shares(g, message, &scattered);
    }
    if (t - 2 < p->count) {
        set_step(g, t - 2, true);
        const piece added = piece_of(p, t - 2);
        send_sum(g, &added);
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

// Lists the exchange that scatters a piece of s bytes and gathers the sums of
// one of g bytes, each of numbers of `size` bytes. A piece that does not exist
// has none.
static void list_both(laci_listing *l, size_t size, uint64_t s, uint64_t g)
{
    const laci_sum_rules *const r = &l->rules;
    const uint64_t others = r->world - 1;
    const uint64_t patterns = (s > 0) + (uint64_t)(g > 0);
    const uint64_t messages = others * patterns;
    lac_exchange e = {
        .flags = LAC_EXCHANGE_AHEAD,
        .messages = (uint32_t)messages,
        .total = laci_listed_product(
            others, r->world * patterns * LACI_FRAME_SIZE + s + g),
    };
    for (uint32_t k = 0; k < r->world; k++) {
        const uint64_t part = laci_share_count(r, k, s / size) * size;
        const uint64_t sums = laci_share_count(r, k, g / size) * size;
        const uint64_t sent = s - part + others * sums;
        const uint64_t received = g - sums + others * part;
        const uint64_t port =
            messages * LACI_FRAME_SIZE + (sent > received ? sent : received);
        const uint64_t body = part > sums ? part : sums;
        e.bytes = port > e.bytes ? port : e.bytes;
        e.largest = body > e.largest ? body : e.largest;
    }
    e.largest += messages > 0 ? LACI_FRAME_SIZE : 0;
    laci_listing_add(l, e);
}

// The bytes of piece k, or 0 if there is none.
static uint64_t piece_bytes(const pieces *p, size_t size, size_t k)
{
    return k < p->count ? piece_of(p, k).n * size : 0;
}

// Pieces 1 to count - 2 are alike, and so are exchanges 3 to count - 2. The
// last one only receives.
void laci_list_ahead(laci_listing *l, size_t size, size_t n, bool note)
{
    const laci_number_stream stream = {0};
    const size_t most = l->rules.piece / size;
    const pieces p = {
        .stream = &stream,
        .n = n,
        .most = most,
        .count = (n - 1) / most + 1,
        .tail_count = note ? TAIL_MAX : NOTE,
    };
    for (size_t t = 0; t < p.count + 3;) {
        l->times = t == 3 && p.count > 4 ? p.count - 4 : 1;
        list_both(
            l, size, piece_bytes(&p, size, t), piece_bytes(&p, size, t - 2));
        t += l->times;
        l->times = 1;
    }
}

// Stores what the gather of piece k brought. The message of this worker is
// where the next ones will be written.
static lac_status end_piece(laci_group *g, pieces *p, size_t k, uint32_t first)
{
    const gathered from = {first, g->sets[g->current].scratch};
    const piece ended = piece_of(p, k);
    LAC_TRY(check_sums(g, &from, &ended));
    if (k == 0) {
        take_tail(g, &from, &ended, p->tail);
    }
    return take_sums(g, &from, &ended, p->tail[NOTE] == 0);
}

// Makes exchange t and uses what it brought.
static lac_status run_ahead(laci_group *g, pieces *p, size_t t)
{
    const bool scattered = t - 1 < p->count;
    list_ahead(g, p, t);
    LAC_TRY(laci_wire_run(g));
    if (t == 1) {
        p->start = lac_transport_now(g->transport);
    }
    if (t - 3 < p->count) {
        LAC_TRY(end_piece(g, p, t - 3, scattered ? g->world - 1 : 0));
    }
    if (scattered) {
        piece now = piece_of(p, t - 1);
        now.early = now.early && p->tail[NOTE] == 0;
        LAC_TRY(add_shares(g, &now));
    }
    return LAC_OK;
}

lac_status laci_sum_stream(
    laci_group *g, const laci_number_stream *stream, size_t n, float *note)
{
    const size_t most = laci_sum_most(g, stream->type);
    pieces p = {
        .stream = stream,
        .n = n,
        .most = most,
        .count = (n - 1) / most + 1,
        .tail =
            {[SLOW] = g->pace.slow, [NOTE] = note == NULL ? 0 : (double)*note},
        .tail_count = note == NULL ? NOTE : TAIL_MAX,
    };
    for (size_t t = 0; t < p.count + 4; t++) {
        LAC_TRY(run_ahead(g, &p, t));
    }
    end_pace(g, &p);
    if (note != NULL) {
        *note = (float)p.tail[NOTE];
    }
    return LAC_OK;
}

lac_status laci_sum_ahead(
    laci_group *g, const laci_number *type, void *x, size_t n)
{
    vector v = {x, type->size};
    const laci_number_stream stream = stream_of(type, &v);
    return laci_sum_stream(g, &stream, n, NULL);
}
