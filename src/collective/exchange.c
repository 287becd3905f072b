// SPDX-License-Identifier: MIT
// Messages with neighbours, with all workers, and from one worker to all.
//
// A message to several peers is one buffer, framed and hashed once, which each
// of them may read in place. A broadcast uses a binomial tree: counted from the
// root, worker v receives from v without its highest bit and sends to those
// that have one higher bit more.
#include <assert.h>
#include <string.h>

#include "base/fail.h"
#include "collective/listing.h"
#include "collective/wire.h"

static laci_reader read_body(const uint8_t *body, size_t len, uint32_t peer)
{
    return (laci_reader){.next = body, .end = body + len, .peer = peer};
}

// Returns a reader of receive number i of the last run.
static laci_reader read_arrived(const laci_group *g, uint32_t i)
{
    const uint8_t *body;
    const size_t len = laci_wire_body(g, i, &body);
    return read_body(body, len, g->receives[i].peer);
}

lac_status laci_group_exchange(
    laci_group *g, uint64_t round, uint32_t phase, const lac_edge *peers,
    uint32_t count, bool same, laci_reader *readers_out)
{
    if (count == 0) {
        return LAC_OK;
    }
    const laci_writer *const writers = g->sets[g->current].writers;
    assert(same || count <= g->slots);
    LAC_TRY(laci_wire_start(g, round, phase));
    if (same) {
        laci_wire_frame(g, writers->message, writers->len, LAC_RANK_ANY);
    }
    for (uint32_t i = 0; i < count; i++) {
        const laci_writer *const w = &writers[same ? 0 : i];
        if (!same) {
            laci_wire_frame(g, w->message, w->len, peers[i].peer);
        }
        laci_wire_send(g, peers[i].peer, w->message, w->len);
        laci_wire_receive(g, peers[i].peer);
    }
    laci_counts counts = g->counts;
    for (uint32_t i = 0; i < count; i++) {
        const laci_writer *const w = &writers[same ? 0 : i];
        counts.payload += w->payload;
        counts.wire += LACI_FRAME_SIZE + w->len;
        counts.messages++;
    }
    LAC_TRY(laci_wire_run(g));
    g->counts = counts;
    for (uint32_t i = 0; i < count; i++) {
        readers_out[i] = read_arrived(g, i);
    }
    return LAC_OK;
}

// The messages of one worker in an exchange.
typedef struct traffic {
    uint32_t messages;
    uint64_t sent;
    uint64_t received;
} traffic;

// Adds the messages between a worker and its neighbours.
static traffic list_worker(
    const lac_topology *topology, uint32_t worker, uint32_t round,
    laci_body *body, const void *context, uint64_t *largest)
{
    const lac_edge *edges;
    const uint32_t count = lac_topology_edges(topology, worker, round, &edges);
    traffic t = {.messages = count};
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t peer = edges[k].peer;
        const uint64_t sent = LACI_FRAME_SIZE + body(context, worker, peer);
        t.sent += sent;
        t.received += LACI_FRAME_SIZE + body(context, peer, worker);
        *largest = sent > *largest ? sent : *largest;
    }
    return t;
}

void laci_list_exchange(
    laci_listing *l, const lac_topology *topology, laci_body *body,
    const void *context)
{
    lac_exchange e = {0};
    for (uint32_t k = 0; k < l->rules.world; k++) {
        const traffic t =
            list_worker(topology, k, l->round, body, context, &e.largest);
        const uint64_t port = t.sent > t.received ? t.sent : t.received;
        e.messages = t.messages > e.messages ? t.messages : e.messages;
        e.bytes = port > e.bytes ? port : e.bytes;
        e.total = t.sent > UINT64_MAX - e.total ? UINT64_MAX : e.total + t.sent;
    }
    if (e.messages > 0) {
        laci_listing_add(l, e);
    }
}

lac_status laci_group_gather(
    laci_group *g, uint64_t round, uint32_t phase, laci_reader *readers_out)
{
    // The own message stays readable: its set is not written before the next
    // exchange.
    const laci_writer own = g->sets[g->current].writers[0];
    const laci_reader own_reader =
        read_body(own.message + LACI_FRAME_SIZE, own.len, g->rank);
    if (g->world == 1) {
        laci_wire_flip(g);
        readers_out[0] = own_reader;
        return LAC_OK;
    }
    LAC_TRY(laci_wire_start(g, round, phase));
    laci_wire_frame(g, own.message, own.len, LAC_RANK_ANY);
    for (uint32_t distance = 1; distance < g->world; distance++) {
        // Every worker begins with another peer, so that none is flooded.
        const uint32_t to = (g->rank + distance) % g->world;
        laci_wire_send(g, to, own.message, own.len);
    }
    for (uint32_t peer = 0; peer < g->world; peer++) {
        if (peer != g->rank) {
            laci_wire_receive(g, peer);
        }
    }
    LAC_TRY(laci_wire_run(g));
    laci_wire_count(g, own.payload, own.len);
    for (uint32_t peer = 0; peer < g->world; peer++) {
        readers_out[peer] = peer == g->rank
                                ? own_reader
                                : read_arrived(g, peer - (peer > g->rank));
    }
    return LAC_OK;
}

