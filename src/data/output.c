// SPDX-License-Identifier: MIT
// Whole files: written to a temporary file beside the target, then renamed.
//
// A temporary file is named after its process, `.laconic-PID-N-HOST`, and is
// locked (flock) while it is written. A killed process leaves it; the next
// write on that machine to that folder removes it. A file is taken for
// abandoned only if it is of this machine, no process here has that PID, and no
// process holds its lock.
#include "data/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/cleanup.h"
#include "data/dataset.h"
#include "data/file.h"

enum {
    WRITE_MAX = 1 << 30, // bytes in one call
    LINKS_MAX = 40,      // followed one after the other
    LINK_SIZE = 4096,
    NAME_SIZE = 160,
    HOST_SIZE = 65,
    NAMES_MAX = 10000, // tried until one is unused
    NEW_FILE_MODE = 0666,
    NEW_FOLDER_MODE = 0777,
    MODE_BITS = 0777,
};

static const char temporary_prefix[] = ".laconic-";

static lac_status system_failed(const char *path, const char *what)
{
    return lac_fail(
        LAC_ERR_INVALID, "%s: cannot %s: %s", path, what, strerror(errno));
}

static bool write_all(int fd, const uint8_t *data, size_t len)
{
    while (len > 0) {
        const ssize_t done = write(fd, data, len < WRITE_MAX ? len : WRITE_MAX);
        if (done == 0) {
            errno = EIO; // would repeat for ever
        }
        if (done == 0 || (done < 0 && errno != EINTR)) {
            return false;
        }
        if (done > 0) {
            data += done;
            len -= (size_t)done;
        }
    }
    return true;
}

// File systems that cannot flush return EINVAL.
static bool flush_file(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL;
}

// Flushes the names in a folder, so that a file that was just made or renamed
// survives a power failure.
static lac_status flush_folder(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == EACCES) {
        return LAC_OK; // a folder that cannot be read cannot be flushed
    }
    lac_status status = LAC_OK;
    if (fd < 0 || !flush_file(fd)) {
        status = system_failed(path, "flush the folder");
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

// Returns "folder/name" for the path "folder/file"; the caller frees it.
static char *name_beside(const char *path, const char *name)
{
    const char *const slash = strrchr(path, '/');
    const size_t folder = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    const size_t len = strlen(name);
    char *const joined = malloc(folder + len + 1);
    if (joined != NULL) {
        memcpy(joined, path, folder);
        memcpy(joined + folder, name, len + 1);
    }
    return joined;
}

// Flushes the folder that a path is in.
static lac_status flush_folder_of(const char *path)
{
    char *const folder = name_beside(path, ".");
    if (folder == NULL) {
        return data_no_memory(path, strlen(path));
    }
    const lac_status status = flush_folder(folder);
    free(folder);
    return status;
}

lac_status data_folder_make_one(const char *path)
{
    // Other processes may be making the same folder; the one that succeeds
    // flushes its name.
    if (mkdir(path, NEW_FOLDER_MODE) == 0) {
        return flush_folder_of(path);
    }
    const int problem = errno;
    if (data_is_folder(path)) {
        return LAC_OK;
    }
    errno = problem;
    return problem == EEXIST
               ? lac_fail(LAC_ERR_INVALID, "%s: is not a folder", path)
               : system_failed(path, "make the folder");
}

lac_status data_folder_make(const char *path)
{
    char part[DATA_PATH_SIZE];
    const size_t len = strlen(path);
    if (len == 0 || len >= sizeof(part)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "the path of a folder has %zu bytes, expected 1 to %d", len,
            DATA_PATH_SIZE - 1);
    }
    lac_status status = LAC_OK;
    for (size_t i = 1; i <= len && status == LAC_OK; i++) {
        if (path[i] == '/' || path[i] == '\0') {
            memcpy(part, path, i);
            part[i] = '\0';
            status = data_folder_make_one(part);
        }
    }
    return status;
}

bool data_folder_exists(const char *path)
{
    if (data_is_folder(path)) {
        return true;
    }
    // A network file system may have cached that the path did not exist;
    // opening the folder above it makes the system ask the server again.
    (void)!flush_folder_of(path);
    return data_is_folder(path);
}

