// SPDX-License-Identifier: MIT
// Folders of runs. The lock is on the folder itself: it leaves no file, and it
// is released when the program ends, however that happens.
#include "cli/train/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/train/manifest.h"
#include "cli/train/seeds.h"
#include "cli/train/settings.h"
#include "data/dataset.h"
#include "data/file.h"
#include "data/output.h"

// Settings that may differ when a run is resumed: its length, where it runs,
// its tests and its output.
static const char *const free_settings[] = {
    "epochs",      "data-dir",   "transport",  "timeout",
    "step-time",   "test-every", "test-limit", "train-objective",
    "differences", "out",        "resume",     "json",
    "config",      "dry-run",    "quiet",      "seeds",
    "threads",     NULL,
};

static bool may_differ(const char *name)
{
    size_t i = 0;
    while (free_settings[i] != NULL && strcmp(name, free_settings[i]) != 0) {
        i++;
    }
    return free_settings[i] != NULL;
}

// Whether the options that were given define a run that can start anew.
static bool defines_run(uint64_t given)
{
    for (size_t i = 0; cli_train_options[i].name != NULL; i++) {
        const char *const name = cli_train_options[i].name;
        if ((given >> i & 1) != 0 &&
            (!may_differ(name) || strcmp(name, "config") == 0)) {
            return true;
        }
    }
    return false;
}

static bool has_file(const char *folder, const char *name)
{
    char path[DATA_PATH_SIZE];
    return data_path_join(path, folder, name) == LAC_OK && data_is_file(path);
}

static bool has_manifest(const char *folder)
{
    return has_file(folder, "manifest.json");
}

bool cli_train_folder_has_seeds(const char *folder)
{
    char path[DATA_PATH_SIZE];
    return !has_manifest(folder) && cli_seeds_manifest(folder, path);
}

lac_status cli_train_folder_resumable(const char *folder, uint64_t given)
{
    if (defines_run(given) || has_manifest(folder) ||
        cli_train_folder_has_seeds(folder)) {
        return LAC_OK;
    }
    return lac_fail(
        LAC_ERR_INVALID,
        "%s: has no run to resume: there is no %s; expected the --out of an "
        "earlier run, or the settings of a new one",
        folder, data_is_folder(folder) ? "manifest.json" : "folder");
}

// Rejects a folder without a manifest that has files which a run would
// overwrite or resume from.
static lac_status check_foreign_files(const char *folder)
{
    static const char *const names[] = {
        "latest", "metrics.jsonl", "differences.jsonl", "model.safetensors"};
    char path[DATA_PATH_SIZE];
    struct stat info;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        LAC_TRY(data_path_join(path, folder, names[i]));
        if (lstat(path, &info) == 0) {
            return lac_fail(
                LAC_ERR_INVALID,
                "%s: exists, but there is no manifest.json of its run; name "
                "another folder with --out",
                path);
        }
    }
    return LAC_OK;
}

lac_status cli_train_folder_check(
    const char *folder, const cJSON *settings, bool resume,
    uint64_t *run_id_out)
{
    cli_manifest_found manifest = {0};
    const size_t len = strlen(folder);
    if (len == 0 || len >= DATA_PATH_SIZE) {
        return lac_fail(
            LAC_ERR_INVALID, "--out has %zu bytes, expected 1 to %d", len,
            DATA_PATH_SIZE - 1);
    }
    const lac_status status = cli_manifest_check(
        folder, cli_train_options, settings, free_settings, &manifest);
    if (manifest.found && !resume && !has_file(folder, "latest")) {
        *run_id_out = 0;
        return LAC_OK; // it ended before it had anything to keep
    }
    if (manifest.found && !resume) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: already holds a run; continue it with --resume, or name "
            "another folder with --out",
            folder);
    }
    *run_id_out = manifest.run_id;
    return status == LAC_OK && !manifest.found ? check_foreign_files(folder)
                                               : status;
}

static lac_status lock_folder(const char *folder, int *lock_out)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *lock_out = CLI_NO_LOCK;
    if (fd < 0) {
        return LAC_OK; // writable, but not readable
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
                     "%s: another run is writing to it; wait until it ends, or "
                     "name another folder with --out",
                     folder)
               : LAC_OK;
}

lac_status cli_train_folder_lock(
    const char *folder, const cJSON *settings, bool resume, int *lock_out,
    uint64_t *run_id_out)
{
    *lock_out = CLI_NO_LOCK;
    LAC_TRY(data_folder_make(folder));
    LAC_TRY(lock_folder(folder, lock_out));
    // Another run may have started, and ended, since the first check.
    LAC_TRY(cli_train_folder_check(folder, settings, resume, run_id_out));
    data_output_sweep(folder);
    return LAC_OK;
}

void cli_train_folder_unlock(int lock)
{
    if (lock != CLI_NO_LOCK) {
        (void)close(lock);
    }
}
