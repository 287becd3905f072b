// SPDX-License-Identifier: MIT
// Messages: queued and sent, read and matched with the receives of an exchange.
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/fail.h"
#include "transport/tcp/session.h"

// A peer that sends or takes without end must not keep this worker from its
// other connections: after so many bytes they have their turn.
enum { TURN_BYTES = 1 << 20 };

// Messages that no receive has asked for: what a peer can send before the one
// that this worker waits for.
enum { MOST_MESSAGES = 1 << 20 };
#define MOST_BYTES ((uint64_t)1 << 30)

static void head_write(const laci_tcp_head *head, uint8_t out[LACI_TCP_HEAD])
{
    laci_put_u32(out, (uint32_t)head->kind);
    laci_put_u32(out + 4, head->tag);
    laci_put_u64(out + 8, head->len);
}

bool laci_tcp_head_read(
    const uint8_t bytes[LACI_TCP_HEAD], laci_tcp_head *out,
    char reason_out[LACI_TCP_REASON])
{
    const uint32_t kind = laci_get_u32(bytes);
    const uint64_t len = laci_get_u64(bytes + 8);
    const uint64_t most = kind == LACI_TCP_DATA
                              ? LACI_TCP_MESSAGE_MAX
                              : LACI_TCP_NOTE + LACI_TCP_WHY - 1;
    if (kind >= LACI_TCP_KINDS) {
        (void)snprintf(
            reason_out, LACI_TCP_REASON,
            "a message of kind %u, expected one below %d", kind,
            LACI_TCP_KINDS);
        return false;
    }
    if (len > most) {
        (void)snprintf(
            reason_out, LACI_TCP_REASON,
            "a message of %llu bytes, expected at most %llu",
            (unsigned long long)len, (unsigned long long)most);
        return false;
    }
    *out = (laci_tcp_head){
        .kind = (laci_tcp_kind)kind,
        .tag = laci_get_u32(bytes + 4),
        .len = len,
    };
    return true;
}

// Returns a free message with room for `len` bytes: the smallest that fits, or
// else the largest, which grows. Messages of the same sizes in every round
// therefore end up with memory of their own.
static laci_tcp_message **find_free(laci_tcp_session *s, uint64_t len)
{
    laci_tcp_message **best = &s->free;
    for (laci_tcp_message **m = &s->free; *m != NULL && (*best)->cap != len;
         m = &(*m)->next) {
        const bool fits = (*m)->cap >= len, best_fits = (*best)->cap >= len;
        if (fits ? !best_fits || (*m)->cap < (*best)->cap
                 : !best_fits && (*m)->cap > (*best)->cap) {
            best = m;
        }
    }
    return best;
}

static bool message_grow(
    const laci_tcp_session *s, laci_tcp_message *message, uint64_t len)
{
    if (message->cap >= len) {
        return true;
    }
    s->services->free(message->memory);
    message->memory = s->services->zalloc((size_t)len);
    message->cap = message->memory == NULL ? 0 : (size_t)len;
    return message->memory != NULL;
}

// Returns a message for what `head` announces, with memory unless it goes to
// the caller's buffer; NULL without memory.
static laci_tcp_message *message_take(
    laci_tcp_session *s, const laci_tcp_head *head, bool direct)
{
    laci_tcp_message **const place = find_free(s, direct ? 0 : head->len);
    laci_tcp_message *message = *place;
    if (message != NULL) {
        *place = message->next;
    } else {
        message = s->services->zalloc(sizeof(*message));
        if (message == NULL) {
            return NULL;
        }
        message->allocated = s->allocated;
        s->allocated = message;
    }
    message->next = NULL;
    message->head = *head;
    message->got = 0;
    message->claimed = false;
    if (!direct && !message_grow(s, message, head->len)) {
        laci_tcp_recycle(s, message);
        return NULL;
    }
    message->payload = direct ? NULL : message->memory;
    return message;
}

void laci_tcp_recycle(laci_tcp_session *s, laci_tcp_message *message)
{
    message->next = s->free;
    s->free = message;
}

