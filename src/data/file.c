// SPDX-License-Identifier: MIT
// Reads files, gzipped or not, into memory.
#include "data/file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <zlib.h>

#include "data/dataset.h"

enum {
    FIRST_ROOM = 1 << 16,
    GZIP_WINDOW = 15 + 16, // the largest, with a gzip header
    GZIP_FIRST = 0x1f,
    GZIP_SECOND = 0x8b,
};

uint32_t data_read_be32(const uint8_t *in)
{
    return (uint32_t)in[0] << 24 | (uint32_t)in[1] << 16 |
           (uint32_t)in[2] << 8 | in[3];
}

lac_status data_no_memory(const char *name, size_t len)
{
    return lac_fail(LAC_ERR_NOMEM, "%s: no memory for %zu bytes", name, len);
}

lac_status data_empty_path(void)
{
    return lac_fail(
        LAC_ERR_INVALID, "a path is empty, expected the name of a file");
}

void data_bytes_free(data_bytes *bytes)
{
    free(bytes->data);
    bytes->data = NULL;
    bytes->len = 0;
}

bool data_is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool data_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool data_is_same_file(const char *path, const char *other)
{
    struct stat a, b;
    return stat(path, &a) == 0 && stat(other, &b) == 0 && S_ISREG(a.st_mode) &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

lac_status data_path_join(char *path, const char *folder, const char *name)
{
    const int len = snprintf(path, DATA_PATH_SIZE, "%s/%s", folder, name);
    if (len < 0 || len >= DATA_PATH_SIZE) {
        return lac_fail(
            LAC_ERR_INVALID, "a path has %d bytes, expected below %d", len,
            DATA_PATH_SIZE);
    }
    return LAC_OK;
}

// Makes room for at least one more byte. The size of the file is only a hint,
// because it may change while it is read.
static bool grow_bytes(data_bytes *bytes, size_t *room)
{
    if (bytes->len < *room) {
        return true;
    }
    const size_t more = *room > SIZE_MAX / 2 ? SIZE_MAX : 2 * *room;
    uint8_t *const data = realloc(bytes->data, more);
    if (data == NULL) {
        return false;
    }
    bytes->data = data;
    *room = more;
    return true;
}

static lac_status read_stream(
    FILE *file, size_t room, const void *begin, size_t len, data_bytes *out)
{
    room = room > len ? room : len + 1;
    out->data = malloc(room);
    if (out->data == NULL) {
        return data_no_memory(out->name, room);
    }
    out->len = fread(out->data, 1, len, file);
    if (out->len == len && len > 0 && memcmp(out->data, begin, len) != 0) {
        return LAC_OK;
    }
    size_t got;
    do {
        if (!grow_bytes(out, &room)) {
            return data_no_memory(out->name, room);
        }
        got = fread(out->data + out->len, 1, room - out->len, file);
        out->len += got;
    } while (got > 0);
    return ferror(file) ? lac_fail(
                              LAC_ERR_INVALID, "%s: cannot read: %s", out->name,
                              strerror(errno))
                        : LAC_OK;
}

lac_status data_file_read(const char *path, data_bytes *out)
{
    return data_file_read_like(path, NULL, 0, out);
}

lac_status data_file_read_like(
    const char *path, const void *begin, size_t len, data_bytes *out)
{
    *out = (data_bytes){.name = path};
    if (*path == '\0') {
        return data_empty_path();
    }
    FILE *const file = fopen(path, "rb");
    if (file == NULL) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: cannot open: %s", path, strerror(errno));
    }
    struct stat info;
    const bool sized = fstat(fileno(file), &info) == 0 &&
                       S_ISREG(info.st_mode) && info.st_size >= 0;
    const size_t room = sized ? (size_t)info.st_size + 1 : FIRST_ROOM;
    const lac_status status = read_stream(file, room, begin, len, out);
    (void)fclose(file);
    if (status != LAC_OK) {
        data_bytes_free(out);
    }
    return status;
}

static uInt zlib_size(size_t len)
{
    return len < UINT_MAX ? (uInt)len : UINT_MAX;
}

// Inflates to out->data, which grows to at most `max` + 1 bytes.
static lac_status inflate_all(
    z_stream *stream, const data_bytes *in, size_t max, data_bytes *out)
{
    size_t used = 0, room = in->len < FIRST_ROOM ? FIRST_ROOM : in->len;
    int code = Z_OK;
    out->data = malloc(room);
    while (out->data != NULL && code == Z_OK && out->len <= max) {
        if (!grow_bytes(out, &room)) {
            return data_no_memory(in->name, room);
        }
        const uInt given = zlib_size(in->len - used);
        const uInt space = zlib_size(room - out->len);
        stream->next_in = in->data + used;
        stream->avail_in = given;
        stream->next_out = out->data + out->len;
        stream->avail_out = space;
        code = inflate(stream, Z_NO_FLUSH);
        used += given - stream->avail_in;
        out->len += space - stream->avail_out;
    }
    if (out->data == NULL || code == Z_MEM_ERROR) {
        return data_no_memory(in->name, room);
    }
    if (out->len > max) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: has more than %zu bytes when unpacked, expected no more",
            in->name, max);
    }
    if (code != Z_STREAM_END || used != in->len) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: damaged gzip data after %zu of %zu bytes, expected one whole "
            "stream",
            in->name, used, in->len);
    }
    return LAC_OK;
}

lac_status data_gunzip(data_bytes *bytes, size_t max)
{
    if (bytes->len < 2 || bytes->data[0] != GZIP_FIRST ||
        bytes->data[1] != GZIP_SECOND) {
        return LAC_OK;
    }
    z_stream stream = {0};
    data_bytes out = {.name = bytes->name};
    if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK) {
        return data_no_memory(bytes->name, bytes->len);
    }
    const lac_status status = inflate_all(&stream, bytes, max, &out);
    (void)inflateEnd(&stream);
    if (status != LAC_OK) {
        data_bytes_free(&out);
        return status;
    }
    free(bytes->data);
    *bytes = out;
    return LAC_OK;
}
