// SPDX-License-Identifier: MIT
// The folder of a training run: only one run at a time writes to it, and
// nothing of another run, or of anybody else, is ever written over.
#ifndef LACONIC_CLI_TRAIN_FOLDER_H
#define LACONIC_CLI_TRAIN_FOLDER_H

#include <stdbool.h>

#include <cjson/cJSON.h>

#include <laconic/laconic.h>

enum { CLI_NO_LOCK = -1 };

// cli_train_folder_check tells whether a run with these settings may begin or,
// with `resume`, go on in a folder, which need not be there. It changes
// nothing.
// Fails with LAC_ERR_INVALID or LAC_ERR_CORRUPT.
lac_status cli_train_folder_check(
    const char *folder, const cJSON *settings, bool resume);

// cli_train_folder_take makes the folder if it is not there, keeps other runs
// out of it until cli_train_folder_leave or the end of the program, checks it
// once more, and removes what a killed run left half written. Where a file
// system has no locks it keeps nobody out, and `*lock_out` is CLI_NO_LOCK.
// Fails as the check does, or because another run has the folder.
lac_status cli_train_folder_take(
    const char *folder, const cJSON *settings, bool resume, int *lock_out);

// CLI_NO_LOCK is allowed.
void cli_train_folder_leave(int lock);

#endif
