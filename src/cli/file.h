// SPDX-License-Identifier: MIT
// Whole files, in and out. A path goes into the sentence of every failure.
#ifndef LACONIC_CLI_FILE_H
#define LACONIC_CLI_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

// cli_file_read reads all of `path` into memory that the caller frees. It is
// aligned for any type and never NULL, even if the file is empty.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM; `*data_out` is then NULL.
lac_status cli_file_read(const char *path, uint8_t **data_out, size_t *len_out);

// cli_file_write makes data[0..len) the content of `path`. It is written to a
// new file beside it, flushed, and renamed, so that the path holds either the
// old content or the new one and never a part. A path that exists and is no
// regular file (a pipe, a device) is written directly. A link stays, and what
// it points to is written. A signal that ends the program takes the new file
// away.
// Fails with LAC_ERR_INVALID, leaving nothing behind.
lac_status cli_file_write(const char *path, const uint8_t *data, size_t len);

// cli_file_is_stdout tells whether what is written to `path` comes out of the
// standard output, where a report would then get in between.
bool cli_file_is_stdout(const char *path);

#endif
