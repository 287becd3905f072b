// SPDX-License-Identifier: MIT
#ifndef LACONIC_LAYOUT_H
#define LACONIC_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/status.h>

#ifdef __cplusplus
extern "C" {
#endif

// A model is one flat vector of floats. A layout lists the tensors in it, in
// order: name, rows, columns. A convolution is a matrix of
// out x (in * height * width), a vector has one column.
//
//     lac_tensor tensors[] = {{"weight", {512, 784}}, {"bias", {512, 1}}};
//     lac_layout_open(&layout, tensors, 2);
//     lac_layout_tensor(layout, 1)->offset;        // 401408
//     lac_layout_close(layout);
//
// Memory: the layout copies its arguments. Threads: a layout never changes
// after open, so any number of threads may read it.

/// The maximum number of values of any call; a compressor may accept fewer.
#define LAC_VALUES_MAX (SIZE_MAX / 64)

/// The size of a tensor as a matrix.
typedef struct lac_shape {
    size_t rows;
    size_t cols;
} lac_shape;

/// lac_shape_values returns the number of values, rows times columns.
static inline size_t lac_shape_values(lac_shape shape)
{
    return shape.rows * shape.cols;
}

/// One tensor of a layout.
typedef struct lac_tensor {
    const char *name;
    lac_shape shape;
    size_t offset;      ///< Of its first value in the flat vector; not read by
                        ///< lac_layout_open.
    uint64_t name_hash; ///< lac_name_hash(name); not read by lac_layout_open.
} lac_tensor;

typedef struct lac_layout lac_layout;

/// lac_layout_open makes a layout of `count` tensors, in that order. Names
/// must be unique, not empty, and printable without blanks, commas and #. On
/// failure `*out` is NULL.
/// Fails with LAC_ERR_INVALID (the message names the tensor) or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status
lac_layout_open(lac_layout **out, const lac_tensor *tensors, size_t count);

/// lac_layout_parse makes a layout from text[0..len). Each line describes one
/// tensor: name, rows and columns, separated by blanks or commas. Columns may
/// be omitted and are then 1. A # begins a comment; empty lines are skipped. On
/// failure `*out` is NULL.
/// Fails with LAC_ERR_INVALID (the message names the line) or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status
lac_layout_parse(lac_layout **out, const char *text, size_t len);

/// lac_layout_close releases `layout`. NULL is allowed.
LAC_API void lac_layout_close(lac_layout *layout);

/// lac_layout_count returns the number of tensors.
LAC_API size_t lac_layout_count(const lac_layout *layout);

/// lac_layout_values returns the number of values of all tensors together.
LAC_API size_t lac_layout_values(const lac_layout *layout);

/// lac_layout_tensor returns tensor `index`, which must be below the count.
LAC_API const lac_tensor *lac_layout_tensor(
    const lac_layout *layout, size_t index);

/// lac_layout_find returns the tensor of that name, or NULL.
LAC_API const lac_tensor *lac_layout_find(
    const lac_layout *layout, const char *name);

/// lac_layout_hash returns a hash of the names and shapes of all tensors, in
/// order. Two different layouts collide with probability 2^-64.
LAC_API uint64_t lac_layout_hash(const lac_layout *layout);

#ifdef __cplusplus
}
#endif

#endif
