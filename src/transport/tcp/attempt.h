// SPDX-License-Identifier: MIT
// A new connection until its first message: dialled or accepted, then TLS, then
// a message of fixed length from the other end. Nothing of it waits, and it has
// a few seconds for everything, so that pending cannot block a worker.
#ifndef LACONIC_TRANSPORT_TCP_ATTEMPT_H
#define LACONIC_TRANSPORT_TCP_ATTEMPT_H

#include <poll.h>

#include "transport/tcp/connection.h"

enum {
    LACI_TCP_FIRST = 160,  // most bytes of a first message
    LACI_TCP_PENDING = 64, // most accepted attempts at a time
};

#define LACI_TCP_ATTEMPT_SECONDS 5.0

typedef enum laci_tcp_stage {
    LACI_TCP_NONE,
    LACI_TCP_CONNECTING,
    LACI_TCP_SHAKING,
    LACI_TCP_SHAKEN, // the caller may write, and calls laci_tcp_attempt_listen
    LACI_TCP_LISTENING,
    LACI_TCP_HEARD,  // `first` is complete
    LACI_TCP_BROKEN, // for `reason`
} laci_tcp_stage;

// What all attempts of a worker have in common.
typedef struct laci_tcp_terms {
    const laci_services *services;
    const laci_tcp_tls *tls;
    const laci_tcp_roster *roster; // of those who may connect
    size_t first_len;              // of the first message
} laci_tcp_terms;

typedef struct laci_tcp_attempt {
    laci_tcp_stage stage;
    double started;
    uint32_t expected; // the rank that was dialled, or LAC_RANK_ANY
    int socket;        // while connecting
    laci_tcp_connection *connection;
    uint8_t first[LACI_TCP_FIRST];
    size_t got;
    const char *reason;
    bool fatal; // another try cannot succeed
} laci_tcp_attempt;

// laci_tcp_attempt_dial and laci_tcp_attempt_accept start an attempt with a
// socket, which they take over.
void laci_tcp_attempt_dial(
    laci_tcp_attempt *a, int socket, uint32_t expected, double now);
void laci_tcp_attempt_accept(
    const laci_tcp_terms *terms, laci_tcp_attempt *a, int socket, double now);

// laci_tcp_attempt_advance goes on as far as it can without waiting.
void laci_tcp_attempt_advance(
    const laci_tcp_terms *terms, laci_tcp_attempt *a, double now);
void laci_tcp_attempt_listen(laci_tcp_attempt *a);

// laci_tcp_attempt_poll returns what the attempt waits for.
struct pollfd laci_tcp_attempt_poll(const laci_tcp_attempt *a);

// laci_tcp_attempt_end closes what the attempt has and makes it NONE.
void laci_tcp_attempt_end(laci_tcp_attempt *a);

// laci_tcp_accept_all accepts new connections. When there are too many, the
// oldest pending one is closed: a worker needs milliseconds.
void laci_tcp_accept_all(
    const laci_tcp_terms *terms, int listener,
    laci_tcp_attempt pending[LACI_TCP_PENDING], double now);

#endif
