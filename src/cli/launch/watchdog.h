// SPDX-License-Identifier: MIT
// A timeout for a call that has none, such as MPI_Init, which waits for ever
// for a process that does not start.
#ifndef LACONIC_CLI_LAUNCH_WATCHDOG_H
#define LACONIC_CLI_LAUNCH_WATCHDOG_H

#include <pthread.h>
#include <stdbool.h>

typedef struct cli_watchdog {
    pthread_t thread;
    pthread_mutex_t lock; // protects `over`
    pthread_cond_t changed;
    bool over;
    bool running; // the thread exists
    double seconds;
    const char *message;
} cli_watchdog;

// cli_watchdog_start ends the program with `message` and CLI_FAILED unless
// cli_watchdog_stop is called within so many seconds. If no thread can be
// created, there is no timeout. `w` and `message` must stay valid until then.
void cli_watchdog_start(cli_watchdog *w, double seconds, const char *message);
void cli_watchdog_stop(cli_watchdog *w);

#endif
