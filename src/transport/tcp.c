// SPDX-License-Identifier: MIT
// The transport "tcp": loads its module, which links OpenSSL, and forwards
// every call to it. The library itself links no OpenSSL.
#include <laconic/tcp.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "transport/loader.h"
#include "transport/tcp_module.h"

extern const laci_transport_ops laci_tcp_transport;

// A piece of a sum that takes longer to send than to arrive hides the latency:
// 25 ms at 1 Gbit/s.
enum { SPEC_SIZE = 512, PATH_SIZE = 4096, SUM_PIECE = 4 << 20 };

typedef struct tcp_state {
    laci_module_state module;
    laci_tcp_settings settings;
    char key_path[PATH_SIZE]; // the default
} tcp_state;

struct lac_tcp_listener {
    const laci_tcp_table *table;
    laci_tcp_socket *socket;
    uint16_t port;
    char key[LAC_KEY_TEXT_SIZE];
    char spec[SPEC_SIZE];
};

static lac_status load_table(const laci_tcp_table **out)
{
    const laci_transport_ops *ops = NULL;
    LAC_TRY(laci_module_load("tcp", "tcp", LACI_TCP_ENTRY, &ops));
    *out = (const laci_tcp_table *)(const void *)ops;
    return LAC_OK;
}

// A peers file goes with the user's own key if none is named.
static lac_status choose_key(tcp_state *state)
{
    laci_tcp_settings *const settings = &state->settings;
    if (settings->key[0] != '\0' || settings->peers[0] == '\0') {
        return LAC_OK;
    }
    settings->key = state->key_path;
    return lac_key_default_path(state->key_path, sizeof(state->key_path));
}

static lac_status tcp_join(void *raw, laci_membership *membership)
{
    tcp_state *const state = raw;
    const laci_tcp_table *table = NULL;
    LAC_TRY(load_table(&table));
    LAC_TRY(choose_key(state));
    return laci_module_join(
        &state->module, &table->transport, &state->settings,
        sizeof(state->settings), membership);
}

static lac_status tcp_library(const void *state, char out[LAC_LIBRARY_SIZE])
{
    (void)state;
    return laci_module_library("tcp", "tcp", LACI_TCP_ENTRY, out);
}

lac_status lac_key_default_path(char *out, size_t cap)
{
    const char *const config = getenv("XDG_CONFIG_HOME");
    const char *const home = getenv("HOME");
    const bool has_config = config != NULL && config[0] == '/';
    if (!has_config && (home == NULL || home[0] == '\0')) {
        return lac_fail(
            LAC_ERR_NOTFOUND,
            "the folder of the key is unknown: HOME is not set, expected HOME "
            "or XDG_CONFIG_HOME, or the path of a key");
    }
    const int written =
        has_config ? snprintf(out, cap, "%s/laconic/key", config)
                   : snprintf(out, cap, "%s/.config/laconic/key", home);
    if (written < 0 || (size_t)written >= cap) {
        return lac_fail(
            LAC_ERR_SPACE,
            "the path of the key has %d bytes, expected fewer "
            "than %zu",
            written, cap);
    }
    return LAC_OK;
}

lac_status lac_key_create(const char *path, char text_out[LAC_KEY_TEXT_SIZE])
{
    const laci_tcp_table *table = NULL;
    LAC_TRY(load_table(&table));
    return table->key_create(&laci_transport_services, path, text_out);
}

lac_status lac_key_read(const char *path, char text_out[LAC_KEY_TEXT_SIZE])
{
    const laci_tcp_table *table = NULL;
    LAC_TRY(load_table(&table));
    return table->key_read(&laci_transport_services, path, text_out);
}

lac_status lac_token_create(const char *path)
{
    const laci_tcp_table *table = NULL;
    LAC_TRY(load_table(&table));
    return table->token_create(&laci_transport_services, path);
}

static lac_status copy_spec(lac_tcp_listener *listener, const char *spec)
{
    const int written =
        snprintf(listener->spec, sizeof(listener->spec), "%s", spec);
    if (written < 0 || (size_t)written >= sizeof(listener->spec)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "tcp: the spec has %d bytes, expected fewer than "
            "%zu",
            written, sizeof(listener->spec));
    }
    return LAC_OK;
}

static lac_status open_listener(lac_tcp_listener *listener, const char *spec)
{
    void *handle = NULL, *state = NULL;
    LAC_TRY(copy_spec(listener, spec));
    LAC_TRY(load_table(&listener->table));
    LAC_TRY(
        laci_transport_settings(&laci_tcp_transport, spec, &handle, &state));
    const tcp_state *const tcp = state;
    const lac_status status = listener->table->listen(
        &laci_transport_services, &tcp->settings, &listener->socket,
        &listener->port, listener->key);
    laci_free_aligned(handle);
    return status;
}

