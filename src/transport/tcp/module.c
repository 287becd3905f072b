// SPDX-License-Identifier: MIT
// The module "tcp": its table, and leaving.
#include <math.h>
#include <stdio.h>

#include <openssl/crypto.h>

#include "transport/loader.h"
#include "transport/tcp/listener.h"
#include "transport/tcp/session.h"

// Leaving waits at least so long for the others' machines to take what was
// sent, and after a failure no longer.
#define FAILED_GRACE_SECONDS 2.0
#define LEAST_TIMEOUT        1.0

bool laci_tcp_all_sent(const laci_tcp_session *s)
{
    for (uint32_t peer = 0; peer < s->world; peer++) {
        const laci_tcp_peer *const p = &s->peers[peer];
        if (p->connection != NULL &&
            (p->first_out != NULL || laci_tcp_unsent(p->connection) > 0)) {
            return false;
        }
    }
    return true;
}

// Sends what is left, and waits until the machines of the others have it. An
// abort by another thread, or of another worker, shortens the wait.
static void tcp_finish(laci_tcp_session *s)
{
    double until = s->services->now() + fmax(s->allowed, LEAST_TIMEOUT);
    bool failed = false;
    while (!laci_tcp_all_sent(s) && s->services->now() < until) {
        if (!failed && (atomic_load(&s->aborted) || s->cause != NULL)) {
            failed = true;
            until = fmin(until, s->services->now() + FAILED_GRACE_SECONDS);
        }
        if (atomic_load(&s->aborted)) {
            laci_tcp_announce_abort(s);
        }
        laci_tcp_progress(s, 1);
    }
}

// Nobody uses lent memory afterwards: what was sent is with the system.
static bool tcp_leave(void *state)
{
    laci_tcp_session *const s = state;
    if (s->world > 1) {
        laci_tcp_engine_stop(s);
    }
    laci_tcp_take(s);
    if (atomic_load(&s->aborted)) {
        laci_tcp_announce_abort(s);
    }
    laci_tcp_announce_leave(s);
    tcp_finish(s);
    laci_tcp_give(s);
    laci_tcp_session_release(s);
    return true;
}

static size_t tcp_sockets(void *state, int *out, size_t cap)
{
    laci_tcp_session *const s = state;
    size_t count = 0;
    laci_tcp_take(s); // the session's thread may drop a connection
    for (uint32_t peer = 0; peer < s->world; peer++) {
        const laci_tcp_connection *const c = s->peers[peer].connection;
        if (c != NULL && count < cap) {
            out[count] = c->socket;
        }
        count += c != NULL;
    }
    laci_tcp_give(s);
    return count;
}

static lac_status module_library(const void *state, char out[LAC_LIBRARY_SIZE])
{
    (void)state;
    (void)snprintf(
        out, LAC_LIBRARY_SIZE, "%s", OpenSSL_version(OPENSSL_VERSION));
    return LAC_OK;
}

static const laci_tcp_table table = {
    .transport =
        {
            .plugin =
                {
                    .size = sizeof(laci_transport_ops),
                    .name = "tcp",
                    .summary = "TLS 1.3 between all pairs of workers",
                    .state_size = sizeof(laci_tcp_session),
                },
            .abi = LACI_TRANSPORT_ABI,
            .join = laci_tcp_join,
            .leave = tcp_leave,
            .exchange = laci_tcp_exchange,
            .abort = laci_tcp_abort,
            .library = module_library,
            .sockets = tcp_sockets,
        },
    .key_create = laci_tcp_key_create,
    .key_read = laci_tcp_key_read,
    .token_create = laci_tcp_token_create,
    .listen = laci_tcp_listen,
    .descriptor = laci_tcp_socket_descriptor,
    .close = laci_tcp_socket_close,
    .check = laci_tcp_check,
};

LAC_API laci_module_entry laci_tcp_module;

const laci_transport_ops *laci_tcp_module(void)
{
    return &table.transport;
}
