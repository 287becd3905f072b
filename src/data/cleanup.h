// SPDX-License-Identifier: MIT
// Files that are taken away if a signal ends the program. Threads may each
// have theirs at the same time.
#ifndef LACONIC_DATA_CLEANUP_H
#define LACONIC_DATA_CLEANUP_H

#include <signal.h>

// data_cleanup_begin has `path` removed when SIGINT, SIGTERM or SIGHUP ends the
// program, which it then does as if nothing had caught the signal. A signal
// that is ignored stays so. `path` must live until data_cleanup_end, which
// takes what this returns. Of very many files at once some are not removed.
int data_cleanup_begin(const char *path);

// data_cleanup_end forgets the file; with the last one it puts back what was
// done on a signal.
void data_cleanup_end(int file);

// data_cleanup_hold keeps these signals from this thread while a file is made
// that data_cleanup_begin is to know of; data_cleanup_release lets them come.
void data_cleanup_hold(sigset_t *before_out);
void data_cleanup_release(const sigset_t *before);

#endif
