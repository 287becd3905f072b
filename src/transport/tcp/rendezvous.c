// SPDX-License-Identifier: MIT
// The rendezvous of workers that share a token instead of a peers file. Rank,
// world and the address of worker 0 are in the environment, as torchrun sets
// them. Each worker makes a key for this run, opens a socket, and sends both to
// worker 0. When all have come, worker 0 sends the list to all.
//
// The token protects the rendezvous only. Two keys are derived from it, one for
// worker 0 and one for all others, and each end must show its own. Whoever does
// not know the token gets no byte, and no message can be reflected to its
// sender.
#define _GNU_SOURCE
#include "transport/tcp/rendezvous.h"

#include <errno.h>
#include <netdb.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fail.h"
#include "transport/tcp/attempt.h"
#include "transport/tcp/listener.h"
#include "transport/tcp/session.h"

enum { PAUSE_MS = 20 };

// The rendezvous, seen by one worker.
typedef struct rendezvous {
    laci_tcp_session *s;
    laci_tcp_address place; // of worker 0
    double deadline;
    uint8_t own[LACI_TCP_KEY]; // this worker's key for the run
    laci_tcp_address address;  // where it listens
    laci_tcp_tls tls;
    laci_tcp_roster allowed; // who may be at the other end: one derived key
    laci_tcp_terms terms;
} rendezvous;

static lac_status read_number(
    const rendezvous *m, const char *name, unsigned long most, uint32_t *out)
{
    const char *const text = getenv(name);
    char *end = NULL;
    const unsigned long value = text == NULL ? 0 : strtoul(text, &end, 10);
    if (text == NULL || text[0] < '0' || text[0] > '9' || *end != '\0' ||
        value > most) {
        return m->s->services->fail(
            LAC_ERR_INVALID,
            "tcp: with a token, %s in the environment is %.40s, expected a "
            "number up to %lu, as torchrun sets it",
            name, text == NULL || text[0] == '\0' ? "missing" : text, most);
    }
    *out = (uint32_t)value;
    return LAC_OK;
}

// Reads rank, world and the place of the rendezvous from the environment.
static lac_status read_environment(rendezvous *m)
{
    laci_tcp_session *const s = m->s;
    const char *const host = getenv("MASTER_ADDR");
    uint32_t port = s->settings.port;
    LAC_TRY(read_number(m, "WORLD_SIZE", LACI_TCP_WORKERS, &s->world));
    LAC_TRY(read_number(m, "RANK", LACI_TCP_WORKERS - 1, &s->rank));
    if (s->rank >= s->world) {
        return s->services->fail(
            LAC_ERR_INVALID,
            "tcp: RANK is %u, expected one below WORLD_SIZE, "
            "which is %u",
            s->rank, s->world);
    }
    if (port == 0) {
        LAC_TRY(read_number(m, "MASTER_PORT", 65534, &port));
        port++; // torchrun's own store listens on MASTER_PORT
    }
    if (host == NULL || host[0] == '\0' || strlen(host) >= LACI_TCP_HOST) {
        return s->services->fail(
            LAC_ERR_INVALID,
            "tcp: with a token, MASTER_ADDR in the environment is %s, expected "
            "the address of worker 0",
            host == NULL || host[0] == '\0' ? "missing" : "too long");
    }
    (void)snprintf(m->place.host, sizeof(m->place.host), "%s", host);
    m->place.port = (uint16_t)port;
    return LAC_OK;
}

static lac_status derive_public(
    const rendezvous *m, const char *purpose, EVP_PKEY **key_out,
    uint8_t public_out[LACI_TCP_KEY])
{
    LAC_TRY(laci_tcp_key_derive(
        m->s->services, m->s->settings.token, purpose, key_out));
    (void)laci_tcp_key_public(*key_out, public_out);
    return LAC_OK;
}

// Prepares TLS with the key of this worker's role; the other end must have the
// other one.
static lac_status rendezvous_prepare(rendezvous *m)
{
    static const char *const purposes[] = {
        "laconic tcp 1 rendezvous: worker 0",
        "laconic tcp 1 rendezvous: others"};
    laci_tcp_session *const s = m->s;
    const int role = s->rank != 0;
    EVP_PKEY *keys[2] = {NULL, NULL};
    uint8_t publics[2][LACI_TCP_KEY] = {{0}};
    lac_status status = laci_tcp_roster_allocate(s->services, 1, &m->allowed);
    for (int i = 0; status == LAC_OK && i < 2; i++) {
        status = derive_public(m, purposes[i], &keys[i], publics[i]);
    }
    if (status == LAC_OK) {
        memcpy(m->allowed.entries[0].key, publics[!role], LACI_TCP_KEY);
        status = laci_tcp_tls_open(s->services, keys[role], &m->tls);
    }
    EVP_PKEY_free(keys[0]);
    EVP_PKEY_free(keys[1]);
    m->terms = (laci_tcp_terms){
        .services = s->services,
        .tls = &m->tls,
        .roster = &m->allowed,
        .first_len = s->rank == 0 ? LACI_TCP_REQUEST : LACI_TCP_REPLY,
    };
    return status;
}

