// SPDX-License-Identifier: MIT
// Files that are written whole or not at all. A path goes into the sentence of
// every failure. Threads may write at the same time, each to a path of its own.
#ifndef LACONIC_DATA_OUTPUT_H
#define LACONIC_DATA_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

// data_file_write makes data[0..len) the content of `path`. It is written to a
// new file beside it, flushed, and renamed, so that the path holds either the
// old content or the new one and never a part. A path that exists and is no
// regular file (a pipe, a device) is written directly. A link stays, and what
// it points to is written. A signal that ends the program takes the new file
// away.
// Fails with LAC_ERR_INVALID, leaving nothing behind.
lac_status data_file_write(const char *path, const uint8_t *data, size_t len);

// The same, piece by piece: after data_output_begin come any number of
// data_output_append and one data_output_commit. Whatever fails ends it, and
// the path is as it was. Only the members' owner looks at them.
typedef struct data_output {
    const char *path; // what the user calls it; borrowed
    char *target;     // where its links end
    char *aside;      // the new file, NULL if the path is written directly
    int fd;
    int cleanup;
} data_output;

// `path` must outlive the output.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM.
lac_status data_output_begin(data_output *o, const char *path);
lac_status data_output_append(data_output *o, const void *data, size_t len);
lac_status data_output_commit(data_output *o);

// data_output_abandon leaves the path as it was.
void data_output_abandon(data_output *o);

// data_output_is_aside tells whether a file has the name that one has while it
// is written; a killed program leaves it.
bool data_output_is_aside(const char *name);

// data_output_sweep removes such files from a folder, of programs that are no
// more. What cannot be removed stays.
void data_output_sweep(const char *folder);

// data_folder_make makes a folder and those above it, so that they last. One
// that is there is as good.
// Fails with LAC_ERR_INVALID.
lac_status data_folder_make(const char *path);

// data_folder_flush makes the names in a folder last, such as one that was
// just made or renamed.
// Fails with LAC_ERR_INVALID.
lac_status data_folder_flush(const char *path);

// data_file_is_stdout tells whether what is written to `path` comes out of the
// standard output, where a report would then get in between.
bool data_file_is_stdout(const char *path);

#endif
