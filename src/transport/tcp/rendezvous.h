// SPDX-License-Identifier: MIT
// The messages of the rendezvous at worker 0, see rendezvous.c.
#ifndef LACONIC_TRANSPORT_TCP_RENDEZVOUS_H
#define LACONIC_TRANSPORT_TCP_RENDEZVOUS_H

#include "transport/tcp/hello.h"

enum {
    LACI_TCP_REQUEST = 160,   // bytes of a request
    LACI_TCP_REPLY = 12,      // bytes of the start of a reply
    LACI_TCP_REPLY_HOST = 64, // bytes of a host in a message
    LACI_TCP_REPLY_ENTRY = LACI_TCP_REPLY_HOST + 2 + LACI_TCP_KEY,
};

// What a worker sends to worker 0.
typedef struct laci_tcp_request {
    uint32_t world;
    uint32_t rank;
    laci_tcp_address address; // where it listens; an empty host: where it is
    uint8_t key[LACI_TCP_KEY];
    uint8_t binding[LACI_TCP_DIGEST];
} laci_tcp_request;

void laci_tcp_request_write(
    const laci_tcp_request *request, uint8_t out[LACI_TCP_REQUEST]);

// laci_tcp_request_read parses a request. Returns false and the reason if it
// breaks the format; world, rank and binding are the caller's to check.
bool laci_tcp_request_read(
    const uint8_t bytes[LACI_TCP_REQUEST], laci_tcp_request *out,
    char reason_out[LACI_TCP_REASON]);

// A reply starts with the number of entries that follow, one for each worker,
// or with 0 and the length of a text with the reason.
typedef struct laci_tcp_reply {
    uint32_t count;
    uint32_t text_len;
} laci_tcp_reply;

void laci_tcp_reply_write(
    const laci_tcp_reply *reply, uint8_t out[LACI_TCP_REPLY]);
bool laci_tcp_reply_read(
    const uint8_t bytes[LACI_TCP_REPLY], laci_tcp_reply *out);

// The entry of one worker in a reply.
void laci_tcp_reply_entry_write(
    const laci_tcp_entry *entry, uint8_t out[LACI_TCP_REPLY_ENTRY]);
bool laci_tcp_reply_entry_read(
    const uint8_t bytes[LACI_TCP_REPLY_ENTRY], laci_tcp_entry *out);

#endif