static void count_dequeued(laci_tcp_peer *p, const laci_tcp_message *message)
{
    p->queued--;
    p->queued_bytes -= message->head.len;
}

static bool arrives_early(const laci_tcp_peer *p)
{
    return p->arriving != NULL && !p->arriving->claimed;
}

uint64_t laci_tcp_early(const laci_tcp_peer *p)
{
    const laci_tcp_message *const m = p->arriving;
    return p->queued_bytes + (m != NULL && !m->claimed ? m->got : 0);
}

laci_tcp_message *laci_tcp_next(laci_tcp_peer *p)
{
    laci_tcp_message *const message = p->first;
    if (message != NULL) {
        p->first = message->next;
        p->last = p->first == NULL ? NULL : p->last;
        count_dequeued(p, message);
    }
    return message;
}

static void tcp_enqueue(laci_tcp_peer *p, laci_tcp_message *message)
{
    message->next = NULL;
    if (p->first == NULL) {
        p->first = message;
    } else {
        p->last->next = message;
    }
    p->last = message;
    p->queued++;
    p->queued_bytes += message->head.len;
}

// Gives receive i the message, which has arrived or is arriving.
static void claim_message(
    laci_tcp_session *s, laci_tcp_message *message, size_t i)
{
    s->claims[i] = message;
    message->claimed = true;
    s->missing -= message->got == message->head.len;
}

// Whether receive i takes `len` bytes; a problem if it does not.
static bool receive_fits(laci_tcp_session *s, size_t i, uint64_t len)
{
    const lac_receive *const receive = &s->receives[i];
    if (laci_receive_fits(receive, len)) {
        return true;
    }
    laci_tcp_problem(
        s, LAC_ERR_SPACE,
        "tcp: a message of worker %u has %llu bytes, the buffer of worker %u "
        "holds %zu",
        receive->peer, (unsigned long long)len, s->rank, receive->cap);
    return false;
}

void laci_tcp_claim(laci_tcp_session *s, size_t i)
{
    const lac_receive *const receive = &s->receives[i];
    laci_tcp_peer *const p = &s->peers[receive->peer];
    laci_tcp_message *before = NULL, *message = p->first;
    while (message != NULL && message->head.tag != receive->tag) {
        before = message;
        message = message->next;
    }
    if (message == NULL) {
        message = p->arriving;
        if (message != NULL && message->head.kind == LACI_TCP_DATA &&
            message->head.tag == receive->tag && !message->claimed &&
            receive_fits(s, i, message->head.len)) {
            claim_message(s, message, i);
        }
        return;
    }
    if (!receive_fits(s, i, message->head.len)) {
        return;
    }
    if (before == NULL) {
        p->first = message->next;
    } else {
        before->next = message->next;
    }
    p->last = p->last == message ? before : p->last;
    count_dequeued(p, message);
    claim_message(s, message, i);
}

// Returns the first receive that waits for a message of `peer` and `tag`, or
// the number of receives.
static size_t tcp_find_receive(
    const laci_tcp_session *s, uint32_t peer, uint32_t tag)
{
    size_t i = 0;
    while (i < s->receive_count &&
           (s->claims[i] != NULL || s->receives[i].peer != peer ||
            s->receives[i].tag != tag)) {
        i++;
    }
    return i;
}