static double seconds_left(const rendezvous *m)
{
    return m->deadline - m->s->services->now();
}

// ---- Worker 0 ----

typedef struct coordinator {
    rendezvous *m;
    int listener;
    laci_tcp_attempt pending[LACI_TCP_PENDING];
    laci_tcp_connection **arrivals; // by rank
    struct pollfd *polled;
    uint32_t missing;
    char refusal[LACI_TCP_REASON]; // the last
} coordinator;

static void write_refusal(laci_tcp_connection *c, const char *text)
{
    uint8_t bytes[LACI_TCP_REPLY];
    const laci_tcp_reply reply = {
        .text_len = (uint32_t)strnlen(text, LACI_TCP_REASON - 1)};
    laci_tcp_reply_write(&reply, bytes);
    (void)laci_tcp_write(
        c, bytes, sizeof(bytes), (const uint8_t *)text, reply.text_len);
    (void)laci_tcp_flush(c);
}

// Without an address of its own, a worker listens where its connection comes
// from.
static bool find_source_host(
    const laci_tcp_connection *c, char out[LACI_TCP_HOST])
{
    struct sockaddr_storage from;
    socklen_t len = sizeof(from);
    char text[LACI_TCP_HOST];
    if (getpeername(c->socket, (struct sockaddr *)&from, &len) != 0 ||
        getnameinfo(
            (const struct sockaddr *)&from, len, text, sizeof(text), NULL, 0,
            NI_NUMERICHOST) != 0) {
        return false;
    }
    const bool mapped =
        strncmp(text, "::ffff:", 7) == 0 && strchr(text, '.') != NULL;
    const char *const host = mapped ? text + 7 : text;
    // On the machine of worker 0: whoever reaches that one reaches this one.
    const bool loopback =
        strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
    (void)snprintf(out, LACI_TCP_HOST, "%s", loopback ? "" : host);
    return true;
}

// Whether the worker of a request may take part; the reason if not.
static bool coordinator_accepts(
    const coordinator *h, const laci_tcp_attempt *a, laci_tcp_request *request,
    char reason_out[LACI_TCP_REASON])
{
    const laci_tcp_session *const s = h->m->s;
    uint8_t binding[LACI_TCP_DIGEST];
    if (!laci_tcp_request_read(a->first, request, reason_out)) {
        return false;
    }
    if (!laci_tcp_tls_binding(a->connection->ssl, binding) ||
        CRYPTO_memcmp(binding, request->binding, sizeof(binding)) != 0) {
        (void)snprintf(
            reason_out, LACI_TCP_REASON,
            "its request belongs to another connection");
        return false;
    }
    if (request->world != s->world || request->rank == 0 ||
        request->rank >= s->world) {
        (void)snprintf(
            reason_out, LACI_TCP_REASON,
            "it is worker %u of %u, worker 0 expects workers 1 to %u of %u",
            request->rank, request->world, s->world - 1, s->world);
        return false;
    }
    laci_tcp_connection *const before = h->arrivals[request->rank];
    uint8_t byte;
    if (before != NULL &&
        (laci_tcp_read(before, &byte, 1) > 0 || !before->input_ended)) {
        (void)snprintf(
            reason_out, LACI_TCP_REASON, "worker %u has come already",
            request->rank);
        return false;
    }
    return request->address.host[0] != '\0' ||
           find_source_host(a->connection, request->address.host);
}

static void admit(
    coordinator *h, laci_tcp_attempt *a, const laci_tcp_request *request)
{
    laci_tcp_entry *const entry = &h->m->s->roster.entries[request->rank];
    laci_tcp_connection **const arrival = &h->arrivals[request->rank];
    h->missing -= *arrival == NULL;
    laci_tcp_connection_close(*arrival);
    *arrival = a->connection;
    a->connection = NULL;
    entry->address = request->address;
    memcpy(entry->key, request->key, LACI_TCP_KEY);
}

