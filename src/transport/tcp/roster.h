// SPDX-License-Identifier: MIT
// The workers of a group: their names, addresses and public keys, by rank. It
// is read from a peers file, received from worker 0, or given by the program.
#ifndef LACONIC_TRANSPORT_TCP_ROSTER_H
#define LACONIC_TRANSPORT_TCP_ROSTER_H

#include "transport/tcp/address.h"
#include "transport/tcp/key.h"

enum {
    LACI_TCP_NAME = 64,       // room for a worker's name
    LACI_TCP_WORKERS = 16384, // most workers of a group
};

typedef struct laci_tcp_entry {
    char name[LACI_TCP_NAME];
    laci_tcp_address address;
    uint8_t key[LACI_TCP_KEY];
} laci_tcp_entry;

typedef struct laci_tcp_roster {
    laci_tcp_entry *entries;
    uint32_t count;
} laci_tcp_roster;

// laci_tcp_printable copies text from a file or a peer, which may hold any
// bytes, for a message: what is not plain text becomes '?'. It is cut to fit.
void laci_tcp_printable(const char *text, size_t len, char *out, size_t cap);

// laci_tcp_roster_allocate makes room for `count` workers;
// laci_tcp_roster_release releases it.
lac_status laci_tcp_roster_allocate(
    const laci_services *services, uint32_t count, laci_tcp_roster *out);
void laci_tcp_roster_release(
    const laci_services *services, laci_tcp_roster *roster);

// laci_tcp_roster_parse reads the text of a peers file. `path` is its name for
// messages. Fails with LAC_ERR_INVALID and names the line.
lac_status laci_tcp_roster_parse(
    const laci_services *services, const char *path, const char *text,
    size_t len, laci_tcp_roster *out);

// laci_tcp_roster_read reads a peers file.
lac_status laci_tcp_roster_read(
    const laci_services *services, const char *path, laci_tcp_roster *out);

// laci_tcp_roster_copy takes the workers that a program lists.
lac_status laci_tcp_roster_copy(
    const laci_services *services, const lac_tcp_peer *peers, uint32_t count,
    laci_tcp_roster *out);

// laci_tcp_roster_find returns the rank of the worker with `key`, or
// LAC_RANK_ANY.
uint32_t laci_tcp_roster_find(
    const laci_tcp_roster *roster, const uint8_t key[LACI_TCP_KEY]);

#endif
