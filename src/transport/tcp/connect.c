// SPDX-License-Identifier: MIT
// Connects every pair of workers: the one with the higher rank dials, again and
// again until the other is there, and both show with HELLO that they mean each
// other. Strangers are refused by TLS, before any byte of ours.
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "transport/tcp/attempt.h"
#include "transport/tcp/session.h"

#define FIRST_PAUSE 0.01
#define LAST_PAUSE  0.5

// A dial may be due before anything happens at a socket.
enum { WAIT_MS = 10 };

// The dialling of one worker.
typedef struct dial {
    laci_tcp_attempt attempt;
    laci_tcp_targets *targets; // what its address stands for
    laci_tcp_targets *next;    // the one to try next
    double retry_at;
    double pause;
} dial;

typedef struct joining {
    laci_tcp_session *s;
    laci_tcp_terms terms;
    int listener;
    dial *dials; // of the workers below this one
    laci_tcp_attempt pending[LACI_TCP_PENDING];
    struct pollfd *polled;
    char (*reasons)[LACI_TCP_REASON]; // why a worker is not there yet
    uint32_t missing;
} joining;

// Writes this worker's HELLO for the worker at the other end.
static bool send_hello(
    const laci_tcp_session *s, laci_tcp_connection *c, uint32_t receiver)
{
    uint8_t bytes[LACI_TCP_HELLO];
    laci_tcp_hello hello = s->hello;
    hello.receiver = receiver;
    if (!laci_tcp_tls_binding(c->ssl, hello.binding)) {
        return false;
    }
    laci_tcp_hello_write(&hello, bytes);
    const size_t sent = laci_tcp_write(c, bytes, sizeof(bytes), bytes, 0);
    (void)laci_tcp_flush(c);
    return sent == sizeof(bytes);
}

static bool check_hello(
    const laci_tcp_session *s, const laci_tcp_attempt *a, uint32_t sender,
    char reason_out[LACI_TCP_REASON])
{
    laci_tcp_hello expected = s->hello;
    expected.sender = sender;
    expected.receiver = s->rank;
    if (!laci_tcp_tls_binding(a->connection->ssl, expected.binding)) {
        (void)snprintf(reason_out, LACI_TCP_REASON, "TLS has no binding");
        return false;
    }
    return laci_tcp_hello_read(a->first, &expected, reason_out);
}

// The connection of an attempt becomes that of worker `peer`.
static void adopt(joining *j, laci_tcp_attempt *a, uint32_t peer)
{
    laci_tcp_peer *const p = &j->s->peers[peer];
    if (p->came) {
        laci_tcp_drop(j->s, p); // it dialled again: the old one is dead
    } else {
        j->missing--;
    }
    p->came = true;
    // Messages of the old one are those of a process that has ended. Their
    // memory goes too: somebody who dials again and again must not pile it up.
    laci_tcp_message *message;
    while ((message = laci_tcp_next(p)) != NULL) {
        j->s->services->free(message->memory);
        message->memory = NULL;
        message->cap = 0;
        laci_tcp_recycle(j->s, message);
    }
    p->connection = a->connection;
    a->connection = NULL;
    if (!j->s->settings.encryption) {
        laci_tcp_clear(p->connection);
    }
    j->reasons[peer][0] = '\0';
}

static void resolve_target(joining *j, uint32_t peer)
{
    dial *const d = &j->dials[peer];
    const char *reason = NULL;
    d->targets = laci_tcp_resolve(&j->s->roster.entries[peer].address, &reason);
    d->next = d->targets;
    if (d->targets == NULL) {
        (void)snprintf(j->reasons[peer], LACI_TCP_REASON, "%s", reason);
    }
}

static void dial_later(dial *d, double now)
{
    d->retry_at = now + d->pause;
    d->pause = fmin(2 * d->pause, LAST_PAUSE);
}

// Starts to connect to the next address of a worker that is missing.
static void start_dial(joining *j, uint32_t peer, double now)
{
    dial *const d = &j->dials[peer];
    if (d->next == NULL) { // all were tried: look the name up again
        if (d->targets != NULL) {
            freeaddrinfo(d->targets);
        }
        resolve_target(j, peer);
    }
    if (d->next == NULL) {
        dial_later(d, now);
        return;
    }
    const laci_tcp_targets *const target = d->next;
    d->next = target->ai_next;
    const int socket = laci_tcp_dial(target);
    if (socket < 0) {
        (void)snprintf(
            j->reasons[peer], LACI_TCP_REASON, "%s", strerror(errno));
        dial_later(d, now);
        return;
    }
    laci_tcp_attempt_dial(&d->attempt, socket, peer, now);
}

