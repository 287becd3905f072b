// SPDX-License-Identifier: MIT
// TLS 1.3 with pinned keys. Each worker shows a certificate that it signed
// itself when it joined; all that counts is the key in it, which the other end
// must find in its list.
#ifndef LACONIC_TRANSPORT_TCP_TLS_H
#define LACONIC_TRANSPORT_TCP_TLS_H

#include <openssl/ssl.h>

#include "transport/tcp/roster.h"

typedef struct laci_tcp_tls {
    SSL_CTX *context;
    BIO_METHOD *method; // of connections, see connection.c
} laci_tcp_tls;

// Whom a connection may end at. It is an SSL's app data.
typedef struct laci_tcp_pin {
    const laci_tcp_roster *roster;
    uint32_t expected; // a rank, or LAC_RANK_ANY for every worker in the list
    uint32_t found;    // the rank of the key that was shown, or LAC_RANK_ANY
    bool refused;      // a key was shown, but it is not expected
} laci_tcp_pin;

// laci_tcp_tls_open prepares TLS for the owner of `key`.
lac_status laci_tcp_tls_open(
    const laci_services *services, EVP_PKEY *key, laci_tcp_tls *out);
void laci_tcp_tls_close(laci_tcp_tls *tls);

// laci_tcp_tls_binding derives bytes that only the two ends of a TLS session
// know.
bool laci_tcp_tls_binding(SSL *ssl, uint8_t out[32]);

#endif
