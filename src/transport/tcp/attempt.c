// SPDX-License-Identifier: MIT
// The stages of a new connection.
#define _GNU_SOURCE
#include "transport/tcp/attempt.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fail.h"

static void attempt_break(laci_tcp_attempt *a, const char *reason, bool fatal)
{
    a->stage = LACI_TCP_BROKEN;
    a->reason = reason;
    a->fatal = fatal;
}

static void open_connection(
    const laci_tcp_terms *terms, laci_tcp_attempt *a, int socket, bool server)
{
    const laci_tcp_pin pin = {.roster = terms->roster, .expected = a->expected};
    a->stage = LACI_TCP_SHAKING;
    if (laci_tcp_connection_open(
            &a->connection, terms->services, terms->tls, socket, server, pin) !=
        LAC_OK) {
        attempt_break(a, "no memory for a connection", false);
    }
}

void laci_tcp_attempt_dial(
    laci_tcp_attempt *a, int socket, uint32_t expected, double now)
{
    *a = (laci_tcp_attempt){
        .stage = LACI_TCP_CONNECTING,
        .started = now,
        .expected = expected,
        .socket = socket,
    };
}

void laci_tcp_attempt_accept(
    const laci_tcp_terms *terms, laci_tcp_attempt *a, int socket, double now)
{
    *a = (laci_tcp_attempt){
        .started = now,
        .expected = LAC_RANK_ANY,
        .socket = -1,
    };
    open_connection(terms, a, socket, true);
}

static void finish_connect(const laci_tcp_terms *terms, laci_tcp_attempt *a)
{
    int error = 0;
    socklen_t len = sizeof(error);
    struct pollfd ready = {.fd = a->socket, .events = POLLOUT};
    if (poll(&ready, 1, 0) == 0) {
        return;
    }
    if (getsockopt(a->socket, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        error = errno;
    }
    if (error != 0) {
        attempt_break(a, strerror(error), false);
        return;
    }
    const int socket = a->socket;
    a->socket = -1;
    open_connection(terms, a, socket, false);
}

static void shake(laci_tcp_attempt *a)
{
    const laci_tcp_step step =
        laci_tcp_handshake(a->connection, &a->reason, &a->fatal);
    if (step == LACI_TCP_DONE) {
        a->stage = LACI_TCP_SHAKEN;
    } else if (step == LACI_TCP_FAILED) {
        attempt_break(a, a->reason, a->fatal);
    }
}

// A worker that was refused learns it here: its own handshake was done before
// the other end had looked at its key.
static void hear(const laci_tcp_terms *terms, laci_tcp_attempt *a)
{
    laci_tcp_connection *const c = a->connection;
    (void)laci_tcp_flush(c);
    while (a->got < terms->first_len) {
        const size_t got =
            laci_tcp_read(c, a->first + a->got, terms->first_len - a->got);
        a->got += got;
        if (got == 0 && c->input_ended) {
            attempt_break(
                a,
                c->error == EPROTO ? "it refused this worker's key"
                                   : "it closed the connection",
                c->error == EPROTO);
            return;
        }
        if (got == 0) {
            return;
        }
    }
    a->stage = LACI_TCP_HEARD;
}

void laci_tcp_attempt_advance(
    const laci_tcp_terms *terms, laci_tcp_attempt *a, double now)
{
    if (a->stage == LACI_TCP_CONNECTING) {
        finish_connect(terms, a);
    }
    if (a->stage == LACI_TCP_SHAKING) {
        shake(a);
    }
    if (a->stage == LACI_TCP_LISTENING) {
        hear(terms, a);
    }
    const bool waits = a->stage != LACI_TCP_NONE &&
                       a->stage != LACI_TCP_HEARD &&
                       a->stage != LACI_TCP_BROKEN;
    if (waits && now - a->started > LACI_TCP_ATTEMPT_SECONDS) {
        attempt_break(
            a,
            a->stage == LACI_TCP_CONNECTING
                ? "it does not answer"
                : "it answers, but is not ready to join",
            false);
    }
}

void laci_tcp_attempt_listen(laci_tcp_attempt *a)
{
    a->stage = LACI_TCP_LISTENING;
}

struct pollfd laci_tcp_attempt_poll(const laci_tcp_attempt *a)
{
    struct pollfd wanted = {.fd = -1};
    if (a->stage == LACI_TCP_CONNECTING) {
        wanted.fd = a->socket;
        wanted.events = POLLOUT;
    } else if (a->connection != NULL) {
        const laci_tcp_connection *const c = a->connection;
        wanted.fd = c->socket;
        wanted.events = c->out_start < c->out_end ? POLLIN | POLLOUT : POLLIN;
    }
    return wanted;
}

void laci_tcp_attempt_end(laci_tcp_attempt *a)
{
    if (a->stage == LACI_TCP_NONE) {
        return;
    }
    if (a->socket >= 0) {
        (void)close(a->socket);
    }
    laci_tcp_connection_close(a->connection);
    *a = (laci_tcp_attempt){.socket = -1};
}

// Returns a free place, or NULL.
static laci_tcp_attempt *find_free_place(
    laci_tcp_attempt pending[LACI_TCP_PENDING])
{
    for (size_t i = 0; i < LACI_TCP_PENDING; i++) {
        if (pending[i].stage == LACI_TCP_NONE) {
            return &pending[i];
        }
    }
    return NULL;
}

// Returns the attempt that has lasted longest, or NULL.
static laci_tcp_attempt *find_oldest(laci_tcp_attempt pending[LACI_TCP_PENDING])
{
    laci_tcp_attempt *oldest = NULL;
    for (size_t i = 0; i < LACI_TCP_PENDING; i++) {
        if (pending[i].stage != LACI_TCP_NONE &&
            (oldest == NULL || pending[i].started < oldest->started)) {
            oldest = &pending[i];
        }
    }
    return oldest;
}

void laci_tcp_accept_all(
    const laci_tcp_terms *terms, int listener,
    laci_tcp_attempt pending[LACI_TCP_PENDING], double now)
{
    // One round of places: then the others have their turn.
    for (size_t i = 0; i < LACI_TCP_PENDING; i++) {
        const int socket =
            accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        const bool full = socket < 0 && (errno == EMFILE || errno == ENFILE);
        if (socket < 0 && !full) {
            return;
        }
        laci_tcp_attempt *place = full ? NULL : find_free_place(pending);
        if (place == NULL) {
            place = find_oldest(pending);
            if (place == NULL) {
                return; // no descriptor is free, and none is a newcomer's
            }
            laci_tcp_attempt_end(place);
        }
        if (full) {
            continue; // there is a free descriptor now
        }
        laci_tcp_attempt_accept(terms, place, socket, now);
    }
}