static void advance_arrival(coordinator *h, laci_tcp_attempt *a, double now)
{
    laci_tcp_request request;
    laci_tcp_attempt_advance(&h->m->terms, a, now);
    if (a->stage == LACI_TCP_SHAKEN) {
        laci_tcp_attempt_listen(a);
        laci_tcp_attempt_advance(&h->m->terms, a, now);
    }
    if (a->stage == LACI_TCP_HEARD) {
        if (coordinator_accepts(h, a, &request, h->refusal)) {
            admit(h, a, &request);
        } else {
            write_refusal(a->connection, h->refusal);
        }
    }
    if (a->stage == LACI_TCP_HEARD || a->stage == LACI_TCP_BROKEN) {
        laci_tcp_attempt_end(a);
    }
}

static void wait_for_arrivals(coordinator *h)
{
    nfds_t count = 0;
    h->polled[count++] = (struct pollfd){.fd = h->listener, .events = POLLIN};
    for (size_t i = 0; i < LACI_TCP_PENDING; i++) {
        h->polled[count++] = laci_tcp_attempt_poll(&h->pending[i]);
    }
    (void)poll(h->polled, count, PAUSE_MS);
}

static lac_status fail_absent(const coordinator *h)
{
    const laci_tcp_session *const s = h->m->s;
    uint32_t absent = 1;
    while (absent + 1 < s->world && h->arrivals[absent] != NULL) {
        absent++;
    }
    return s->services->fail(
        LAC_ERR_PEER,
        "tcp: worker %u did not come to worker 0 at port %u within %.1f "
        "seconds%s%s",
        absent, h->m->place.port, s->settings.timeout,
        h->refusal[0] == '\0' ? "" : "; last refused: ", h->refusal);
}

static lac_status receive_arrivals(coordinator *h)
{
    while (h->missing > 0) {
        const double now = h->m->s->services->now();
        if (now >= h->m->deadline) {
            return fail_absent(h);
        }
        laci_tcp_accept_all(&h->m->terms, h->listener, h->pending, now);
        for (size_t i = 0; i < LACI_TCP_PENDING && h->missing > 0; i++) {
            if (h->pending[i].stage != LACI_TCP_NONE) {
                advance_arrival(h, &h->pending[i], now);
            }
        }
        if (h->missing > 0) {
            wait_for_arrivals(h);
        }
    }
    return LAC_OK;
}

// Writes len bytes, and waits as long as the rendezvous may last.
static bool write_fully(
    const rendezvous *m, laci_tcp_connection *c, const uint8_t *bytes,
    size_t len)
{
    while (len > 0 || !laci_tcp_flush(c)) {
        const size_t sent =
            len == 0 ? 0 : laci_tcp_write(c, NULL, 0, bytes, len);
        bytes += sent;
        len -= sent;
        if (c->output_ended || seconds_left(m) <= 0) {
            return false;
        }
        if (sent == 0) {
            struct pollfd writable = {.fd = c->socket, .events = POLLOUT};
            (void)poll(&writable, 1, PAUSE_MS);
        }
    }
    return true;
}

static lac_status send_list(coordinator *h)
{
    const laci_tcp_session *const s = h->m->s;
    const size_t size =
        LACI_TCP_REPLY + (size_t)s->world * LACI_TCP_REPLY_ENTRY;
    uint8_t *const bytes = s->services->zalloc(size);
    if (bytes == NULL) {
        return s->services->fail(
            LAC_ERR_NOMEM, "tcp: no memory for a list of %u workers", s->world);
    }
    const laci_tcp_reply reply = {.count = s->world};
    laci_tcp_reply_write(&reply, bytes);
    for (uint32_t rank = 0; rank < s->world; rank++) {
        laci_tcp_reply_entry_write(
            &s->roster.entries[rank],
            bytes + LACI_TCP_REPLY + (size_t)rank * LACI_TCP_REPLY_ENTRY);
    }
    // A worker that is gone by now is missing when the workers connect.
    for (uint32_t rank = 1; rank < s->world; rank++) {
        (void)write_fully(h->m, h->arrivals[rank], bytes, size);
    }
    s->services->free(bytes);
    return LAC_OK;
}

// A closed socket may drop what the other end has not yet received: it closes
// first, after it has read the list.
static void await_close(coordinator *h)
{
    for (uint32_t rank = 1; rank < h->m->s->world; rank++) {
        laci_tcp_connection *const c = h->arrivals[rank];
        uint8_t byte;
        while (!c->input_ended && seconds_left(h->m) > 0 &&
               laci_tcp_read(c, &byte, 1) == 0 && !c->input_ended) {
            struct pollfd readable = {.fd = c->socket, .events = POLLIN};
            (void)poll(&readable, 1, PAUSE_MS);
        }
    }
}

