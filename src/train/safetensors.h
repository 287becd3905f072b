// SPDX-License-Identifier: MIT
// Safetensors files, which PyTorch, NumPy and others can read: the length of a
// JSON header in eight bytes, the header (name, dtype, shape and offsets of
// every tensor, and a map of strings), then the values. Reading executes
// nothing. Our files also have a checksum of the whole file, which detects any
// altered byte.
//
// Our header begins with {"__metadata__":{"checksum":"D", where D is sixteen
// lower-case hexadecimal digits: the XXH3 hash (64 bits) of the whole file with
// '0' in place of each of them. The map continues with "format":"pt", as
// PyTorch writes it, "laconic":"1", and the numbers as decimal text. Spaces
// after the header align the values to 64 bytes. Values are little-endian,
// floats before bytes.
#ifndef LACONIC_TRAIN_SAFETENSORS_H
#define LACONIC_TRAIN_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

typedef enum train_dtype { TRAIN_F32, TRAIN_U8 } train_dtype;

enum { TRAIN_DIMENSIONS_MAX = 4 };

typedef struct train_tensor {
    const char *prefix; // the full name is prefix + name; NULL for none
    const char *name;
    train_dtype dtype;
    size_t dimensions[TRAIN_DIMENSIONS_MAX];
    size_t dimension_count;
    void *data; // owned by the caller
} train_tensor;

// An integer in the metadata, such as the step. Its name must not be format,
// laconic or checksum.
typedef struct train_number {
    const char *name;
    uint64_t *value;
    bool optional; // a file without it can be loaded; the value stays
} train_number;

// A text in the metadata, such as the name of the model.
typedef struct train_text {
    const char *name;
    const char *value;
} train_text;

// The contents of a file. Names of tensors are unique, and so are names of
// numbers and texts. Texts are only written: a file with some can be loaded if
// `has_texts`.
typedef struct train_record {
    const train_tensor *tensors;
    size_t tensor_count;
    const train_number *numbers;
    size_t number_count;
    const train_text *texts;
    size_t text_count;
    bool has_texts;
} train_record;

// train_safetensors_write makes `record` the content of `path`, by way of a
// temporary file that is flushed and renamed.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM, leaving the path as it was.
lac_status train_safetensors_write(
    const char *path, const train_record *record);

#endif
