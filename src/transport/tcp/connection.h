// SPDX-License-Identifier: MIT
// One connection: a socket that never blocks, TLS on it, and a buffer for each
// direction, so that many TLS records go through one system call.
#ifndef LACONIC_TRANSPORT_TCP_CONNECTION_H
#define LACONIC_TRANSPORT_TCP_CONNECTION_H

#include <sys/types.h>
#include <sys/uio.h>

#include "transport/tcp/tls.h"

enum {
    LACI_TCP_RECORD = 16384,      // most bytes of a TLS record
    LACI_TCP_BUFFER = 256 * 1024, // of one direction
    LACI_TCP_RECORD_SLACK = 1024, // what TLS adds to a record, and more
};

typedef struct laci_tcp_connection {
    const laci_services *services;
    int socket; // -1: none
    SSL *ssl;   // NULL: in the clear
    laci_tcp_pin pin;
    uint8_t *in; // bytes in[in_start..in_end) were received
    size_t in_start;
    size_t in_end;
    uint8_t *out; // bytes out[out_start..out_end) are to be sent
    size_t out_start;
    size_t out_end;
    uint64_t records;         // written with the current key
    uint64_t records_per_key; // AES-GCM is safe for a limited number
    bool input_ended;         // nothing more can be read
    bool output_ended;        // nothing more can be written
    bool hold;                // read what is buffered, and receive no more
    unsigned refills;         // of the input buffer by the running call
    int error;                // errno of the end, 0 if the other end closed
} laci_tcp_connection;

typedef enum laci_tcp_step {
    LACI_TCP_DONE,
    LACI_TCP_AGAIN, // when the socket is ready
    LACI_TCP_FAILED,
} laci_tcp_step;

// laci_tcp_bio_method is how OpenSSL reads and writes a connection.
BIO_METHOD *laci_tcp_bio_method(void);

// laci_tcp_connection_open takes over a connected socket and prepares a TLS
// handshake with the worker that `pin` allows. On failure the socket is closed.
lac_status laci_tcp_connection_open(
    laci_tcp_connection **out, const laci_services *services,
    const laci_tcp_tls *tls, int socket, bool server, laci_tcp_pin pin);

// laci_tcp_connection_close closes the socket and releases `c`. NULL is
// allowed.
void laci_tcp_connection_close(laci_tcp_connection *c);

// laci_tcp_handshake goes on with the handshake. If it fails, `*reason_out` is
// a text, and `*fatal_out` whether another try cannot succeed.
laci_tcp_step laci_tcp_handshake(
    laci_tcp_connection *c, const char **reason_out, bool *fatal_out);

// laci_tcp_clear ends TLS, whose handshake has shown who is at the other end.
void laci_tcp_clear(laci_tcp_connection *c);

// laci_tcp_read reads up to n bytes that have arrived; 0: none now, or the
// input has ended.
size_t laci_tcp_read(laci_tcp_connection *c, uint8_t *into, size_t n);

// laci_tcp_write writes up to n bytes of head and then of data, and returns how
// many the connection took. 0: call it again when the socket is writable.
size_t laci_tcp_write(
    laci_tcp_connection *c, const uint8_t *head, size_t head_len,
    const uint8_t *data, size_t len);

// laci_tcp_flush sends what is buffered and returns whether all of it was.
bool laci_tcp_flush(laci_tcp_connection *c);

// laci_tcp_unsent returns the bytes that this machine still has to send or that
// the other end has not acknowledged.
size_t laci_tcp_unsent(const laci_tcp_connection *c);

#endif
