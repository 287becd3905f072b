// SPDX-License-Identifier: MIT
// Threads of one process as workers over tcp: each has a socket on loopback and
// a key of its own.
#ifndef LACONIC_TESTS_TCP_GROUP_H
#define LACONIC_TESTS_TCP_GROUP_H

#include <stdio.h>
#include <string.h>

#include <laconic/laconic.h>

enum { TCP_GROUP_MAX = 16 };

typedef struct tcp_group {
    uint32_t world;
    lac_tcp_listener *listeners[TCP_GROUP_MAX];
    lac_tcp_peer peers[TCP_GROUP_MAX];
    char addresses[TCP_GROUP_MAX][32];
    char keys[TCP_GROUP_MAX][LAC_KEY_TEXT_SIZE]; // a join releases its listener
} tcp_group;

// Opens the sockets of all workers. `settings` follows "tcp:listen=127.0.0.1"
// in their specs; it is empty or begins with a comma. Joining takes the sockets
// over: all workers must join.
static inline lac_status tcp_group_open(
    tcp_group *g, uint32_t world, const char *settings)
{
    char spec[200];
    *g = (tcp_group){.world = world};
    (void)snprintf(spec, sizeof(spec), "tcp:listen=127.0.0.1%s", settings);
    for (uint32_t rank = 0; rank < world; rank++) {
        LAC_TRY(lac_tcp_listen(&g->listeners[rank], spec));
        (void)snprintf(
            g->addresses[rank], sizeof(g->addresses[rank]), "127.0.0.1:%u",
            lac_tcp_port(g->listeners[rank]));
        (void)snprintf(
            g->keys[rank], sizeof(g->keys[rank]), "%s",
            lac_tcp_key(g->listeners[rank]));
        g->peers[rank] = (lac_tcp_peer){
            .address = g->addresses[rank],
            .key = g->keys[rank],
        };
    }
    return LAC_OK;
}

static inline lac_status tcp_group_join(
    const tcp_group *g, uint32_t rank, lac_transport **out)
{
    return lac_tcp_join(out, g->listeners[rank], g->peers, rank, g->world);
}

#endif
