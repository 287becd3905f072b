// SPDX-License-Identifier: MIT
// Removes files when a signal ends the program. A handler may look at little
// and call little: pointers that are lock-free, unlink and raise.
#include "data/cleanup.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

enum {
    SIGNAL_COUNT = sizeof(signals) / sizeof(signals[0]),
    FILES_MOST = 256,
    NO_FILE = -1,
};

static const char *_Atomic doomed[FILES_MOST];
static atomic_bool ending;

// Who has a file, and what was done on a signal before the first had one.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t files;
static struct sigaction before_files[SIGNAL_COUNT];

// SA_RESETHAND has put the default action back by now, and the signal is held
// back until this returns: raised again, it then ends the program.
static void remove_and_end(int number)
{
    ending = true;
    for (size_t i = 0; i < FILES_MOST; i++) {
        const char *const path = doomed[i];
        if (path != NULL) {
            (void)unlink(path);
        }
    }
    (void)raise(number);
}

// A signal that is ignored, or that somebody else handles, is left alone: it
// does not end the program here.
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = remove_and_end};
    action.sa_flags = (int)SA_RESETHAND;
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        (void)sigaction(signals[i], NULL, &before_files[i]);
        if (before_files[i].sa_handler == SIG_DFL) {
            (void)sigaction(signals[i], &action, NULL);
        }
    }
}

int data_cleanup_begin(const char *path)
{
    int file = NO_FILE;
    (void)pthread_mutex_lock(&lock);
    for (int i = 0; file == NO_FILE && i < FILES_MOST; i++) {
        if (doomed[i] == NULL) {
            doomed[i] = path;
            file = i;
        }
    }
    if (file != NO_FILE && files++ == 0) {
        catch_signals();
    }
    (void)pthread_mutex_unlock(&lock);
    return file;
}

void data_cleanup_end(int file)
{
    if (file == NO_FILE) {
        return;
    }
    (void)pthread_mutex_lock(&lock);
    doomed[file] = NULL;
    if (--files == 0) {
        for (size_t i = 0; i < SIGNAL_COUNT; i++) {
            (void)sigaction(signals[i], &before_files[i], NULL);
        }
    }
    (void)pthread_mutex_unlock(&lock);
    // The handler, in another thread, may have taken the path just before; it
    // has to live until the program ends, and that is now.
    while (ending) {
        (void)pause();
    }
}

void data_cleanup_hold(sigset_t *before_out)
{
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        (void)sigaddset(&set, signals[i]);
    }
    (void)pthread_sigmask(SIG_BLOCK, &set, before_out);
}

void data_cleanup_release(const sigset_t *before)
{
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
}