static lac_status fail_missing(const joining *j, uint32_t peer)
{
    const laci_tcp_session *const s = j->s;
    const laci_tcp_entry *const entry = &s->roster.entries[peer];
    char who[LACI_TCP_NAME + 16];
    char number[16];
    char address[LACI_TCP_ADDRESS_TEXT];
    laci_tcp_address_write(&entry->address, address, sizeof(address));
    (void)snprintf(number, sizeof(number), "%u", peer);
    (void)snprintf(
        who, sizeof(who), strcmp(number, entry->name) == 0 ? "%u" : "%u (%s)",
        peer, entry->name);
    return s->services->fail(
        LAC_ERR_PEER, "tcp: worker %u cannot connect with worker %s at %s: %s",
        s->rank, who, address,
        j->reasons[peer][0] == '\0' ? "it has not come" : j->reasons[peer]);
}

// Goes on with the dialling of a worker. Fails if another try is in vain.
static lac_status advance_dial(joining *j, uint32_t peer, double now)
{
    dial *const d = &j->dials[peer];
    laci_tcp_attempt *const a = &d->attempt;
    bool fatal = false;
    if (a->stage == LACI_TCP_NONE) {
        if (!j->s->peers[peer].came && now >= d->retry_at) {
            start_dial(j, peer, now);
        }
        return LAC_OK;
    }
    laci_tcp_attempt_advance(&j->terms, a, now);
    if (a->stage == LACI_TCP_SHAKEN) {
        (void)send_hello(j->s, a->connection, peer);
        laci_tcp_attempt_listen(a);
        laci_tcp_attempt_advance(&j->terms, a, now);
    }
    if (a->stage == LACI_TCP_HEARD) {
        if (check_hello(j->s, a, peer, j->reasons[peer])) {
            adopt(j, a, peer);
        } else {
            fatal = true;
        }
    } else if (a->stage == LACI_TCP_BROKEN) {
        fatal = a->fatal;
        (void)snprintf(j->reasons[peer], LACI_TCP_REASON, "%s", a->reason);
        dial_later(d, now);
    } else {
        return LAC_OK;
    }
    laci_tcp_attempt_end(a);
    return fatal && !j->s->partial ? fail_missing(j, peer) : LAC_OK;
}

// Goes on with somebody who knocked.
static void advance_accepted(joining *j, laci_tcp_attempt *a, double now)
{
    const laci_tcp_session *const s = j->s;
    laci_tcp_attempt_advance(&j->terms, a, now);
    if (a->stage == LACI_TCP_SHAKEN) {
        laci_tcp_attempt_listen(a);
        laci_tcp_attempt_advance(&j->terms, a, now);
    }
    if (a->stage == LACI_TCP_HEARD) {
        // TLS has shown who it is. The answer lets it see what differs.
        const uint32_t peer = a->connection->pin.found;
        (void)send_hello(s, a->connection, peer);
        if (peer <= s->rank) {
            (void)snprintf(
                j->reasons[peer], LACI_TCP_REASON,
                "it dialled, but the higher rank does");
        } else if (check_hello(s, a, peer, j->reasons[peer])) {
            adopt(j, a, peer);
        }
    } else if (
        a->stage == LACI_TCP_BROKEN && a->connection != NULL &&
        a->connection->pin.found != LAC_RANK_ANY) {
        (void)snprintf(
            j->reasons[a->connection->pin.found], LACI_TCP_REASON, "%s",
            a->reason);
    }
    if (a->stage == LACI_TCP_HEARD || a->stage == LACI_TCP_BROKEN) {
        laci_tcp_attempt_end(a);
    }
}

// Reads what those sent who are already there. One whose connection ends
// before it has sent anything may dial again.
static void advance_peer(joining *j, uint32_t peer)
{
    laci_tcp_session *const s = j->s;
    laci_tcp_peer *const p = &s->peers[peer];
    if (p->connection->out_start < p->connection->out_end ||
        p->first_out != NULL) {
        laci_tcp_push(s, p);
    }
    const double first_loss = s->first_loss;
    if (!p->paused) {
        laci_tcp_pull(s, p);
    }
    if (p->lost && !p->spoke) {
        p->lost = p->came = false;
        s->first_loss = first_loss;
        j->missing++;
        (void)snprintf(
            j->reasons[peer], LACI_TCP_REASON, "it closed the connection");
    }
}

static void wait_for_sockets(joining *j)
{
    const laci_tcp_session *const s = j->s;
    nfds_t count = 0;
    j->polled[count++] = (struct pollfd){.fd = j->listener, .events = POLLIN};
    for (size_t i = 0; i < LACI_TCP_PENDING; i++) {
        j->polled[count++] = laci_tcp_attempt_poll(&j->pending[i]);
    }
    for (uint32_t peer = 0; peer < s->world; peer++) {
        const laci_tcp_peer *const p = &s->peers[peer];
        const bool reads = p->connection != NULL && !p->paused;
        j->polled[count++] = (struct pollfd){
            .fd = reads ? p->connection->socket : -1, .events = POLLIN};
    }
    for (uint32_t peer = 0; peer < s->rank; peer++) {
        j->polled[count++] = laci_tcp_attempt_poll(&j->dials[peer].attempt);
    }
    (void)poll(j->polled, count, WAIT_MS);
}

