// SPDX-License-Identifier: MIT
// Shared by the writer and the reader of safetensors, and the single steps of
// the reader, for files whose numbers decide whether their tensors are loaded.
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
    TRAIN_LENGTH_SIZE = 8, // bytes of the header's length
    TRAIN_DIGITS_AT = TRAIN_LENGTH_SIZE + sizeof(TRAIN_HEADER_BEGIN) - 1,
    TRAIN_DIGITS = 16,
    TRAIN_SHOWN_SIZE = 64,
    TRAIN_METADATA_OWN = 3, // checksum, format, laconic
    // Parsing needs up to thirty times the size of a JSON text.
    TRAIN_HEADER_MAX = 16 << 20,
};

// train_dtype_name returns the name of a type in the header.
const char *train_dtype_name(train_dtype dtype);

// train_tensor_prefix returns the first part of a name, never NULL.
const char *train_tensor_prefix(const train_tensor *t);

// train_tensor_named returns whether a tensor has this name.
bool train_tensor_named(const train_tensor *t, const char *name);

// train_tensor_bytes writes the size of a tensor to `*bytes_out`.
// Fails with LAC_ERR_INVALID if it is too large; the message begins with
// `path`.
lac_status train_tensor_bytes(
    const char *path, const train_tensor *t, size_t *bytes_out);

// train_shown copies a text from a file so that a message may contain it: cut
// short, and without control characters. Returns `out`.
const char *train_shown(const char *text, char out[TRAIN_SHOWN_SIZE]);

// train_take_number reads an integer at *text and moves *text behind it. Only
// one spelling is valid: digits without leading zeros.
bool train_take_number(const char **text, uint64_t *out);

// A file in memory whose checksum is right. Its values are at the end.
typedef struct train_file {
    data_bytes bytes;
    const uint8_t *values;
    size_t values_len;
    cJSON *header;
} train_file;

// train_file_open checks the checksum and parses the header of `bytes`. It
// takes ownership of them, even if it fails. Fails with LAC_ERR_INVALID,
// LAC_ERR_CORRUPT or LAC_ERR_NOMEM; there is then nothing to close.
lac_status train_file_open(train_file *f, data_bytes bytes);
void train_file_close(train_file *f);

// train_file_metadata returns the map of strings, never NULL.
const cJSON *train_file_metadata(const train_file *f);

// train_file_number writes the number of this name to `*value_out`.
// Fails with LAC_ERR_INVALID or LAC_ERR_CORRUPT.
lac_status train_file_number(
    const train_file *f, const char *name, uint64_t *value_out);

// train_file_load fills the data of all tensors and numbers of `record`. The
// file must contain exactly these, with these types and shapes.
// Fails with LAC_ERR_INVALID (the message names the difference) or
// LAC_ERR_CORRUPT, having written nothing.
lac_status train_file_load(const train_file *f, const train_record *record);

#endif
