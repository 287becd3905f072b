// SPDX-License-Identifier: MIT
// Joining a group: who the workers are, the key and the socket of this one, and
// then a connection with every other.
#define _GNU_SOURCE
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "transport/tcp/listener.h"
#include "transport/tcp/session.h"

// A worker that cannot join announces why to those that are connected, for so
// long at most.
#define ANNOUNCE_SECONDS 1.0

static lac_status check_place(
    const laci_tcp_session *s, laci_membership *membership)
{
    if (membership->world != LAC_RANK_ANY && membership->world != s->world) {
        return s->services->fail(
            LAC_ERR_INVALID, "tcp: the group has %u workers, expected %u",
            s->world, membership->world);
    }
    if (membership->rank != LAC_RANK_ANY && membership->rank != s->rank) {
        return s->services->fail(
            LAC_ERR_INVALID, "tcp: this is worker %u of the group, expected %u",
            s->rank, membership->rank);
    }
    membership->rank = s->rank;
    membership->world = s->world;
    return LAC_OK;
}

// This worker is the one whose key is in the list.
static lac_status find_rank(
    laci_tcp_session *s, const EVP_PKEY *key, const char *list)
{
    uint8_t own[LACI_TCP_KEY] = {0};
    char text[LAC_KEY_TEXT_SIZE];
    (void)laci_tcp_key_public(key, own);
    s->world = s->roster.count;
    s->rank = laci_tcp_roster_find(&s->roster, own);
    if (s->rank == LAC_RANK_ANY) {
        laci_tcp_key_text(own, text);
        return s->services->fail(
            LAC_ERR_INVALID,
            "tcp: no line of %s has this worker's key %s, expected one", list,
            text);
    }
    return LAC_OK;
}

lac_status laci_tcp_take_seat(
    laci_tcp_session *s, EVP_PKEY **key_out, int *listener_out)
{
    uint16_t port;
    LAC_TRY(laci_tcp_key_load(s->services, s->settings.key, key_out));
    LAC_TRY(laci_tcp_roster_read(s->services, s->settings.peers, &s->roster));
    LAC_TRY(find_rank(s, *key_out, s->settings.peers));
    laci_tcp_address address = {
        .port = s->roster.entries[s->rank].address.port};
    LAC_TRY(laci_tcp_listen_address(s->services, &s->settings, &address));
    return laci_tcp_listen_on(s->services, &address, listener_out, &port);
}

// A program gave the list and the socket.
static lac_status take_prepared(
    laci_tcp_session *s, laci_membership *membership, EVP_PKEY **key_out,
    int *listener_out)
{
    laci_tcp_prepared *const prepared = membership->prepared;
    if (membership->world == 0 || membership->world > LACI_TCP_WORKERS ||
        prepared->peers == NULL) {
        return s->services->fail(
            LAC_ERR_INVALID, "tcp: a list of %u workers, expected 1 to %d",
            membership->world, LACI_TCP_WORKERS);
    }
    laci_tcp_socket_take(prepared->socket, key_out, listener_out);
    prepared->socket = NULL;
    LAC_TRY(laci_tcp_roster_copy(
        s->services, prepared->peers, membership->world, &s->roster));
    return find_rank(s, *key_out, "the list");
}

static lac_status gather(
    laci_tcp_session *s, laci_membership *membership, EVP_PKEY **key_out,
    int *listener_out)
{
    const bool peers = s->settings.peers[0] != '\0';
    const bool token = s->settings.token[0] != '\0';
    if (membership->prepared != NULL) {
        LAC_TRY(take_prepared(s, membership, key_out, listener_out));
    } else if (peers && token) {
        return s->services->fail(
            LAC_ERR_INVALID, "tcp: peers=%s and token=%s, expected one of them",
            s->settings.peers, s->settings.token);
    } else if (peers) {
        LAC_TRY(laci_tcp_take_seat(s, key_out, listener_out));
    } else if (token) {
        LAC_TRY(laci_tcp_rendezvous_run(s, key_out, listener_out));
    } else {
        return s->services->fail(
            LAC_ERR_INVALID,
            "tcp: no peers and no token, expected peers=FILE or token=FILE");
    }
    return check_place(s, membership);
}

