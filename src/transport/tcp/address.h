// SPDX-License-Identifier: MIT
// Addresses of workers: "host:port" and "[IPv6]:port" as text, and sockets that
// listen on one or connect to one.
#ifndef LACONIC_TRANSPORT_TCP_ADDRESS_H
#define LACONIC_TRANSPORT_TCP_ADDRESS_H

#include "transport/tcp_module.h"

enum {
    LACI_TCP_HOST = 256,
    LACI_TCP_ADDRESS_TEXT = LACI_TCP_HOST + 8, // with brackets and a port
};

typedef struct laci_tcp_address {
    char host[LACI_TCP_HOST]; // without brackets; empty: every address
    uint16_t port;            // 0: not given
} laci_tcp_address;

// laci_tcp_address_parse reads text[0..len): a host, or a host and a port.
// Returns false if it is neither.
bool laci_tcp_address_parse(
    const char *text, size_t len, laci_tcp_address *out);

// laci_tcp_address_write writes an address as laci_tcp_address_parse reads it.
void laci_tcp_address_write(
    const laci_tcp_address *address, char *out, size_t cap);

// laci_tcp_listen_on opens a socket that listens, and writes its port. Port 0
// takes a free one.
lac_status laci_tcp_listen_on(
    const laci_services *services, const laci_tcp_address *address,
    int *socket_out, uint16_t *port_out);

// A list of socket addresses that a name stands for, tried one after the other.
typedef struct addrinfo laci_tcp_targets;

// laci_tcp_resolve looks an address up. Returns NULL and a reason if it has
// none. freeaddrinfo releases the list.
laci_tcp_targets *laci_tcp_resolve(
    const laci_tcp_address *address, const char **reason_out);

// laci_tcp_dial starts to connect to `target` and does not wait. Returns -1 and
// sets errno if that is impossible.
int laci_tcp_dial(const laci_tcp_targets *target);

// laci_tcp_prepare_socket makes a connected socket non-blocking, without delay
// for short messages, and keeps an idle connection alive.
void laci_tcp_prepare_socket(int socket);

#endif