static lac_status run_coordinator(rendezvous *m, int listener)
{
    laci_tcp_session *const s = m->s;
    coordinator *const h = s->services->zalloc(sizeof(*h));
    if (h == NULL) {
        return s->services->fail(
            LAC_ERR_NOMEM, "tcp: no memory for a rendezvous");
    }
    h->m = m;
    h->listener = listener;
    h->missing = s->world - 1;
    h->arrivals = s->services->zalloc(s->world * sizeof(*h->arrivals));
    h->polled =
        s->services->zalloc((1 + LACI_TCP_PENDING) * sizeof(*h->polled));
    lac_status status =
        h->arrivals == NULL || h->polled == NULL
            ? s->services->fail(
                  LAC_ERR_NOMEM, "tcp: no memory for a rendezvous")
            : receive_arrivals(h);
    if (status == LAC_OK) {
        status = send_list(h);
    }
    if (status == LAC_OK) {
        await_close(h);
    }
    for (size_t i = 0; i < LACI_TCP_PENDING; i++) {
        laci_tcp_attempt_end(&h->pending[i]);
    }
    for (uint32_t rank = 0; h->arrivals != NULL && rank < s->world; rank++) {
        if (status != LAC_OK && h->arrivals[rank] != NULL) {
            write_refusal(h->arrivals[rank], s->services->error());
        }
        laci_tcp_connection_close(h->arrivals[rank]);
    }
    s->services->free(h->arrivals);
    s->services->free(h->polled);
    s->services->free(h);
    return status;
}

// ---- The other workers ----

static lac_status fail_rendezvous(const rendezvous *m, const char *reason)
{
    char place[LACI_TCP_ADDRESS_TEXT];
    laci_tcp_address_write(&m->place, place, sizeof(place));
    return m->s->services->fail(
        LAC_ERR_PEER, "tcp: worker %u did not meet worker 0 at %s: %s",
        m->s->rank, place, reason);
}

// Reads len bytes, and waits as long as the rendezvous may last.
static bool read_fully(
    const rendezvous *m, laci_tcp_connection *c, uint8_t *into, size_t len)
{
    while (len > 0) {
        const size_t got = laci_tcp_read(c, into, len);
        into += got;
        len -= got;
        if (got == 0) {
            struct pollfd readable = {.fd = c->socket, .events = POLLIN};
            if (c->input_ended || seconds_left(m) <= 0) {
                return false;
            }
            (void)poll(&readable, 1, PAUSE_MS);
        }
    }
    return true;
}

static lac_status read_list(rendezvous *m, laci_tcp_attempt *a)
{
    laci_tcp_session *const s = m->s;
    laci_tcp_reply reply;
    char text[LACI_TCP_REASON] = "", shown[LACI_TCP_REASON];
    uint8_t bytes[LACI_TCP_REPLY_ENTRY];
    if (!laci_tcp_reply_read(a->first, &reply) ||
        (reply.count != 0 && reply.count != s->world)) {
        return fail_rendezvous(m, "its reply breaks the format");
    }
    if (reply.count == 0) {
        (void)read_fully(m, a->connection, (uint8_t *)text, reply.text_len);
        laci_tcp_printable(text, strlen(text), shown, sizeof(shown));
        return fail_rendezvous(m, shown);
    }
    for (uint32_t rank = 0; rank < s->world; rank++) {
        laci_tcp_entry *const entry = &s->roster.entries[rank];
        if (!read_fully(m, a->connection, bytes, sizeof(bytes)) ||
            !laci_tcp_reply_entry_read(bytes, entry)) {
            return fail_rendezvous(m, "its list of the workers ended early");
        }
        if (entry->address.host[0] == '\0') {
            (void)snprintf(
                entry->address.host, sizeof(entry->address.host), "%s",
                m->place.host);
        }
    }
    s->roster.entries[0].address = m->place;
    return LAC_OK;
}

static void send_request(const rendezvous *m, laci_tcp_connection *c)
{
    laci_tcp_request request = {
        .world = m->s->world,
        .rank = m->s->rank,
        .address = m->address,
    };
    uint8_t bytes[LACI_TCP_REQUEST];
    memcpy(request.key, m->own, LACI_TCP_KEY);
    (void)laci_tcp_tls_binding(c->ssl, request.binding);
    laci_tcp_request_write(&request, bytes);
    (void)laci_tcp_write(c, bytes, sizeof(bytes), bytes, 0);
    (void)laci_tcp_flush(c);
}

