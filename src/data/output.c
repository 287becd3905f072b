// SPDX-License-Identifier: MIT
// Whole files, written aside and renamed.
#include "data/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/cleanup.h"
#include "data/dataset.h"
#include "data/file.h"

enum {
    WRITE_MOST = 1 << 30, // in one call
    LINKS_MOST = 40,      // one behind the other
    LINK_SIZE = 4096,
    NAME_SIZE = 64,
    NAMES_MOST = 10000, // tried until one is new
    NEW_FILE_MODE = 0666,
    NEW_FOLDER_MODE = 0777,
    MODE_BITS = 0777,
};

static const char aside_begin[] = ".laconic-";

static lac_status system_failed(const char *path, const char *what)
{
    return lac_fail(
        LAC_ERR_INVALID, "%s: cannot %s: %s", path, what, strerror(errno));
}

static bool write_all(int fd, const uint8_t *data, size_t len)
{
    while (len > 0) {
        const ssize_t done =
            write(fd, data, len < WRITE_MOST ? len : WRITE_MOST);
        if (done == 0) {
            errno = EIO; // or this would go on for ever
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

// Not every file system can flush; those that cannot say EINVAL.
static bool flush(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL;
}

lac_status data_folder_flush(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == EACCES) {
        return LAC_OK; // writable, but not for reading, so there is no way
    }
    lac_status status = LAC_OK;
    if (fd < 0 || !flush(fd)) {
        status = system_failed(path, "flush the folder");
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

// "folder/file" and a name become "folder/name", to be freed by the caller.
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
    const lac_status status = data_folder_flush(folder);
    free(folder);
    return status;
}

// Makes one folder; the one above it is there. Whoever made it flushes its
// name: others may be making the same.
static lac_status make_one(const char *path)
{
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
            status = make_one(part);
        }
    }
    return status;
}

// Where the links of `path` end, to be freed by the caller: also if there is
// nothing yet, which realpath does not tell. NULL and errno on failure.
static char *follow_links(const char *path)
{
    char link[LINK_SIZE];
    char *at = name_beside("", path);
    for (int i = 0; at != NULL; i++) {
        const ssize_t len = readlink(at, link, sizeof(link) - 1);
        if (len < 0) {
            return at; // no link, or nothing
        }
        if (i == LINKS_MOST) {
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

bool data_output_is_aside(const char *name)
{
    return strncmp(name, aside_begin, sizeof(aside_begin) - 1) == 0;
}

// Whether the program that gave a file its name while writing it is no more.
static bool is_left(const char *name)
{
    char *end;
    if (!data_output_is_aside(name)) {
        return false;
    }
    const long pid = strtol(name + sizeof(aside_begin) - 1, &end, 10);
    if (pid <= 0 || *end != '-') {
        return false;
    }
    (void)strtoul(end + 1, &end, 10);
    return *end == '\0' && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

void data_output_sweep(const char *folder)
{
    DIR *const names = opendir(folder);
    if (names == NULL) {
        return;
    }
    for (const struct dirent *entry; (entry = readdir(names)) != NULL;) {
        if (is_left(entry->d_name)) {
            (void)unlinkat(dirfd(names), entry->d_name, 0);
        }
    }
    (void)closedir(names);
}

// Makes a file of a name that nothing had, with the number of the process in
// it so that few have to be tried.
static int create_aside(data_output *o, mode_t mode)
{
    for (unsigned i = 0; i < NAMES_MOST; i++) {
        char name[NAME_SIZE];
        (void)snprintf(
            name, sizeof(name), "%s%ld-%u", aside_begin, (long)getpid(), i);
        o->aside = name_beside(o->target, name);
        const int fd =
            o->aside == NULL
                ? -1
                : open(o->aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0) {
            return fd;
        }
        free(o->aside);
        o->aside = NULL;
        if (errno != EEXIST) {
            return -1;
        }
    }
    return -1;
}

// Of a file that is there the mode is kept; a new one has the usual.
static lac_status begin_aside(data_output *o, const struct stat *old)
{
    sigset_t before;
    const mode_t mode = old == NULL ? NEW_FILE_MODE : old->st_mode & MODE_BITS;
    o->target = follow_links(o->path);
    if (o->target == NULL) {
        return system_failed(o->path, "resolve");
    }
    data_cleanup_hold(&before);
    o->fd = create_aside(o, mode);
    const int problem = errno;
    if (o->fd >= 0) {
        o->cleanup = data_cleanup_begin(o->aside);
    }
    data_cleanup_release(&before);
    errno = problem;
    if (o->fd < 0) {
        return system_failed(o->path, "create a file beside it");
    }
    // The mask of the process has been taken off.
    if (old != NULL && fchmod(o->fd, mode) != 0) {
        return system_failed(o->path, "write");
    }
    return LAC_OK;
}

static lac_status begin_directly(data_output *o)
{
    // Behind /dev/stdout may be a file that others have written to.
    o->fd = data_file_is_stdout(o->path) ? dup(STDOUT_FILENO)
                                         : open(o->path, O_WRONLY | O_CLOEXEC);
    return o->fd < 0 ? system_failed(o->path, "open for writing") : LAC_OK;
}

lac_status data_output_begin(data_output *o, const char *path)
{
    struct stat info;
    *o = (data_output){.path = path, .fd = -1};
    if (*path == '\0') {
        return data_empty_path();
    }
    const bool exists = stat(path, &info) == 0;
    const bool directly =
        exists && (!S_ISREG(info.st_mode) || data_file_is_stdout(path));
    const lac_status status =
        directly ? begin_directly(o) : begin_aside(o, exists ? &info : NULL);
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

// Closes the file, and forgets it whether or not that works.
static lac_status close_file(data_output *o)
{
    const int fd = o->fd;
    o->fd = -1;
    return close(fd) == 0 ? LAC_OK : system_failed(o->path, "write");
}

static void forget_aside(data_output *o)
{
    data_cleanup_end(o->cleanup);
    free(o->aside);
    o->aside = NULL;
}

static lac_status rename_aside(data_output *o)
{
    if (rename(o->aside, o->target) != 0) {
        return system_failed(o->path, "rename a new file to it");
    }
    forget_aside(o); // another thread may have a file of this name by now
    return flush_folder_of(o->target);
}

lac_status data_output_commit(data_output *o)
{
    const bool directly = o->aside == NULL;
    lac_status status = LAC_OK;
    if (!directly && !flush(o->fd)) {
        status = system_failed(o->path, "write");
    }
    if (status == LAC_OK) {
        status = close_file(o);
    }
    if (status == LAC_OK && !directly) {
        status = rename_aside(o);
    }
    data_output_abandon(o);
    return status;
}

void data_output_abandon(data_output *o)
{
    if (o->fd >= 0) {
        (void)close(o->fd);
    }
    if (o->aside != NULL) {
        (void)unlink(o->aside);
        forget_aside(o);
    }
    free(o->target);
    *o = (data_output){.fd = -1};
}

lac_status data_file_write(const char *path, const uint8_t *data, size_t len)
{
    data_output o;
    lac_status status = data_output_begin(&o, path);
    if (status == LAC_OK) {
        status = data_output_append(&o, data, len);
    }
    return status == LAC_OK ? data_output_commit(&o) : status;
}

bool data_file_is_stdout(const char *path)
{
    struct stat file, out;
    return stat(path, &file) == 0 && fstat(STDOUT_FILENO, &out) == 0 &&
           !S_ISCHR(file.st_mode) && file.st_dev == out.st_dev &&
           file.st_ino == out.st_ino;
}
