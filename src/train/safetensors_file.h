// SPDX-License-Identifier: MIT
// What the writer and the reader of safetensors share, and the reader's steps
// one by one: a file whose numbers decide whether its tensors are wanted.
#ifndef LACONIC_TRAIN_SAFETENSORS_FILE_H
#define LACONIC_TRAIN_SAFETENSORS_FILE_H

#include <stdbool.h>

#include <cjson/cJSON.h>

#include "data/file.h"
#include "train/safetensors.h"

#define TRAIN_METADATA       "__metadata__"
#define TRAIN_HEADER_BEGIN   "{\"" TRAIN_METADATA "\":{\"checksum\":\""
#define TRAIN_FORMAT_VERSION "1"

enum {
    TRAIN_LENGTH_SIZE = 8, // of the header's length
    TRAIN_DIGITS_AT = TRAIN_LENGTH_SIZE + sizeof(TRAIN_HEADER_BEGIN) - 1,
    TRAIN_DIGITS = 16,
    TRAIN_SHOWN_SIZE = 64,
    TRAIN_METADATA_OWN = 3, // checksum, format, laconic
    // A JSON text may take thirty times its size when it is parsed.
    TRAIN_HEADER_MAX = 16 << 20,
};

// train_dtype_name is what the header calls a type.
const char *train_dtype_name(train_dtype dtype);

// train_tensor_prefix is the first part of a name, never NULL.
const char *train_tensor_prefix(const train_tensor *t);

// train_tensor_named tells whether a tensor has this name.
bool train_tensor_named(const train_tensor *t, const char *name);

// train_tensor_bytes counts the bytes of a tensor.
// Fails with LAC_ERR_INVALID if they cannot be addressed; `path` begins the
// sentence.
lac_status train_tensor_bytes(
    const char *path, const train_tensor *t, size_t *bytes_out);

// train_shown writes what may be shown of a text from a file.
const char *train_shown(const char *text, char out[TRAIN_SHOWN_SIZE]);

// train_take_number takes a number from the beginning of *text, which is moved
// on. It has one spelling: digits, the first not 0 unless it is alone.
bool train_take_number(const char **text, uint64_t *out);

// A file in memory that is known to be whole. Its values stand at the end.
typedef struct train_file {
    data_bytes bytes;
    const uint8_t *values;
    size_t values_len;
    cJSON *header;
} train_file;

// train_file_open looks at the checksum and parses the header of `bytes`, which
// belong to the file from then on, whatever comes of it.
// Fails with LAC_ERR_INVALID, LAC_ERR_CORRUPT or LAC_ERR_NOMEM; there is then
// nothing to close.
lac_status train_file_open(train_file *f, data_bytes bytes);
void train_file_close(train_file *f);

// train_file_metadata is the map of texts, never NULL.
const cJSON *train_file_metadata(const train_file *f);

// train_file_number looks up one number.
// Fails with LAC_ERR_INVALID or LAC_ERR_CORRUPT.
lac_status train_file_number(
    const train_file *f, const char *name, uint64_t *value_out);

// train_file_load does what train_safetensors_read does.
lac_status train_file_load(const train_file *f, const train_record *record);

#endif
