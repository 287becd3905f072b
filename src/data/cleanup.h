// SPDX-License-Identifier: MIT
// Removes unfinished files when a signal ends the program. Any number of
// threads may have files at the same time.
#ifndef LACONIC_DATA_CLEANUP_H
#define LACONIC_DATA_CLEANUP_H

#include <signal.h>

// data_cleanup_begin registers `path`, which is removed when SIGINT, SIGTERM or
// SIGHUP ends the program; the program still dies of that signal. A signal that
// is ignored or that other code handles is left alone. `path` must live until
// data_cleanup_end, which takes the number that this returns. If very many
// files are registered, some are not removed.
int data_cleanup_begin(const char *path);

// data_cleanup_end unregisters a file. With the last one it restores the
// default action of the signals it had caught.
void data_cleanup_end(int file);

// data_cleanup_hold blocks these signals in this thread, so that none arrives
// between the creation of a file and its registration. data_cleanup_release
// restores the mask that data_cleanup_hold wrote to `before_out`.
void data_cleanup_hold(sigset_t *before_out);
void data_cleanup_release(const sigset_t *before);

#endif