// Prepares for the message that the head of `p` announces.
static void begin_message(laci_tcp_session *s, laci_tcp_peer *p)
{
    const uint32_t rank = (uint32_t)(p - s->peers);
    char reason[LACI_TCP_REASON];
    laci_tcp_head head;
    p->head_got = 0;
    p->spoke = true;
    // What follows a message that cannot be taken has no meaning.
    p->unusable = true;
    if (!laci_tcp_head_read(p->head, &head, reason)) {
        laci_tcp_problem(
            s, LAC_ERR_CORRUPT, "tcp: worker %u sent %s", rank, reason);
        return;
    }
    const size_t i = head.kind == LACI_TCP_DATA
                         ? tcp_find_receive(s, rank, head.tag)
                         : s->receive_count;
    const bool expected = i < s->receive_count;
    if (expected && !receive_fits(s, i, head.len)) {
        return;
    }
    const bool direct = expected && s->receives[i].buffer != NULL;
    laci_tcp_message *const message = message_take(s, &head, direct);
    if (message == NULL) {
        laci_tcp_problem(
            s, LAC_ERR_NOMEM,
            "tcp: no memory for a message of %llu bytes from worker %u",
            (unsigned long long)head.len, rank);
        return;
    }
    if (direct) {
        message->payload = s->receives[i].buffer;
    }
    p->unusable = false;
    p->arriving = message;
    if (expected) {
        // An empty message is complete already: end_message counts it.
        s->claims[i] = message;
        message->claimed = true;
    }
}

// A worker sends what the others receive. One that sends without end would fill
// their memory: nothing is read from it for a while, or if this worker waits
// for it, a problem.
static void check_early(laci_tcp_session *s, laci_tcp_peer *p)
{
    const uint64_t early = laci_tcp_early(p);
    s->maybe_ahead = s->maybe_ahead || early > LACI_TCP_AHEAD_BYTES;
    if (p->queued > MOST_MESSAGES || early > MOST_BYTES) {
        p->unusable = true;
        laci_tcp_problem(
            s, LAC_ERR_PEER,
            "worker %u sent %llu messages with %llu bytes that worker %u does "
            "not receive",
            (uint32_t)(p - s->peers),
            (unsigned long long)(p->queued + arrives_early(p)),
            (unsigned long long)early, s->rank);
    }
}

static void end_message(laci_tcp_session *s, laci_tcp_peer *p)
{
    laci_tcp_message *const message = p->arriving;
    p->arriving = NULL;
    if (message->head.kind == LACI_TCP_DATA) {
        if (message->claimed) {
            s->missing--;
        } else {
            tcp_enqueue(p, message);
            check_early(s, p);
        }
        return;
    }
    if (message->head.kind == LACI_TCP_ABORTED) {
        laci_tcp_on_abort(s, p, message);
    } else {
        laci_tcp_on_leave(s, p, message);
    }
    laci_tcp_recycle(s, message);
}

// Reads more of the head or of the message. Returns the number of bytes.
static size_t pull_once(laci_tcp_session *s, laci_tcp_peer *p)
{
    size_t got;
    if (p->arriving == NULL) {
        got = laci_tcp_read(
            p->connection, p->head + p->head_got, LACI_TCP_HEAD - p->head_got);
        p->head_got += got;
        if (p->head_got == LACI_TCP_HEAD) {
            begin_message(s, p);
        }
    } else {
        laci_tcp_message *const message = p->arriving;
        got = laci_tcp_read(
            p->connection, message->payload + message->got,
            (size_t)(message->head.len - message->got));
        message->got += got;
        if (!message->claimed) {
            check_early(s, p);
        }
    }
    if (p->arriving != NULL && p->arriving->got == p->arriving->head.len) {
        end_message(s, p);
    }
    return got;
}

void laci_tcp_pull(laci_tcp_session *s, laci_tcp_peer *p)
{
    size_t total = 0;
    while (!p->unusable) {
        const size_t got = pull_once(s, p);
        total += got;
        // epoll does not report what is buffered: that is read in any case.
        p->connection->hold = total >= TURN_BYTES;
        if (got == 0) {
            break;
        }
    }
    p->connection->hold = false;
    s->moved += total > 0;
    if (p->connection->input_ended || (p->unusable && total == 0)) {
        laci_tcp_on_end(s, p);
    } else if (p->unusable) {
        laci_tcp_rewatch(s, p);
    }
}

static laci_tcp_outgoing *outgoing_take(laci_tcp_session *s)
{
    laci_tcp_outgoing *out = s->free_out;
    if (out != NULL) {
        s->free_out = out->next;
        return out;
    }
    out = s->services->zalloc(sizeof(*out));
    if (out != NULL) {
        out->allocated = s->allocated_out;
        s->allocated_out = out;
    }
    return out;
}

