// SPDX-License-Identifier: MIT
// Parses addresses, looks them up, and opens sockets for them.
#define _GNU_SOURCE
#include "transport/tcp/address.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 128, PORT_TEXT = 8 };

// A connection that is silent for a minute is asked whether it still lives,
// which also keeps its entry in the tables of routers and firewalls. It ends
// after three minutes more; exchanges have deadlines of their own.
enum { ALIVE_AFTER = 60, ALIVE_EVERY = 15, ALIVE_TIMES = 12 };

static bool parse_port(const char *text, size_t len, uint16_t *out)
{
    unsigned port = 0;
    if (len == 0 || len > 5) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        port = 10 * port + (unsigned)(text[i] - '0');
    }
    *out = (uint16_t)port;
    return port >= 1 && port <= 65535;
}

// Host names, IPv4 and IPv6 addresses, with a zone such as %eth0.
static bool is_host(const char *text, size_t len, bool brackets)
{
    static const char accepted[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    for (size_t i = 0; i < len; i++) {
        const bool fits =
            memchr(accepted, text[i], sizeof(accepted) - 1) != NULL;
        if (!fits && !(brackets && (text[i] == ':' || text[i] == '%'))) {
            return false;
        }
    }
    return len > 0 && len < LACI_TCP_HOST;
}

bool laci_tcp_address_parse(const char *text, size_t len, laci_tcp_address *out)
{
    *out = (laci_tcp_address){.port = 0};
    const bool brackets = len > 0 && text[0] == '[';
    const char *const end = text + len;
    const char *host = text, *rest = NULL;
    if (brackets) {
        host = text + 1;
        rest = memchr(host, ']', (size_t)(end - host));
        if (rest == NULL) {
            return false;
        }
    } else {
        rest = memchr(text, ':', len);
        rest = rest == NULL ? end : rest;
    }
    const size_t host_len = (size_t)(rest - host);
    if (!is_host(host, host_len, brackets)) {
        return false;
    }
    memcpy(out->host, host, host_len);
    rest += brackets;
    return rest == end ||
           (*rest == ':' &&
            parse_port(rest + 1, (size_t)(end - rest) - 1, &out->port));
}

void laci_tcp_address_write(
    const laci_tcp_address *address, char *out, size_t cap)
{
    const bool brackets = strchr(address->host, ':') != NULL;
    (void)snprintf(
        out, cap, brackets ? "[%s]:%u" : "%s:%u", address->host, address->port);
}

laci_tcp_targets *laci_tcp_resolve(
    const laci_tcp_address *address, const char **reason_out)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_NUMERICSERV,
    };
    struct addrinfo *found = NULL;
    char port[PORT_TEXT];
    (void)snprintf(port, sizeof(port), "%u", address->port);
    const int code = getaddrinfo(address->host, port, &hints, &found);
    if (code != 0) {
        *reason_out = code == EAI_SYSTEM ? strerror(errno) : gai_strerror(code);
        return NULL;
    }
    return found;
}

int laci_tcp_dial(const laci_tcp_targets *target)
{
    const int s = socket(
        target->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s < 0) {
        return -1;
    }
    if (connect(s, target->ai_addr, target->ai_addrlen) != 0 &&
        errno != EINPROGRESS) {
        const int error = errno;
        (void)close(s);
        errno = error;
        return -1;
    }
    return s;
}

void laci_tcp_prepare_socket(int socket)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, ALIVE_AFTER},
        {IPPROTO_TCP, TCP_KEEPINTVL, ALIVE_EVERY},
        {IPPROTO_TCP, TCP_KEEPCNT, ALIVE_TIMES},
    };
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        (void)setsockopt(
            socket, options[i].level, options[i].name, &options[i].value,
            sizeof(options[i].value));
    }
}

// Returns a socket that listens on `target`, or -1.
static int listen_on_target(const struct addrinfo *target)
{
    const int yes = 1, no = 0;
    const int s = socket(
        target->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s < 0) {
        return -1;
    }
    (void)setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (target->ai_family == AF_INET6) { // "every address" means IPv4 too
        (void)setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    }
    if (bind(s, target->ai_addr, target->ai_addrlen) != 0 ||
        listen(s, BACKLOG) != 0) {
        const int error = errno;
        (void)close(s);
        errno = error;
        return -1;
    }
    return s;
}

static uint16_t port_of(int s)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } bound = {.six = {.sin6_port = 0}};
    socklen_t len = sizeof(bound);
    if (getsockname(s, &bound.any, &len) != 0) {
        return 0;
    }
    return ntohs(
        bound.any.sa_family == AF_INET6 ? bound.six.sin6_port
                                        : bound.four.sin_port);
}

lac_status laci_tcp_listen_on(
    const laci_services *services, const laci_tcp_address *address,
    int *socket_out, uint16_t *port_out)
{
    // IPv6 first for "every address", since it takes IPv4 as well.
    static const int families[] = {AF_INET6, AF_INET};
    const bool every = address->host[0] == '\0';
    const char *reason = "no such address on this machine";
    char port[PORT_TEXT];
    int s = -1;
    (void)snprintf(port, sizeof(port), "%u", address->port);
    for (size_t i = 0; s < 0 && i < (every ? 2 : 1); i++) {
        const struct addrinfo hints = {
            .ai_family = every ? families[i] : AF_UNSPEC,
            .ai_socktype = SOCK_STREAM,
            .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
        };
        struct addrinfo *found = NULL;
        const int code =
            getaddrinfo(every ? NULL : address->host, port, &hints, &found);
        if (code != 0) {
            reason = gai_strerror(code);
            continue;
        }
        for (struct addrinfo *t = found; s < 0 && t != NULL; t = t->ai_next) {
            s = listen_on_target(t);
            reason = s < 0 ? strerror(errno) : reason;
        }
        freeaddrinfo(found);
    }
    if (s < 0) {
        return services->fail(
            LAC_ERR_INVALID, "tcp: cannot listen on %s%sport %u: %s",
            address->host, every ? "" : " ", address->port, reason);
    }
    *socket_out = s;
    *port_out = port_of(s);
    return LAC_OK;
}
