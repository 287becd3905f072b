// SPDX-License-Identifier: MIT
// Named tensors in a file that PyTorch, NumPy and others can read: the length
// of a JSON header in eight bytes, the header (name, dtype, shape and place of
// every tensor, and a map of texts), then the values. Reading executes nothing.
// Ours also have a checksum over all of the file, and any altered byte is
// noticed.
//
// Our header begins with {"__metadata__":{"checksum":"D", where D is sixteen
// digits, lower case: XXH3 (64 bits) of the whole file with '0' for each of
// them. The map goes on with "format":"pt", which is what PyTorch writes,
// "laconic":"1", and the numbers as decimal text. Blanks behind the header make
// the values begin at a multiple of 64; they are little-endian, floats before
// bytes.
#ifndef LACONIC_TRAIN_SAFETENSORS_H
#define LACONIC_TRAIN_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

typedef enum train_dtype { TRAIN_F32, TRAIN_U8 } train_dtype;

enum { TRAIN_DIMENSIONS_MAX = 4 };

typedef struct train_tensor {
    const char *prefix; // the name is these two put together; NULL for none
    const char *name;
    train_dtype dtype;
    size_t dimensions[TRAIN_DIMENSIONS_MAX];
    size_t dimension_count;
    void *data; // of the caller
} train_tensor;

// A whole number that goes along, such as the step. Its name is neither format,
// laconic nor checksum.
typedef struct train_number {
    const char *name;
    uint64_t *value;
} train_number;

// What is in a file. No two tensors and no two numbers have the same name.
typedef struct train_record {
    const train_tensor *tensors;
    size_t tensor_count;
    const train_number *numbers;
    size_t number_count;
} train_record;

// train_safetensors_write makes `record` the content of `path`: written aside,
// flushed and renamed. Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM, leaving
// the path as it was.
lac_status train_safetensors_write(
    const char *path, const train_record *record);

// train_safetensors_read fills the data of all tensors and numbers of `record`
// from a file written by train_safetensors_write, which has to have exactly
// these, with these types and shapes.
// Fails with LAC_ERR_INVALID (it cannot be read, or a name, type or shape
// differs: the sentence says which) or LAC_ERR_CORRUPT, having written nothing.
lac_status train_safetensors_read(const char *path, const train_record *record);

#endif
