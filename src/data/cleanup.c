// SPDX-License-Identifier: MIT
// Removes files when a signal ends the program. The handler uses only what is
// safe in one: lock-free pointers, unlink and raise.
#include "data/cleanup.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

enum {
    SIGNAL_COUNT = sizeof(signals) / sizeof(signals[0]),
    FILES_MAX = 256,
    NO_FILE = -1,
};

static const char *_Atomic unfinished[FILES_MAX];
static atomic_bool ending;

// Guards the entries of `unfinished` and their number.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t files;

// SA_RESETHAND has already restored the default action, and the signal is
// blocked until this returns. Raised again, it then ends the program.
static void remove_and_end(int number)
{
    ending = true;
    for (size_t i = 0; i < FILES_MAX; i++) {
        const char *const path = unfinished[i];
        if (path != NULL) {
            (void)unlink(path);
        }
    }
    (void)raise(number);
}

static bool has_handler(int number, void (*handler)(int))
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == handler;
}

// Changes a handler only where it is `from`. A signal that is ignored, or that
// other code handles, does not end the program here, and its handler may be
// replaced or reset (SA_RESETHAND) while a file is open: it is never touched.
static void replace_handlers(void (*from)(int), void (*to)(int))
{
    struct sigaction action = {.sa_handler = to};
    action.sa_flags = to == SIG_DFL ? 0 : (int)SA_RESETHAND;
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        if (has_handler(signals[i], from)) {
            (void)sigaction(signals[i], &action, NULL);
        }
    }
}

int data_cleanup_begin(const char *path)
{
    int file = NO_FILE;
    (void)pthread_mutex_lock(&lock);
    for (int i = 0; file == NO_FILE && i < FILES_MAX; i++) {
        if (unfinished[i] == NULL) {
            unfinished[i] = path;
            file = i;
        }
    }
    if (file != NO_FILE && files++ == 0) {
        replace_handlers(SIG_DFL, remove_and_end);
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
    unfinished[file] = NULL;
    if (--files == 0) {
        replace_handlers(remove_and_end, SIG_DFL);
    }
    (void)pthread_mutex_unlock(&lock);
    // The handler may be reading the path in another thread, which is about to
    // end the program: the path must live until then.
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
