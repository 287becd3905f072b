// SPDX-License-Identifier: MIT
// The idx format of MNIST: two zero bytes, a type (8 for bytes), the number of
// dimensions, each dimension as a big-endian 32-bit number, then the values.
// Only bytes are supported, in one dimension (labels) or three (images).
#ifndef LACONIC_DATA_IDX_H
#define LACONIC_DATA_IDX_H

#include "data/file.h"

// The values, in the bytes that were parsed.
typedef struct data_idx {
    uint32_t count, height, width; // 1 x 1 for labels
    const uint8_t *values;
} data_idx;

// data_idx_images and data_idx_labels parse bytes that are not gzipped.
// Labels must be below `classes`.
// Fail with LAC_ERR_CORRUPT.
lac_status data_idx_images(const data_bytes *bytes, data_idx *out);
lac_status data_idx_labels(
    const data_bytes *bytes, uint32_t classes, data_idx *out);

#endif
