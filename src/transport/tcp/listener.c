// SPDX-License-Identifier: MIT
// Listens for programs that share addresses and keys by themselves.
#define _GNU_SOURCE
#include "transport/tcp/listener.h"

#include <string.h>
#include <unistd.h>

#include "base/fail.h"

struct laci_tcp_socket {
    const laci_services *services;
    EVP_PKEY *key;
    int listener;
};

lac_status laci_tcp_listen_address(
    const laci_services *services, const laci_tcp_settings *settings,
    laci_tcp_address *address)
{
    const uint16_t port = address->port;
    const size_t len = strlen(settings->listen);
    if (len == 0) {
        return LAC_OK;
    }
    if (!laci_tcp_address_parse(settings->listen, len, address)) {
        return services->fail(
            LAC_ERR_INVALID,
            "tcp: listen is '%.80s', expected an address, address:port or "
            "[IPv6]:port",
            settings->listen);
    }
    address->port = address->port == 0 ? port : address->port;
    return LAC_OK;
}

static lac_status open_socket(
    laci_tcp_socket *socket, const laci_tcp_settings *settings,
    uint16_t *port_out)
{
    laci_tcp_address address = {.port = (uint16_t)settings->port};
    LAC_TRY(laci_tcp_key_new(socket->services, &socket->key));
    LAC_TRY(laci_tcp_listen_address(socket->services, settings, &address));
    return laci_tcp_listen_on(
        socket->services, &address, &socket->listener, port_out);
}

lac_status laci_tcp_listen(
    const laci_services *services, const laci_tcp_settings *settings,
    laci_tcp_socket **out, uint16_t *port_out, char key_out[LAC_KEY_TEXT_SIZE])
{
    uint8_t public[LACI_TCP_KEY] = {0};
    laci_tcp_socket *const socket = services->zalloc(sizeof(*socket));
    *out = NULL;
    if (socket == NULL) {
        return services->fail(LAC_ERR_NOMEM, "tcp: no memory for a listener");
    }
    socket->services = services;
    socket->listener = -1;
    const lac_status status = open_socket(socket, settings, port_out);
    if (status != LAC_OK) {
        laci_tcp_socket_close(socket);
        return status;
    }
    (void)laci_tcp_key_public(socket->key, public);
    laci_tcp_key_text(public, key_out);
    *out = socket;
    return LAC_OK;
}

int laci_tcp_socket_descriptor(const laci_tcp_socket *socket)
{
    return socket->listener;
}

void laci_tcp_socket_close(laci_tcp_socket *socket)
{
    if (socket == NULL) {
        return;
    }
    if (socket->listener >= 0) {
        (void)close(socket->listener);
    }
    EVP_PKEY_free(socket->key);
    socket->services->free(socket);
}

void laci_tcp_socket_take(
    laci_tcp_socket *socket, EVP_PKEY **key_out, int *listener_out)
{
    *key_out = socket->key;
    *listener_out = socket->listener;
    socket->key = NULL;
    socket->listener = -1;
    laci_tcp_socket_close(socket);
}