lac_status lac_tcp_listen(lac_tcp_listener **out, const char *spec)
{
    *out = NULL;
    lac_tcp_listener *const listener = laci_zalloc(sizeof(*listener));
    if (listener == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "tcp: no memory for a listener");
    }
    const lac_status status = open_listener(listener, spec);
    if (status != LAC_OK) {
        laci_free(listener);
        return status;
    }
    *out = listener;
    return LAC_OK;
}

uint16_t lac_tcp_port(const lac_tcp_listener *listener)
{
    return listener->port;
}

int lac_tcp_socket(const lac_tcp_listener *listener)
{
    return listener->table->descriptor(listener->socket);
}

const char *lac_tcp_key(const lac_tcp_listener *listener)
{
    return listener->key;
}

lac_status lac_tcp_join(
    lac_transport **out, lac_tcp_listener *listener, const lac_tcp_peer *peers,
    uint32_t rank, uint32_t world)
{
    laci_tcp_prepared prepared = {.socket = listener->socket, .peers = peers};
    laci_membership membership = {
        .rank = rank, .world = world, .prepared = &prepared};
    const lac_status status =
        laci_transport_join(out, listener->spec, &membership);
    // What the join took over is NULL now.
    listener->socket = prepared.socket;
    lac_tcp_close(listener);
    return status;
}

void lac_tcp_close(lac_tcp_listener *listener)
{
    if (listener != NULL) {
        listener->table->close(listener->socket);
        laci_free(listener);
    }
}

lac_status lac_peers_check(
    const char *spec,
    void (*report)(void *context, const lac_peer_report *peer), void *context)
{
    const laci_tcp_table *table = NULL;
    void *handle = NULL, *state = NULL;
    LAC_TRY(load_table(&table));
    LAC_TRY(
        laci_transport_settings(&laci_tcp_transport, spec, &handle, &state));
    tcp_state *const tcp = state;
    lac_status status = choose_key(tcp);
    if (status == LAC_OK) {
        status = table->check(
            &laci_transport_services, &tcp->settings, report, context);
    }
    laci_free_aligned(handle);
    return status;
}

static const lac_param params[] = {
    {
        .name = "peers",
        .type = LAC_PARAM_TEXT,
        .offset = offsetof(tcp_state, settings.peers),
        .default_value = "",
        .help = "file with a line a worker: name address:port key",
    },
    {
        .name = "token",
        .type = LAC_PARAM_TEXT,
        .offset = offsetof(tcp_state, settings.token),
        .default_value = "",
        .help = "file with a secret of workers that start like torchrun",
    },
    {
        .name = "key",
        .type = LAC_PARAM_TEXT,
        .offset = offsetof(tcp_state, settings.key),
        .default_value = "",
        .help = "file with this worker's key (~/.config/laconic/key)",
    },
    {
        .name = "listen",
        .type = LAC_PARAM_TEXT,
        .offset = offsetof(tcp_state, settings.listen),
        .default_value = "",
        .help = "address to listen on, with or without a port (every address)",
    },
    {
        .name = "port",
        .type = LAC_PARAM_U32,
        .offset = offsetof(tcp_state, settings.port),
        .default_value = "0",
        .min = 0,
        .max = 65535,
        .help = "port of worker 0 with a token; 0: MASTER_PORT + 1",
    },
    {
        .name = "encryption",
        .type = LAC_PARAM_BOOL,
        .offset = offsetof(tcp_state, settings.encryption),
        .default_value = "yes",
        .help = "no: workers prove who they are, then send in the clear",
    },
    {
        .name = "timeout",
        .type = LAC_PARAM_F64,
        .offset = offsetof(tcp_state, settings.timeout),
        .default_value = "60",
        .min = 0,
        .max = 1e8,
        .above_min = true,
        .help = "seconds that joining waits for the others",
    },
    {0},
};

const laci_transport_ops laci_tcp_transport = {
    .plugin =
        {
            .size = sizeof(laci_transport_ops),
            .name = "tcp",
            .summary = "machines on any network, authenticated and encrypted",
            .params = params,
            .param_size = sizeof(lac_param),
            .state_size = sizeof(tcp_state),
        },
    .abi = LACI_TRANSPORT_ABI,
    .join = tcp_join,
    .leave = laci_module_leave,
    .exchange = laci_module_exchange,
    .abort = laci_module_abort,
    .sum_piece = SUM_PIECE,
    .library = tcp_library,
    .sockets = laci_module_sockets,
};