// Goes on with an attempt until worker 0 replies, which it does when all
// workers have come.
static void await_reply(rendezvous *m, laci_tcp_attempt *a)
{
    while (a->stage != LACI_TCP_HEARD && a->stage != LACI_TCP_BROKEN) {
        laci_tcp_attempt_advance(&m->terms, a, m->s->services->now());
        if (a->stage == LACI_TCP_SHAKEN) {
            send_request(m, a->connection);
            laci_tcp_attempt_listen(a);
            a->started = m->deadline;
            continue;
        }
        if (seconds_left(m) <= 0 && a->stage != LACI_TCP_HEARD &&
            a->stage != LACI_TCP_BROKEN) {
            // Too late for this attempt: the one before has the reason.
            a->reason = a->stage == LACI_TCP_LISTENING
                            ? "not all workers have come"
                            : NULL;
            a->stage = LACI_TCP_BROKEN;
            return;
        }
        struct pollfd wanted = laci_tcp_attempt_poll(a);
        if (a->stage != LACI_TCP_HEARD && a->stage != LACI_TCP_BROKEN) {
            (void)poll(&wanted, 1, PAUSE_MS);
        }
    }
}

// Dials worker 0 once at each of its addresses. Returns whether it replied, or
// cannot be met: `*status_out` then has the result.
static bool dial_coordinator(
    rendezvous *m, const char **reason_out, lac_status *status_out)
{
    laci_tcp_targets *const targets = laci_tcp_resolve(&m->place, reason_out);
    bool over = false;
    for (laci_tcp_targets *t = targets; !over && t != NULL; t = t->ai_next) {
        const int socket = laci_tcp_dial(t);
        if (socket < 0) {
            *reason_out = strerror(errno);
            continue;
        }
        laci_tcp_attempt attempt;
        laci_tcp_attempt_dial(&attempt, socket, 0, m->s->services->now());
        await_reply(m, &attempt);
        if (attempt.stage == LACI_TCP_HEARD) {
            *status_out = read_list(m, &attempt);
            over = true;
        } else if (attempt.fatal) {
            *status_out = fail_rendezvous(
                m, "it does not know the token of this worker, or all its "
                   "workers have come already");
            over = true;
        } else if (attempt.reason != NULL) {
            *reason_out = attempt.reason;
        }
        laci_tcp_attempt_end(&attempt);
    }
    if (targets != NULL) {
        freeaddrinfo(targets);
    }
    return over;
}

static lac_status run_participant(rendezvous *m)
{
    const char *reason = "it does not answer";
    lac_status status = LAC_OK;
    while (!dial_coordinator(m, &reason, &status)) {
        if (seconds_left(m) <= 0) {
            return fail_rendezvous(m, reason);
        }
        (void)poll(NULL, 0, PAUSE_MS);
    }
    return status;
}

static lac_status run_rendezvous(
    rendezvous *m, EVP_PKEY **key_out, int *listener_out)
{
    laci_tcp_session *const s = m->s;
    uint16_t port = 0;
    m->deadline = s->services->now() + s->settings.timeout;
    LAC_TRY(read_environment(m));
    LAC_TRY(laci_tcp_key_new(s->services, key_out));
    (void)laci_tcp_key_public(*key_out, m->own);
    laci_tcp_address address = {.port = s->rank == 0 ? m->place.port : 0};
    LAC_TRY(laci_tcp_listen_address(s->services, &s->settings, &address));
    address.port = s->rank == 0 ? m->place.port : address.port;
    LAC_TRY(laci_tcp_listen_on(s->services, &address, listener_out, &port));
    m->address = address;
    m->address.port = port;
    if (strcmp(address.host, "0.0.0.0") == 0 ||
        strcmp(address.host, "::") == 0) {
        m->address.host[0] = '\0'; // every address: where it comes from
    }
    LAC_TRY(laci_tcp_roster_allocate(s->services, s->world, &s->roster));
    for (uint32_t rank = 0; rank < s->world; rank++) {
        laci_tcp_entry *const entry = &s->roster.entries[rank];
        (void)snprintf(entry->name, sizeof(entry->name), "%u", rank);
    }
    memcpy(s->roster.entries[s->rank].key, m->own, LACI_TCP_KEY);
    s->roster.entries[s->rank].address = m->address;
    LAC_TRY(rendezvous_prepare(m));
    if (s->world == 1) {
        return LAC_OK;
    }
    return s->rank == 0 ? run_coordinator(m, *listener_out)
                        : run_participant(m);
}

lac_status laci_tcp_rendezvous_run(
    laci_tcp_session *s, EVP_PKEY **key_out, int *listener_out)
{
    rendezvous m = {.s = s};
    const lac_status status = run_rendezvous(&m, key_out, listener_out);
    laci_tcp_roster_release(s->services, &m.allowed);
    laci_tcp_tls_close(&m.tls);
    return status;
}
