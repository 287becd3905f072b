// SPDX-License-Identifier: MIT
// A socket that listens and the key of a run, before the group is known.
#ifndef LACONIC_TRANSPORT_TCP_LISTENER_H
#define LACONIC_TRANSPORT_TCP_LISTENER_H

#include "transport/tcp/address.h"
#include "transport/tcp/key.h"

// laci_tcp_listen, laci_tcp_socket_descriptor and laci_tcp_socket_close as in
// the module's table.
lac_status laci_tcp_listen(
    const laci_services *services, const laci_tcp_settings *settings,
    laci_tcp_socket **out, uint16_t *port_out, char key_out[LAC_KEY_TEXT_SIZE]);
int laci_tcp_socket_descriptor(const laci_tcp_socket *socket);
void laci_tcp_socket_close(laci_tcp_socket *socket);

// laci_tcp_socket_take hands the key and the socket over and releases the rest.
void laci_tcp_socket_take(
    laci_tcp_socket *socket, EVP_PKEY **key_out, int *listener_out);

// laci_tcp_listen_address applies the setting `listen`, an address with or
// without a port, to `address`.
lac_status laci_tcp_listen_address(
    const laci_services *services, const laci_tcp_settings *settings,
    laci_tcp_address *address);

#endif
