// SPDX-License-Identifier: MIT
// Removes a file when a signal ends the program. A handler may look at little
// and call little: one pointer, unlink and raise.
#include "cli/cleanup.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

enum { SIGNAL_COUNT = sizeof(signals) / sizeof(signals[0]) };

static const char *volatile doomed;
static struct sigaction before[SIGNAL_COUNT];
static sigset_t mask_before;

// SA_RESETHAND has put the default action back by now, and the signal is held
// back until this returns: raised again, it then ends the program.
static void remove_and_end(int number)
{
    if (doomed != NULL) {
        (void)unlink(doomed);
    }
    (void)raise(number);
}

void cli_cleanup_begin(const char *path)
{
    struct sigaction action = {.sa_handler = remove_and_end};
    action.sa_flags = (int)SA_RESETHAND;
    (void)sigemptyset(&action.sa_mask);
    doomed = path;
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        (void)sigaction(signals[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) {
            (void)sigaction(signals[i], &action, NULL);
        }
    }
}

void cli_cleanup_end(void)
{
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        (void)sigaction(signals[i], &before[i], NULL);
    }
    doomed = NULL;
}

void cli_cleanup_hold(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        (void)sigaddset(&set, signals[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &set, &mask_before);
}

void cli_cleanup_release(void)
{
    (void)sigprocmask(SIG_SETMASK, &mask_before, NULL);
}