// A worker that could not join ends its connections without a LEFT. One that
// joined and then failed does not keep the others from joining: they learn of
// it in their next exchange.
static lac_status check_causes(laci_tcp_session *s)
{
    bool ended = s->problem != LAC_OK || s->first_loss != 0;
    for (uint32_t peer = 0; !ended && peer < s->world; peer++) {
        const laci_tcp_peer *const p = &s->peers[peer];
        ended = p->aborted && !p->left && p->connection == NULL;
    }
    return ended ? laci_tcp_check_causes(s) : LAC_OK;
}

static lac_status advance_all(joining *j)
{
    laci_tcp_session *const s = j->s;
    const double now = s->services->now();
    laci_tcp_accept_all(&j->terms, j->listener, j->pending, now);
    for (size_t i = 0; i < LACI_TCP_PENDING; i++) {
        if (j->pending[i].stage != LACI_TCP_NONE) {
            advance_accepted(j, &j->pending[i], now);
        }
    }
    for (uint32_t peer = 0; peer < s->rank; peer++) {
        LAC_TRY(advance_dial(j, peer, now));
    }
    if (s->maybe_ahead) {
        laci_tcp_pause_those_ahead(s);
    }
    for (uint32_t peer = 0; peer < s->world; peer++) {
        if (s->peers[peer].connection != NULL) {
            advance_peer(j, peer);
        }
    }
    return s->partial ? LAC_OK : check_causes(s);
}

static lac_status fail_first_missing(const joining *j)
{
    for (uint32_t peer = 0; peer < j->s->world; peer++) {
        if (peer != j->s->rank && !j->s->peers[peer].came) {
            return fail_missing(j, peer);
        }
    }
    return LAC_OK;
}

static lac_status join_all(joining *j, double deadline)
{
    while (j->missing > 0) {
        LAC_TRY(advance_all(j));
        if (j->missing == 0) {
            break;
        }
        if (j->s->services->now() >= deadline) {
            return j->s->partial ? LAC_OK : fail_first_missing(j);
        }
        wait_for_sockets(j);
    }
    return LAC_OK;
}

static lac_status joining_allocate(joining *j)
{
    const laci_tcp_session *const s = j->s;
    j->dials = s->services->zalloc((s->rank + 1) * sizeof(*j->dials));
    j->polled = s->services->zalloc(
        (1 + LACI_TCP_PENDING + 2 * (size_t)s->world) * sizeof(*j->polled));
    if (j->dials == NULL || j->polled == NULL) {
        return s->services->fail(
            LAC_ERR_NOMEM, "tcp: no memory to connect %u workers", s->world);
    }
    for (uint32_t peer = 0; peer < s->rank; peer++) {
        j->dials[peer].attempt.socket = -1;
        j->dials[peer].pause = FIRST_PAUSE;
    }
    return LAC_OK;
}

static void joining_release(joining *j)
{
    const laci_tcp_session *const s = j->s;
    for (size_t i = 0; i < LACI_TCP_PENDING; i++) {
        laci_tcp_attempt_end(&j->pending[i]);
    }
    for (uint32_t peer = 0; j->dials != NULL && peer < s->rank; peer++) {
        laci_tcp_attempt_end(&j->dials[peer].attempt);
        if (j->dials[peer].targets != NULL) {
            freeaddrinfo(j->dials[peer].targets);
        }
    }
    s->services->free(j->dials);
    s->services->free(j->polled);
    s->services->free(j);
}

lac_status laci_tcp_connect_all(
    laci_tcp_session *s, int listener, double deadline,
    char (*reasons)[LACI_TCP_REASON])
{
    joining *const j = s->services->zalloc(sizeof(*j));
    if (j == NULL) {
        return s->services->fail(
            LAC_ERR_NOMEM, "tcp: no memory to connect %u workers", s->world);
    }
    j->s = s;
    j->listener = listener;
    j->reasons = reasons;
    j->missing = s->world - 1;
    j->terms = (laci_tcp_terms){
        .services = s->services,
        .tls = &s->tls,
        .roster = &s->roster,
        .first_len = LACI_TCP_HELLO,
    };
    lac_status status = joining_allocate(j);
    if (status == LAC_OK) {
        status = join_all(j, deadline);
    }
    joining_release(j);
    return status;
}
