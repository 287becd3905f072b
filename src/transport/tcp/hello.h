// SPDX-License-Identifier: MIT
// HELLO, the first message on every connection. It shows that both ends belong
// to the same group, speak the same version, and mean each other. It is bound
// to its TLS session, so that a recorded one is worth nothing.
#ifndef LACONIC_TRANSPORT_TCP_HELLO_H
#define LACONIC_TRANSPORT_TCP_HELLO_H

#include "transport/tcp/roster.h"

enum {
    LACI_TCP_HELLO = 96, // bytes
    LACI_TCP_VERSION = 1,
    LACI_TCP_DIGEST = 32,
    LACI_TCP_REASON = 200, // room for the reason of a refusal
};

typedef struct laci_tcp_hello {
    bool encryption;
    uint32_t world;
    uint32_t sender;
    uint32_t receiver;
    uint64_t incarnation;             // of the sender: random, new in each run
    uint8_t session[LACI_TCP_DIGEST]; // of the group
    uint8_t binding[LACI_TCP_DIGEST]; // of the TLS session
} laci_tcp_hello;

// laci_tcp_session_digest is what all workers of a group have in common: its
// keys, in the order of ranks.
bool laci_tcp_session_digest(
    const laci_tcp_roster *roster, uint8_t out[LACI_TCP_DIGEST]);

void laci_tcp_hello_write(
    const laci_tcp_hello *hello, uint8_t out[LACI_TCP_HELLO]);

// laci_tcp_hello_read checks the bytes of a HELLO against what is expected, of
// which `incarnation` is set. Returns false and the reason if it is refused.
bool laci_tcp_hello_read(
    const uint8_t bytes[LACI_TCP_HELLO], laci_tcp_hello *expected,
    char reason_out[LACI_TCP_REASON]);

#endif