// Returns the path that the links of `path` lead to, which need not exist (so
// realpath does not serve); the caller frees it. NULL and errno on failure.
static char *follow_links(const char *path)
{
    char link[LINK_SIZE];
    char *at = name_beside("", path);
    for (int i = 0; at != NULL; i++) {
        const ssize_t len = readlink(at, link, sizeof(link) - 1);
        if (len < 0) {
            return at; // not a link, or missing
        }
        if (i == LINKS_MAX) {
            free(at);
            errno = ELOOP;
            return NULL;
        }
        link[len] = '\0';
        char *const next = name_beside(link[0] == '/' ? "" : at, link);
        free(at);
        at = next;
    }
    return NULL;
}

bool data_output_is_temporary(const char *name)
{
    return strncmp(name, temporary_prefix, sizeof(temporary_prefix) - 1) == 0;
}

static void host_name(char host[HOST_SIZE])
{
    if (gethostname(host, HOST_SIZE) != 0) {
        host[0] = '\0';
    }
    host[HOST_SIZE - 1] = '\0';
}

// Whether a process of this machine made a file, and has ended. Locks alone do
// not show that: on some file systems other machines do not see them.
static bool is_of_dead_process(const char *name)
{
    char *end;
    if (!data_output_is_temporary(name)) {
        return false;
    }
    const long pid = strtol(name + sizeof(temporary_prefix) - 1, &end, 10);
    if (pid <= 0 || *end != '-') {
        return false;
    }
    (void)strtoul(end + 1, &end, 10);
    char host[HOST_SIZE];
    host_name(host);
    return *end == '-' && strcmp(end + 1, host) == 0 &&
           kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

// Whether `name` in this folder still is the open file, and not one that was
// created after another process removed that file.
static bool is_same_file(int folder, const char *name, int fd)
{
    struct stat by_name, by_fd;
    return fstatat(folder, name, &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstat(fd, &by_fd) == 0 && S_ISREG(by_fd.st_mode) &&
           by_name.st_dev == by_fd.st_dev && by_name.st_ino == by_fd.st_ino;
}

// Removes a file unless a process holds its lock.
static void remove_if_unlocked(int folder, const char *name)
{
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const int fd = openat(folder, name, flags);
    if (fd < 0) {
        return;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_same_file(folder, name, fd)) {
        (void)unlinkat(folder, name, 0);
    }
    (void)close(fd);
}

void data_output_sweep(const char *folder)
{
    DIR *const names = opendir(folder);
    if (names == NULL) {
        return;
    }
    for (const struct dirent *entry; (entry = readdir(names)) != NULL;) {
        if (is_of_dead_process(entry->d_name)) {
            remove_if_unlocked(dirfd(names), entry->d_name);
        }
    }
    (void)closedir(names);
}

static void sweep_folder_of(const char *path)
{
    char *const folder = name_beside(path, ".");
    if (folder != NULL) {
        data_output_sweep(folder);
        free(folder);
    }
}

// Locks a new file. Returns false if a sweep had taken it for abandoned before
// it was locked.
static bool lock_new_file(int fd)
{
    struct stat info;
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    return (locked || errno != EWOULDBLOCK) && fstat(fd, &info) == 0 &&
           info.st_nlink > 0;
}

// Creates a file with an unused name and locks it. The PID in the name keeps
// the number of attempts small.
static int create_temporary(data_output *o, mode_t mode)
{
    char host[HOST_SIZE];
    host_name(host);
    for (unsigned i = 0; i < NAMES_MAX; i++) {
        char name[NAME_SIZE];
        (void)snprintf(
            name, sizeof(name), "%s%ld-%u-%s", temporary_prefix, (long)getpid(),
            i, host);
        o->temporary = name_beside(o->target, name);
        if (o->temporary == NULL) {
            return -1;
        }
        const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
        const int fd = open(o->temporary, flags, mode);
        if (fd >= 0 && lock_new_file(fd)) {
            return fd;
        }
        const int problem = fd < 0 ? errno : EEXIST;
        if (fd >= 0) {
            (void)close(fd);
        }
        free(o->temporary);
        o->temporary = NULL;
        errno = problem;
        if (problem != EEXIST) {
            return -1;
        }
    }
    return -1;
}

// Keeps the mode of an existing file, `old`; a new one gets the usual mode.
static lac_status begin_temporary(data_output *o, const struct stat *old)
{
    sigset_t before;
    const mode_t mode = old == NULL ? NEW_FILE_MODE : old->st_mode & MODE_BITS;
    o->target = follow_links(o->path);
    if (o->target == NULL) {
        return system_failed(o->path, "resolve");
    }
    sweep_folder_of(o->target);
    data_cleanup_hold(&before);
    o->fd = create_temporary(o, mode);
    const int problem = errno;
    if (o->fd >= 0) {
        o->cleanup = data_cleanup_begin(o->temporary);
    }
    data_cleanup_release(&before);
    errno = problem;
    if (o->fd < 0) {
        return system_failed(o->path, "create a file in its folder");
    }
    // open has applied the umask.
    if (old != NULL && fchmod(o->fd, mode) != 0) {
        return system_failed(o->path, "write");
    }
    return LAC_OK;
}

static lac_status begin_directly(data_output *o)
{
    // /dev/stdout may be a file that other programs have written to.
    o->fd = data_file_is_stdout(o->path) ? dup(STDOUT_FILENO)
                                         : open(o->path, O_WRONLY | O_CLOEXEC);
    return o->fd < 0 ? system_failed(o->path, "open for writing") : LAC_OK;
}

lac_status data_output_begin(data_output *o, const char *path)
{
    struct stat info;
    *o = (data_output){.path = path, .fd = -1, .lock = -1};
    if (*path == '\0') {
        return data_empty_path();
    }
    const bool exists = stat(path, &info) == 0;
    const bool directly =
        exists && (!S_ISREG(info.st_mode) || data_file_is_stdout(path));
    const lac_status status = directly
                                  ? begin_directly(o)
                                  : begin_temporary(o, exists ? &info : NULL);
    if (status != LAC_OK) {
        data_output_abandon(o);
    }
    return status;
}

lac_status data_output_append(data_output *o, const void *data, size_t len)
{
    if (write_all(o->fd, data, len)) {
        return LAC_OK;
    }
    const lac_status status = system_failed(o->path, "write");
    data_output_abandon(o);
    return status;
}

// Closes the file; its descriptor is gone even if that fails.
static lac_status close_file(data_output *o)
{
    const int fd = o->fd;
    o->fd = -1;
    return close(fd) == 0 ? LAC_OK : system_failed(o->path, "write");
}

static void release_temporary(data_output *o)
{
    data_cleanup_end(o->cleanup);
    free(o->temporary);
    o->temporary = NULL;
}

static lac_status rename_temporary(data_output *o)
{
    if (rename(o->temporary, o->target) != 0) {
        return system_failed(o->path, "rename a new file to it");
    }
    release_temporary(o); // another thread may reuse the name from here on
    return flush_folder_of(o->target);
}

static lac_status commit_temporary(data_output *o)
{
    if (!flush_file(o->fd)) {
        return system_failed(o->path, "write");
    }
    // Keeps the lock until the rename.
    o->lock = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
    if (o->lock < 0) {
        return system_failed(o->path, "write");
    }
    LAC_TRY(close_file(o));
    return rename_temporary(o);
}

lac_status data_output_commit(data_output *o)
{
    const lac_status status =
        o->temporary == NULL ? close_file(o) : commit_temporary(o);
    data_output_abandon(o);
    return status;
}

void data_output_abandon(data_output *o)
{
    if (o->fd >= 0) {
        (void)close(o->fd);
    }
    if (o->temporary != NULL) {
        (void)unlink(o->temporary);
        release_temporary(o);
    }
    if (o->lock >= 0) {
        (void)close(o->lock);
    }
    free(o->target);
    *o = (data_output){.fd = -1, .lock = -1};
}

lac_status data_file_write(const char *path, const uint8_t *data, size_t len)
{
    data_output o;
    LAC_TRY(data_output_begin(&o, path));
    LAC_TRY(data_output_append(&o, data, len));
    return data_output_commit(&o);
}

bool data_file_is_stdout(const char *path)
{
    struct stat file, out;
    return stat(path, &file) == 0 && fstat(STDOUT_FILENO, &out) == 0 &&
           !S_ISCHR(file.st_mode) && file.st_dev == out.st_dev &&
           file.st_ino == out.st_ino;
}
