// SPDX-License-Identifier: MIT
// Files that are written whole or not at all. Every error message begins with
// the path. Threads may write at the same time, each to its own path.
#ifndef LACONIC_DATA_OUTPUT_H
#define LACONIC_DATA_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

// data_file_write makes data[0..len) the content of `path`. It writes a
// temporary file beside it, flushes it and renames it, so that the path holds
// either the old or the new content, never a part. An existing path that is not
// a regular file (a pipe, a device) is written directly. A link stays a link,
// and the file it leads to is written. A signal that ends the program removes
// the temporary file; one that a killed program left in the same folder is
// removed as well.
// Fails with LAC_ERR_INVALID, leaving nothing behind.
lac_status data_file_write(const char *path, const uint8_t *data, size_t len);

// The same in pieces: data_output_begin, any number of data_output_append, then
// data_output_commit. A failure of any of them ends the write and leaves the
// path as it was. The members are private.
typedef struct data_output {
    const char *path; // as the user wrote it; borrowed
    char *target;     // where its links lead
    char *temporary;  // the new file; NULL if the path is written directly
    int fd;
    int lock; // a duplicate of fd that keeps the file locked; -1 if none
    int cleanup;
} data_output;

// data_output_begin opens the output. `path` must outlive it.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM.
lac_status data_output_begin(data_output *o, const char *path);
lac_status data_output_append(data_output *o, const void *data, size_t len);
lac_status data_output_commit(data_output *o);

// data_output_abandon ends a write and leaves the path as it was.
void data_output_abandon(data_output *o);

// data_output_is_temporary returns whether `name` is that of a temporary file.
bool data_output_is_temporary(const char *name);

// data_output_sweep removes the temporary files that killed programs left in a
// folder. It ignores what it cannot remove.
void data_output_sweep(const char *folder);

// data_folder_make makes a folder and its parents, and flushes their names. An
// existing folder is not an error.
// Fails with LAC_ERR_INVALID.
lac_status data_folder_make(const char *path);

// data_folder_make_one does the same without the parents.
lac_status data_folder_make_one(const char *path);

// data_folder_exists returns whether a path is a folder. Unlike data_is_folder
// it finds one that another machine has just made.
bool data_folder_exists(const char *path);

// data_file_is_stdout returns whether writing to `path` writes to the standard
// output, where a report would mix with it.
bool data_file_is_stdout(const char *path);

#endif
