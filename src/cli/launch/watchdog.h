// SPDX-License-Identifier: MIT
// An end to a call that may never return, such as MPI_Init, which waits for
// processes that never come and cannot be told how long.
#ifndef LACONIC_CLI_LAUNCH_WATCHDOG_H
#define LACONIC_CLI_LAUNCH_WATCHDOG_H

#include <pthread.h>
#include <stdbool.h>

typedef struct cli_watchdog {
    pthread_t thread;
    pthread_mutex_t lock; // for what follows
    pthread_cond_t changed;
    bool over;
    bool running; // there is a thread
    double seconds;
    const char *sentence;
} cli_watchdog;

// cli_watchdog_start ends the program with `sentence` and the code for failure
// unless cli_watchdog_stop is called within so many seconds. Where no thread
// can be had, nobody watches. `w` must stay where it is until then.
void cli_watchdog_start(cli_watchdog *w, double seconds, const char *sentence);
void cli_watchdog_stop(cli_watchdog *w);

#endif
