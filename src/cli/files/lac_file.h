// SPDX-License-Identifier: MIT
// .lac files: one compressed tensor with everything needed to decode it.
#ifndef LACONIC_CLI_FILES_LAC_FILE_H
#define LACONIC_CLI_FILES_LAC_FILE_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

#include "cli/files/npy.h"
#include "data/file.h"

enum { CLI_LAC_SPEC_MAX = 1024 };

// The content of a .lac file. `spec` does not end with a NUL.
typedef struct cli_lac {
    uint32_t wire_id;
    lac_form form;
    lac_key key;
    cli_dimensions dimensions;
    lac_shape shape; // of the dimensions
    const char *spec;
    size_t spec_len; // in [1, CLI_LAC_SPEC_MAX]
    const uint8_t *payload;
    size_t payload_len;
} cli_lac;

// cli_lac_key returns the key that `encode` uses for this seed.
lac_key cli_lac_key(uint64_t seed);

// cli_lac_check_spec checks that a file can hold this spec.
// Fails with LAC_ERR_CORRUPT.
lac_status cli_lac_check_spec(const char *name, const char *spec, size_t len);

// cli_lac_payload_offset returns the position of the payload in the file.
size_t cli_lac_payload_offset(const cli_lac *lac);

// cli_lac_finish writes the header and the checksum around a payload that is
// already in its place in `out`. Returns the length of the file: the offset
// plus the payload plus 8. The member `payload` is not used.
size_t cli_lac_finish(const cli_lac *lac, uint8_t *out);

// cli_check_apart fails with LAC_ERR_INVALID if the output would overwrite the
// input, which lossy compression cannot restore.
lac_status cli_check_apart(const char *in, const char *out);

// cli_lac_read reads a file, whose bytes the caller frees. It stops early if
// the file does not begin like a .lac file. Fails with LAC_ERR_INVALID or
// LAC_ERR_NOMEM.
lac_status cli_lac_read(const char *path, data_bytes *out);

// cli_lac_parse checks and parses a .lac file in memory, except the payload
// itself. `spec` and `payload` of `*out` point into `data`. `name` begins every
// error message. `*out` is written only on success.
// Fails with LAC_ERR_CORRUPT, LAC_ERR_UNSUPPORTED or LAC_ERR_INVALID.
lac_status cli_lac_parse(
    const char *name, const uint8_t *data, size_t len, cli_lac *out);

// cli_lac_open opens and reserves the compressor of a parsed file and checks
// the payload with it, so that decoding succeeds. On failure `*out` is NULL.
// Fails like cli_lac_parse or with LAC_ERR_NOMEM.
lac_status cli_lac_open(
    const char *name, const cli_lac *lac, lac_compressor **out);

#endif
