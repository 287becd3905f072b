// SPDX-License-Identifier: MIT
// Signals as bytes of a pipe.
#include "cli/process/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

static const int caught[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGPIPE};
enum { SIGNALS = sizeof(caught) / sizeof(caught[0]) };

// A handler has no other way to find the pipe. Set before any handler is.
static int pipe_ends[2] = {-1, -1};
static struct sigaction earlier[SIGNALS];
static bool has_earlier;

static void put_signal(int number)
{
    const int error = errno;
    const unsigned char byte = (unsigned char)number;
    // A full pipe already wakes the reader.
    (void)!write(pipe_ends[1], &byte, 1);
    errno = error;
}

static bool open_ends(void)
{
    for (int i = 0; i < 2 && pipe_ends[0] >= 0; i++) {
        (void)close(pipe_ends[i]);
    }
    if (pipe(pipe_ends) != 0) {
        pipe_ends[0] = pipe_ends[1] = -1;
        return false;
    }
    for (int i = 0; i < 2; i++) {
        (void)fcntl(pipe_ends[i], F_SETFD, FD_CLOEXEC);
        (void)fcntl(pipe_ends[i], F_SETFL, O_NONBLOCK);
    }
    return true;
}

int cli_signals_open(void)
{
    struct sigaction action = {.sa_handler = put_signal};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    action.sa_flags = SA_RESTART;
    (void)sigemptyset(&action.sa_mask);
    if (!open_ends()) {
        return -1;
    }
    for (int i = 0; i < SIGNALS; i++) {
        if (!has_earlier) {
            (void)sigaction(caught[i], NULL, &earlier[i]);
        }
        if (caught[i] == SIGPIPE) {
            (void)sigaction(SIGPIPE, &ignore, NULL);
        } else if (earlier[i].sa_handler != SIG_IGN || caught[i] == SIGCHLD) {
            (void)sigaction(caught[i], &action, NULL);
        }
    }
    has_earlier = true;
    return pipe_ends[0];
}

int cli_signals_next(void)
{
    unsigned char byte;
    return read(pipe_ends[0], &byte, 1) == 1 ? byte : 0;
}

void cli_signals_restore(void)
{
    for (int i = 0; i < SIGNALS && has_earlier; i++) {
        (void)sigaction(caught[i], &earlier[i], NULL);
    }
}
