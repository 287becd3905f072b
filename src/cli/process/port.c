// SPDX-License-Identifier: MIT
// The port where the workers of a job find each other.
//
// A port that was found free can be taken by another process before worker 0
// listens on it. Therefore the launcher keeps a socket bound to it, which does
// not listen. The system gives such a port to nobody who asks for any port, but
// lets a second socket bind it by its number if both set SO_REUSEADDR.
#include "cli/process/port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/process/clock.h"

enum { ATTEMPTS = 64, GUESS_FIRST = 20000, GUESS_COUNT = 10000 };

// Binds a socket to a port of the loopback address, and returns it or -1.
static int bind_port(uint16_t port, bool shared, uint16_t *port_out)
{
    const int yes = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t len = sizeof(address);
    const int s = socket(AF_INET, SOCK_STREAM, 0);
    if (s < 0) {
        return -1;
    }
    (void)fcntl(s, F_SETFD, FD_CLOEXEC);
    if (shared) {
        (void)setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    }
    if (bind(s, (const struct sockaddr *)&address, len) != 0 ||
        getsockname(s, (struct sockaddr *)&address, &len) != 0) {
        const int error = errno;
        (void)close(s);
        errno = error;
        return -1;
    }
    *port_out = ntohs(address.sin_port);
    return s;
}

// Programs may use MASTER_PORT themselves: it must be free, but is not kept.
static bool port_is_free(uint16_t port)
{
    uint16_t bound;
    const int s = bind_port(port, false, &bound);
    if (s >= 0) {
        (void)close(s);
    }
    return s >= 0;
}

static lac_status reserve_any(uint16_t *port_out, int *reservation_out)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        uint16_t port;
        const int s = bind_port(0, true, &port);
        if (s >= 0 && port > 1024 && port_is_free((uint16_t)(port - 1))) {
            *port_out = (uint16_t)(port - 1);
            *reservation_out = s;
            return LAC_OK;
        }
        if (s >= 0) {
            (void)close(s);
        }
    }
    return lac_fail(
        LAC_ERR_INVALID,
        "launch: no two free ports in a row in %d attempts; name one with "
        "--port",
        ATTEMPTS);
}

lac_status cli_port_reserve(uint16_t *port_inout, int *reservation_out)
{
    const uint16_t wanted = *port_inout;
    uint16_t bound;
    if (wanted == 0) {
        return reserve_any(port_inout, reservation_out);
    }
    const int s = bind_port((uint16_t)(wanted + 1), true, &bound);
    if (s < 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "launch: port %u, where worker 0 listens, cannot be used: %s",
            wanted + 1U, strerror(errno));
    }
    *reservation_out = s;
    return LAC_OK;
}

uint16_t cli_port_guess(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    const unsigned long mixed =
        (unsigned long)now.tv_nsec / 1000 + 7919 * (unsigned long)getpid();
    return (uint16_t)(GUESS_FIRST + 2 * (mixed % (GUESS_COUNT / 2)));
}
