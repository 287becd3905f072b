// SPDX-License-Identifier: MIT
// The folder of a training run. Only one run at a time writes to it, and files
// of another run, or of other programs, are never overwritten.
#ifndef LACONIC_CLI_TRAIN_FOLDER_H
#define LACONIC_CLI_TRAIN_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include <laconic/laconic.h>

enum { CLI_NO_LOCK = -1 };

// cli_train_folder_check checks that a run with these settings may start or,
// with `resume`, continue in a folder, which need not exist. It changes
// nothing. It writes the id of the run in the folder to `*run_id_out`; 0: none.
// Fails with LAC_ERR_INVALID or LAC_ERR_CORRUPT.
lac_status cli_train_folder_check(
    const char *folder, const cJSON *settings, bool resume,
    uint64_t *run_id_out);

// cli_train_folder_resumable checks that a folder has a run to continue, or
// runs of seeds, if nothing but --resume was given: settings that define a new
// run are all settings except those that may differ when a run is resumed. Bit
// i of `given` is option i of cli_train_options.
// Fails with LAC_ERR_INVALID.
lac_status cli_train_folder_resumable(const char *folder, uint64_t given);

// cli_train_folder_has_seeds returns whether a folder has runs of seeds and
// none of its own.
bool cli_train_folder_has_seeds(const char *folder);

// cli_train_folder_lock creates the folder if needed, locks it until
// cli_train_folder_unlock or the end of the program, checks it again, and
// removes the partial files of killed runs. Where the file system has no locks,
// other runs are not excluded, and `*lock_out` is CLI_NO_LOCK.
// Fails like the check, or if another run has the lock.
lac_status cli_train_folder_lock(
    const char *folder, const cJSON *settings, bool resume, int *lock_out,
    uint64_t *run_id_out);

// cli_train_folder_unlock releases the lock. CLI_NO_LOCK is allowed.
void cli_train_folder_unlock(int lock);

#endif
