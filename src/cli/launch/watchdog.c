// SPDX-License-Identifier: MIT
// A thread that ends the program when a deadline has passed.
#include "cli/launch/watchdog.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/options/command.h"

static struct timespec deadline_in(double seconds)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    const double whole = floor(fmin(seconds, 1e9));
    t.tv_sec += (time_t)whole;
    t.tv_nsec += (long)(1e9 * (fmin(seconds, 1e9) - whole));
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

static void *watch_deadline(void *argument)
{
    cli_watchdog *const w = argument;
    const struct timespec deadline = deadline_in(w->seconds);
    int waited = 0;
    (void)pthread_mutex_lock(&w->lock);
    while (!w->over && waited != ETIMEDOUT) {
        waited = pthread_cond_timedwait(&w->changed, &w->lock, &deadline);
    }
    const bool over = w->over;
    (void)pthread_mutex_unlock(&w->lock);
    if (!over) {
        (void)fprintf(stderr, "laconic: %s\n", w->message);
        _exit(CLI_FAILED); // exit could wait for a lock of the call that hangs
    }
    return NULL;
}

void cli_watchdog_start(cli_watchdog *w, double seconds, const char *message)
{
    pthread_condattr_t monotonic;
    *w = (cli_watchdog){.seconds = seconds, .message = message};
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&w->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    w->running = pthread_create(&w->thread, NULL, watch_deadline, w) == 0;
}

void cli_watchdog_stop(cli_watchdog *w)
{
    (void)pthread_mutex_lock(&w->lock);
    w->over = true;
    (void)pthread_cond_signal(&w->changed);
    (void)pthread_mutex_unlock(&w->lock);
    if (w->running) {
        (void)pthread_join(w->thread, NULL);
    }
    (void)pthread_cond_destroy(&w->changed);
    (void)pthread_mutex_destroy(&w->lock);
}
