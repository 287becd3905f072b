// SPDX-License-Identifier: MIT
// Folders of runs. The lock is on the folder itself, so it leaves no file, and
// it ends with the program, however that ends.
#include "cli/train/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/train/manifest.h"
#include "data/dataset.h"
#include "data/file.h"
#include "data/output.h"

// What may differ when a run is resumed: how long it is, where it runs, and
// what it prints.
static const char *const free_settings[] = {
    "epochs", "data-dir", "transport", "timeout", "out", "resume", "json", NULL,
};

// What a run would write over, or take up, in a folder that has no manifest.
static lac_status check_strangers(const char *folder)
{
    static const char *const names[] = {
        "latest", "metrics.jsonl", "model.safetensors"};
    char path[DATA_PATH_SIZE];
    struct stat info;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const lac_status status = data_path_join(path, folder, names[i]);
        if (status != LAC_OK) {
            return status;
        }
        if (lstat(path, &info) == 0) {
            return lac_fail(
                LAC_ERR_INVALID,
                "%s: is there, but there is no manifest.json that says of "
                "which run; name another folder with --out",
                path);
        }
    }
    return LAC_OK;
}

lac_status cli_train_folder_check(
    const char *folder, const cJSON *settings, bool resume)
{
    bool found = false;
    const size_t len = strlen(folder);
    if (len == 0 || len >= DATA_PATH_SIZE) {
        return lac_fail(
            LAC_ERR_INVALID, "--out has %zu letters, expected 1 to %d", len,
            DATA_PATH_SIZE - 1);
    }
    const lac_status status =
        cli_manifest_check(folder, settings, free_settings, &found);
    if (found && !resume) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: holds a run already; --resume continues it, or name another "
            "folder with --out",
            folder);
    }
    return status == LAC_OK && !found ? check_strangers(folder) : status;
}

static lac_status lock_folder(const char *folder, int *lock_out)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *lock_out = CLI_NO_LOCK;
    if (fd < 0) {
        return LAC_OK; // may be written to, but not looked at
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        *lock_out = fd;
        return LAC_OK;
    }
    const int problem = errno;
    (void)close(fd);
    return problem == EWOULDBLOCK
               ? lac_fail(
                     LAC_ERR_INVALID,
                     "%s: another run is writing to it; wait for its end, or "
                     "name another folder with --out",
                     folder)
               : LAC_OK;
}

lac_status cli_train_folder_take(
    const char *folder, const cJSON *settings, bool resume, int *lock_out)
{
    *lock_out = CLI_NO_LOCK;
    lac_status status = data_folder_make(folder);
    if (status == LAC_OK) {
        status = lock_folder(folder, lock_out);
    }
    // Another run may have begun, and ended, since the first look.
    if (status == LAC_OK) {
        status = cli_train_folder_check(folder, settings, resume);
    }
    if (status == LAC_OK) {
        data_output_sweep(folder);
    }
    return status;
}

void cli_train_folder_leave(int lock)
{
    if (lock != CLI_NO_LOCK) {
        (void)close(lock);
    }
}