// Of worker k's body b, the worker sends world - 1 copies and receives the rest
// of the total; in a scatter it is the other way round.
void laci_list_gather(laci_listing *l, const laci_bodies *bodies)
{
    const uint64_t others = l->rules.world - 1;
    const uint64_t one = LACI_FRAME_SIZE + bodies->largest;
    const uint64_t rest =
        others * LACI_FRAME_SIZE + bodies->total - bodies->least;
    if (others > 0) {
        laci_listing_add(
            l, (lac_exchange){
                   .messages = (uint32_t)others,
                   .bytes = others * one > rest ? others * one : rest,
                   .largest = one,
                   .total = laci_listed_product(
                       others, (uint64_t)l->rules.world * LACI_FRAME_SIZE +
                                   bodies->total),
               });
    }
}

void laci_list_scatter(laci_listing *l, const laci_bodies *bodies)
{
    laci_list_gather(l, bodies);
}

lac_status laci_group_scatter(
    laci_group *g, uint64_t round, uint32_t phase, laci_reader *readers_out)
{
    const laci_writer *const writers = g->sets[g->current].writers;
    const laci_writer own = writers[g->rank];
    size_t payload = 0, body = 0;
    assert(g->world <= g->slots);
    LAC_TRY(laci_wire_start(g, round, phase));
    for (uint32_t peer = 0; peer < g->world; peer++) {
        payload += writers[peer].payload;
        body += writers[peer].len;
        if (peer != g->rank) {
            laci_wire_receive(g, peer);
        }
    }
    for (uint32_t distance = 1; distance < g->world; distance++) {
        const uint32_t to = (g->rank + distance) % g->world;
        laci_wire_frame(g, writers[to].message, writers[to].len, to);
        laci_wire_send(g, to, writers[to].message, writers[to].len);
    }
    if (g->world > 1) {
        LAC_TRY(laci_wire_run(g));
        laci_wire_count(g, payload, body);
    } else {
        laci_wire_flip(g);
    }
    for (uint32_t peer = 0; peer < g->world; peer++) {
        readers_out[peer] =
            peer == g->rank
                ? read_body(own.message + LACI_FRAME_SIZE, own.len, peer)
                : read_arrived(g, peer - (peer > g->rank));
    }
    return LAC_OK;
}

// The highest bit of v, or 0.
static uint32_t highest_bit(uint32_t v)
{
    uint32_t bit = 0;
    for (; v > 0; v >>= 1) {
        bit = bit == 0 ? 1 : bit << 1;
    }
    return bit;
}

static uint32_t after_root(const laci_group *g, uint32_t root, uint32_t v)
{
    return (uint32_t)(((uint64_t)root + v) % g->world);
}

// The step of a message is its piece: the two ends of an edge of the tree reach
// it after different numbers of exchanges.
static lac_status receive_piece(
    laci_group *g, uint32_t parent, uint16_t piece, uint8_t *bytes, size_t len)
{
    const uint8_t *body;
    g->frame.step = piece;
    laci_wire_receive(g, parent);
    LAC_TRY(laci_wire_run(g));
    LAC_TRY(laci_wire_expect(g, 0, len, &body));
    if (len > 0) {
        memcpy(bytes, body, len);
    }
    return LAC_OK;
}

static lac_status broadcast_piece(
    laci_group *g, uint32_t root, uint16_t piece, uint8_t *bytes, size_t len)
{
    const uint32_t v = after_root(g, g->world - root, g->rank);
    const uint32_t bit = highest_bit(v);
    if (v > 0) {
        LAC_TRY(
            receive_piece(g, after_root(g, root, v - bit), piece, bytes, len));
    }
    const uint64_t first = v == 0 ? 1 : (uint64_t)bit << 1;
    if (v + first >= g->world) {
        return LAC_OK;
    }
    uint8_t *const message = g->sets[g->current].scratch;
    if (len > 0) {
        memcpy(message + LACI_FRAME_SIZE, bytes, len);
    }
    g->frame.step = piece;
    laci_wire_frame(g, message, len, LAC_RANK_ANY);
    for (uint64_t next = first; v + next < g->world; next <<= 1) {
        const uint32_t child = after_root(g, root, v + (uint32_t)next);
        laci_wire_send(g, child, message, len);
    }
    return laci_wire_run(g);
}

lac_status laci_group_broadcast(
    laci_group *g, uint64_t round, uint32_t phase, uint32_t root, void *bytes,
    size_t len)
{
    assert(root < g->world);
    if (g->world == 1) {
        return LAC_OK;
    }
    LAC_TRY(laci_wire_start(g, round, phase));
    uint8_t *next = bytes;
    size_t left = len;
    for (uint16_t piece = 0; piece == 0 || left > 0; piece++) {
        const size_t now = left < g->rules.piece ? left : g->rules.piece;
        LAC_TRY(broadcast_piece(g, root, piece, next, now));
        left -= now;
        next = left > 0 ? next + now : NULL;
    }
    if (g->rank == root) {
        laci_wire_count(g, 0, len);
    }
    return LAC_OK;
}
