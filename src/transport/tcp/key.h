// SPDX-License-Identifier: MIT
// The keys of workers: Ed25519 keys in files, public keys as text, and the
// secret that workers without a peers file share.
#ifndef LACONIC_TRANSPORT_TCP_KEY_H
#define LACONIC_TRANSPORT_TCP_KEY_H

#include <openssl/evp.h>

#include "transport/tcp_module.h"

enum { LACI_TCP_KEY = 32, LACI_TCP_TOKEN = 32 };

// laci_tcp_key_create, laci_tcp_key_read and laci_tcp_token_create as in the
// module's table.
lac_status laci_tcp_key_create(
    const laci_services *services, const char *path,
    char text_out[LAC_KEY_TEXT_SIZE]);
lac_status laci_tcp_key_read(
    const laci_services *services, const char *path,
    char text_out[LAC_KEY_TEXT_SIZE]);
lac_status laci_tcp_token_create(
    const laci_services *services, const char *path);

// laci_tcp_key_load reads the private key in `path`. EVP_PKEY_free releases it.
lac_status laci_tcp_key_load(
    const laci_services *services, const char *path, EVP_PKEY **out);

// laci_tcp_key_new makes a key that is in no file.
lac_status laci_tcp_key_new(const laci_services *services, EVP_PKEY **out);

// laci_tcp_key_derive makes the key for `purpose` from the token in `path`. All
// who know the token derive the same key.
lac_status laci_tcp_key_derive(
    const laci_services *services, const char *path, const char *purpose,
    EVP_PKEY **out);

// laci_tcp_key_public writes the public part of `key`; laci_tcp_key_text makes
// it text; laci_tcp_key_parse reads len characters of text and returns false if
// they are no key.
bool laci_tcp_key_public(const EVP_PKEY *key, uint8_t out[LACI_TCP_KEY]);
void laci_tcp_key_text(
    const uint8_t key[LACI_TCP_KEY], char text_out[LAC_KEY_TEXT_SIZE]);
bool laci_tcp_key_parse(
    const char *text, size_t len, uint8_t out[LACI_TCP_KEY]);

#endif