// The first message of a peer's queue has been sent, or never will be.
static void outgoing_done(laci_tcp_session *s, laci_tcp_peer *p)
{
    laci_tcp_outgoing *const out = p->first_out;
    p->first_out = out->next;
    s->pending[out->parity] -= out->borrowed;
    out->next = s->free_out;
    s->free_out = out;
    s->moved++;
}

lac_status laci_tcp_post(
    laci_tcp_session *s, uint32_t peer, const laci_tcp_head *head,
    const void *data)
{
    laci_tcp_peer *const p = &s->peers[peer];
    if (p->connection == NULL) {
        return LAC_OK; // whoever waits for the peer learns why
    }
    laci_tcp_outgoing *const out = outgoing_take(s);
    if (out == NULL) {
        return s->services->fail(
            LAC_ERR_NOMEM, "tcp: no memory to send a message");
    }
    out->next = NULL;
    out->data = data;
    out->len = (size_t)head->len;
    out->sent = 0;
    out->parity = s->parity;
    out->borrowed = head->kind == LACI_TCP_DATA;
    s->pending[s->parity] += out->borrowed;
    if (!out->borrowed && head->len > 0) {
        memcpy(out->note, data, (size_t)head->len);
        out->data = out->note;
    }
    head_write(head, out->head);
    if (p->first_out == NULL) {
        p->first_out = out;
    } else {
        p->last_out->next = out;
    }
    p->last_out = out;
    laci_tcp_push(s, p);
    return LAC_OK;
}

void laci_tcp_discard_unsent(laci_tcp_session *s, laci_tcp_peer *p)
{
    laci_tcp_outgoing *kept = p->first_out;
    if (kept == NULL || kept->sent == 0) {
        kept = NULL;
    }
    while (p->first_out != kept) {
        outgoing_done(s, p);
    }
    if (kept == NULL) {
        return;
    }
    // The first message is on its way; those behind it are not.
    p->first_out = kept->next;
    while (p->first_out != NULL) {
        outgoing_done(s, p);
    }
    kept->next = NULL;
    p->first_out = p->last_out = kept;
}

// Sends a part of the first message, and returns its bytes.
static size_t push_once(laci_tcp_session *s, laci_tcp_peer *p)
{
    laci_tcp_outgoing *const out = p->first_out;
    const size_t head_left =
        out->sent < LACI_TCP_HEAD ? LACI_TCP_HEAD - out->sent : 0;
    const size_t data_sent = out->sent + head_left - LACI_TCP_HEAD;
    const uint8_t *const data = out->len == 0 ? out->head : out->data;
    const size_t sent = laci_tcp_write(
        p->connection, out->head + LACI_TCP_HEAD - head_left, head_left,
        data + data_sent, out->len - data_sent);
    out->sent += sent;
    s->moved += sent > 0;
    if (out->sent == LACI_TCP_HEAD + out->len) {
        outgoing_done(s, p);
    }
    return sent;
}

void laci_tcp_push(laci_tcp_session *s, laci_tcp_peer *p)
{
    laci_tcp_connection *const c = p->connection;
    size_t total = 0, sent = 1;
    while (p->first_out != NULL && sent > 0 && total < TURN_BYTES) {
        sent = push_once(s, p);
        total += sent;
    }
    (void)laci_tcp_flush(c);
    if (c->output_ended) {
        while (p->first_out != NULL) {
            outgoing_done(s, p);
        }
    }
    laci_tcp_rewatch(s, p);
}

void laci_tcp_drop(laci_tcp_session *s, laci_tcp_peer *p)
{
    laci_tcp_connection_close(p->connection); // epoll drops a closed socket
    p->connection = NULL;
    p->watched = p->paused = p->unusable = false;
    p->head_got = 0;
    if (p->arriving != NULL && !p->arriving->claimed) {
        laci_tcp_recycle(s, p->arriving);
    }
    p->arriving = NULL;
    while (p->first_out != NULL) {
        outgoing_done(s, p);
    }
}
