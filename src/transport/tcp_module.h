// SPDX-License-Identifier: MIT
// The interface between the library and the module of the transport "tcp".
#ifndef LACONIC_TRANSPORT_TCP_MODULE_H
#define LACONIC_TRANSPORT_TCP_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include <laconic/tcp.h>

#include "transport/transport.h"

// The settings of "tcp:...", the first member of the module's state. Texts that
// were not given are empty.
typedef struct laci_tcp_settings {
    const char *peers;
    const char *token;
    const char *key;
    const char *listen;
    uint32_t port; // 0: chosen
    bool encryption;
    double timeout;
} laci_tcp_settings;

// A socket that listens, and the key of a run: the module's own type.
typedef struct laci_tcp_socket laci_tcp_socket;

// laci_membership.prepared of a join by lac_tcp_join. Joining takes the socket
// over, also when it fails.
typedef struct laci_tcp_prepared {
    laci_tcp_socket *socket;
    const lac_tcp_peer *peers;
} laci_tcp_prepared;

// The module's table. It begins with the ops, which are checked first.
typedef struct laci_tcp_table {
    laci_transport_ops transport;
    lac_status (*key_create)(
        const laci_services *services, const char *path,
        char text_out[LAC_KEY_TEXT_SIZE]);
    lac_status (*key_read)(
        const laci_services *services, const char *path,
        char text_out[LAC_KEY_TEXT_SIZE]);
    lac_status (*token_create)(const laci_services *services, const char *path);
    lac_status (*listen)(
        const laci_services *services, const laci_tcp_settings *settings,
        laci_tcp_socket **out, uint16_t *port_out,
        char key_out[LAC_KEY_TEXT_SIZE]);
    int (*descriptor)(const laci_tcp_socket *socket);
    void (*close)(laci_tcp_socket *socket);
    lac_status (*check)(
        const laci_services *services, const laci_tcp_settings *settings,
        void (*report)(void *context, const lac_peer_report *peer),
        void *context);
} laci_tcp_table;

// The only symbol of the module, a laci_module_entry.
#define LACI_TCP_ENTRY "laci_tcp_module"

#endif