lac_status laci_tcp_session_prepare(laci_tcp_session *s, EVP_PKEY *key)
{
    s->hello = (laci_tcp_hello){
        .encryption = s->settings.encryption,
        .world = s->world,
        .sender = s->rank,
    };
    s->suspect = LAC_RANK_ANY;
    if (!laci_tcp_session_digest(&s->roster, s->hello.session) ||
        RAND_bytes(
            (uint8_t *)&s->hello.incarnation, sizeof(s->hello.incarnation)) !=
            1) {
        return s->services->fail(
            LAC_ERR_UNSUPPORTED, "tcp: OpenSSL has no SHA-256 or no random "
                                 "bytes");
    }
    LAC_TRY(laci_tcp_tls_open(s->services, key, &s->tls));
    s->peers = s->services->zalloc(s->world * sizeof(*s->peers));
    if (s->peers == NULL) {
        return s->services->fail(
            LAC_ERR_NOMEM, "tcp: no memory for a session of %u workers",
            s->world);
    }
    LAC_TRY(laci_tcp_engine_open(s));
    s->engine_open = true;
    return LAC_OK;
}

lac_status laci_tcp_watch_all(laci_tcp_session *s)
{
    for (uint32_t peer = 0; peer < s->world; peer++) {
        laci_tcp_peer *const p = &s->peers[peer];
        if (p->connection != NULL && !laci_tcp_watch(s, p)) {
            return s->services->fail(
                LAC_ERR_NOMEM, "tcp: cannot watch the connection of worker %u",
                peer);
        }
    }
    return LAC_OK;
}

// Sends the workers that are connected the reason why this one does not join.
static void announce_failure(laci_tcp_session *s)
{
    const double until = s->services->now() + ANNOUNCE_SECONDS;
    (void)snprintf(s->why, sizeof(s->why), "%s", s->services->error());
    if (laci_tcp_watch_all(s) != LAC_OK) {
        return;
    }
    laci_tcp_announce_abort(s);
    while (!laci_tcp_all_sent(s) && s->services->now() < until) {
        laci_tcp_progress(s, 10);
    }
}

static lac_status connect_group(laci_tcp_session *s, int listener)
{
    char(*const reasons)[LACI_TCP_REASON] =
        s->services->zalloc(s->world * sizeof(*reasons));
    if (reasons == NULL) {
        return s->services->fail(
            LAC_ERR_NOMEM, "tcp: no memory for a session of %u workers",
            s->world);
    }
    const double deadline = s->services->now() + s->settings.timeout;
    lac_status status = laci_tcp_connect_all(s, listener, deadline, reasons);
    s->services->free(reasons);
    if (status != LAC_OK) {
        announce_failure(s);
        return s->services->fail(status, "%s", s->why);
    }
    return status;
}

static lac_status join_group(
    laci_tcp_session *s, laci_membership *membership, EVP_PKEY **key,
    int *listener)
{
    LAC_TRY(gather(s, membership, key, listener));
    LAC_TRY(laci_tcp_session_prepare(s, *key));
    LAC_TRY(connect_group(s, *listener));
    LAC_TRY(laci_tcp_watch_all(s));
    // What arrived with the last HELLO is in no socket any more.
    for (uint32_t peer = 0; peer < s->world; peer++) {
        if (s->peers[peer].connection != NULL) {
            laci_tcp_pull(s, &s->peers[peer]);
        }
    }
    return s->world == 1 ? LAC_OK : laci_tcp_engine_start(s);
}

lac_status laci_tcp_join(void *state, laci_membership *membership)
{
    laci_tcp_session *const s = state;
    EVP_PKEY *key = NULL;
    int listener = -1;
    s->services = membership->services;
    const lac_status status = join_group(s, membership, &key, &listener);
    // From now on nobody can come: the group is closed.
    if (listener >= 0) {
        (void)close(listener);
    }
    EVP_PKEY_free(key);
    if (status != LAC_OK) {
        laci_tcp_session_release(s);
    }
    return status;
}

void laci_tcp_session_release(laci_tcp_session *s)
{
    for (uint32_t peer = 0; s->peers != NULL && peer < s->world; peer++) {
        laci_tcp_connection_close(s->peers[peer].connection);
    }
    while (s->allocated != NULL) {
        laci_tcp_message *const message = s->allocated;
        s->allocated = message->allocated;
        s->services->free(message->memory);
        s->services->free(message);
    }
    while (s->allocated_out != NULL) {
        laci_tcp_outgoing *const out = s->allocated_out;
        s->allocated_out = out->allocated;
        s->services->free(out);
    }
    if (s->engine_open) {
        laci_tcp_engine_close(s);
    }
    s->services->free(s->peers);
    s->services->free(s->claims);
    laci_tcp_roster_release(s->services, &s->roster);
    laci_tcp_tls_close(&s->tls);
}
