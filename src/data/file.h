// SPDX-License-Identifier: MIT
// Files as bytes in memory, gzipped or not.
#ifndef LACONIC_DATA_FILE_H
#define LACONIC_DATA_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

#ifdef __clang_analyzer__
// The analyzer cannot see the definition: lac_fail returns its first argument,
// which is never LAC_OK.
#define lac_fail(status, ...) ((void)!lac_fail(status, __VA_ARGS__), (status))
#endif

// Bytes, and their name in error messages. The name is borrowed.
typedef struct data_bytes {
    const char *name;
    uint8_t *data;
    size_t len;
} data_bytes;

// data_file_read reads all of `path` into memory; `path` must outlive the
// result. The data is aligned for any type and never NULL, even if the file is
// empty. Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM.
lac_status data_file_read(const char *path, data_bytes *out);

// data_file_read_like does so if the file begins with begin[0..len). Of any
// other file, which may be endless, it reads only that many bytes; the caller
// reports what is wrong with them.
lac_status data_file_read_like(
    const char *path, const void *begin, size_t len, data_bytes *out);

// data_gunzip unpacks gzipped bytes and leaves others as they are. It rejects
// more than `max` bytes, so that a small file cannot fill the memory.
// Fails with LAC_ERR_CORRUPT or LAC_ERR_NOMEM, leaving the bytes as they were.
lac_status data_gunzip(data_bytes *bytes, size_t max);

// data_read_be32 reads a big-endian number.
uint32_t data_read_be32(const uint8_t *in);

// data_bytes_free frees the data.
void data_bytes_free(data_bytes *bytes);

// data_no_memory fails with LAC_ERR_NOMEM.
lac_status data_no_memory(const char *name, size_t len);

// data_empty_path fails with LAC_ERR_INVALID.
lac_status data_empty_path(void);

// data_path_join writes "folder/name" to `path`.
// Fails with LAC_ERR_INVALID if that exceeds DATA_PATH_SIZE.
lac_status data_path_join(char *path, const char *folder, const char *name);

// data_is_file and data_is_folder return whether a path leads to a regular file
// or a folder.
bool data_is_file(const char *path);
bool data_is_folder(const char *path);

// data_is_same_file returns whether two paths lead to the same regular file.
bool data_is_same_file(const char *path, const char *other);

#endif
