// SPDX-License-Identifier: MIT
// Whole files, in and out.
#include "cli/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cleanup.h"

enum {
    FIRST_ROOM = 1 << 16, // for a pipe, whose size is not known
    WRITE_MOST = 1 << 30, // in one call
    LINKS_MOST = 40,      // one behind the other
    LINK_SIZE = 4096,
    NEW_FILE_MODE = 0666,
    MODE_BITS = 0777,
};

static lac_status system_failed(const char *path, const char *what)
{
    return lac_fail(
        LAC_ERR_INVALID, "%s: cannot %s: %s", path, what, strerror(errno));
}

static lac_status empty_path(void)
{
    return lac_fail(
        LAC_ERR_INVALID, "a path is empty, expected the name of a file");
}

static lac_status no_memory(const char *path, size_t len)
{
    return lac_fail(LAC_ERR_NOMEM, "%s: no memory for %zu bytes", path, len);
}

static ssize_t read_some(int fd, uint8_t *data, size_t room)
{
    ssize_t got;
    do {
        got = read(fd, data, room < WRITE_MOST ? room : WRITE_MOST);
    } while (got < 0 && errno == EINTR);
    return got;
}

// Reads to the end, with room for one byte more than expected so that the end
// is seen without growing.
static lac_status read_all(
    const char *path, int fd, size_t room, uint8_t **data_out, size_t *len_out)
{
    uint8_t *data = malloc(room);
    size_t len = 0;
    while (data != NULL) {
        const ssize_t got = read_some(fd, data + len, room - len);
        if (got < 0) {
            const lac_status status = system_failed(path, "read");
            free(data);
            return status;
        }
        if (got == 0) {
            *data_out = data;
            *len_out = len;
            return LAC_OK;
        }
        len += (size_t)got;
        if (len == room) {
            uint8_t *const more = realloc(data, 2 * room);
            if (more == NULL) {
                free(data);
            }
            data = more;
            room *= 2;
        }
    }
    return no_memory(path, room);
}

lac_status cli_file_read(const char *path, uint8_t **data_out, size_t *len_out)
{
    *data_out = NULL;
    if (*path == '\0') {
        return empty_path();
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return system_failed(path, "open");
    }
    struct stat info;
    const bool sized = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    const size_t room = sized ? (size_t)info.st_size + 1 : FIRST_ROOM;
    const lac_status status = read_all(path, fd, room, data_out, len_out);
    (void)close(fd);
    return status;
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

static lac_status write_directly(
    const char *path, const uint8_t *data, size_t len)
{
    // Behind /dev/stdout may be a file that others have written to.
    const int fd = cli_file_is_stdout(path) ? dup(STDOUT_FILENO)
                                            : open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return system_failed(path, "open for writing");
    }
    lac_status status =
        write_all(fd, data, len) ? LAC_OK : system_failed(path, "write");
    if (close(fd) != 0 && status == LAC_OK) {
        status = system_failed(path, "write");
    }
    return status;
}

static mode_t mode_of_new_file(void)
{
    const mode_t mask = umask(0);
    (void)umask(mask);
    return NEW_FILE_MODE & ~mask;
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

// Fills the new file `name`, open as `fd`, and makes it `target`. `path` is
// what the user calls the target.
static lac_status fill_and_rename(
    const char *path, const char *target, const char *name, int fd, mode_t mode,
    const uint8_t *data, size_t len)
{
    lac_status status = LAC_OK;
    if (!write_all(fd, data, len) || fchmod(fd, mode) != 0 || !flush(fd)) {
        status = system_failed(path, "write");
    }
    if (close(fd) != 0 && status == LAC_OK) {
        status = system_failed(path, "write");
    }
    if (status == LAC_OK && rename(name, target) != 0) {
        status = system_failed(path, "rename a new file to it");
    }
    if (status != LAC_OK) {
        (void)unlink(name);
    }
    return status;
}

static lac_status write_aside(
    const char *path, const char *target, mode_t mode, const uint8_t *data,
    size_t len)
{
    char *const name = name_beside(target, ".laconic-XXXXXX");
    if (name == NULL) {
        return no_memory(path, strlen(path));
    }
    lac_status status = LAC_OK;
    cli_cleanup_hold();
    const int fd = mkstemp(name);
    if (fd < 0) {
        status = system_failed(path, "create a file beside it");
        cli_cleanup_release();
    } else {
        cli_cleanup_begin(name);
        cli_cleanup_release();
        status = fill_and_rename(path, target, name, fd, mode, data, len);
        cli_cleanup_end();
    }
    free(name);
    return status;
}

lac_status cli_file_write(const char *path, const uint8_t *data, size_t len)
{
    struct stat info;
    if (*path == '\0') {
        return empty_path();
    }
    const bool exists = stat(path, &info) == 0;
    if (exists && (!S_ISREG(info.st_mode) || cli_file_is_stdout(path))) {
        return write_directly(path, data, len);
    }
    const mode_t mode = exists ? info.st_mode & MODE_BITS : mode_of_new_file();
    // What a link points to is replaced, not the link.
    char *const target = follow_links(path);
    const lac_status status = target == NULL
                                  ? system_failed(path, "resolve")
                                  : write_aside(path, target, mode, data, len);
    free(target);
    return status;
}

bool cli_file_is_stdout(const char *path)
{
    struct stat file, out;
    return stat(path, &file) == 0 && fstat(STDOUT_FILENO, &out) == 0 &&
           !S_ISCHR(file.st_mode) && file.st_dev == out.st_dev &&
           file.st_ino == out.st_ino;
}
