// SPDX-License-Identifier: MIT
// .lac files: one compressed tensor with all that is needed to decode it.
#ifndef LACONIC_CLI_FILES_LAC_FILE_H
#define LACONIC_CLI_FILES_LAC_FILE_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

#include "cli/files/npy.h"
#include "data/file.h"

enum { CLI_LAC_SPEC_MAX = 1024 };

// What a .lac file holds. `spec` does not end with a NUL.
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

// cli_lac_check_spec tells whether a file can hold this spec.
// Fails with LAC_ERR_CORRUPT.
lac_status cli_lac_check_spec(const char *name, const char *spec, size_t len);

// cli_lac_payload_offset returns where in the file the payload begins.
size_t cli_lac_payload_offset(const cli_lac *lac);

// cli_lac_finish makes a file of a payload that already stands in its place in
// `out`: writes what comes before and after it and returns the length, which
// is the offset plus the payload plus 8. `payload` is not looked at.
size_t cli_lac_finish(const cli_lac *lac, uint8_t *out);

// cli_check_apart fails with LAC_ERR_INVALID where what is read would be
// written over: to compress loses something.
lac_status cli_check_apart(const char *in, const char *out);

// cli_lac_read reads the bytes of a file, to be freed by the caller; of one
// that is plainly no .lac file no more than that needs. Fails with
// LAC_ERR_INVALID or LAC_ERR_NOMEM.
lac_status cli_lac_read(const char *path, data_bytes *out);

// cli_lac_parse looks at a .lac file in memory; the payload itself is left to
// its compressor. Texts and payload of `*out` point into `data`. `name` begins
// the sentence of a failure. It writes `*out` only on success.
// Fails with LAC_ERR_CORRUPT, LAC_ERR_UNSUPPORTED or LAC_ERR_INVALID.
lac_status cli_lac_parse(
    const char *name, const uint8_t *data, size_t len, cli_lac *out);

// cli_lac_open opens and reserves the compressor of a parsed file and has it
// check the payload, so that decoding will succeed. On failure `*out` is NULL.
// Fails like cli_lac_parse or with LAC_ERR_NOMEM.
lac_status cli_lac_open(
    const char *name, const cli_lac *lac, lac_compressor **out);

#endif
