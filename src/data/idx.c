// SPDX-License-Identifier: MIT
// The idx format of MNIST.
#include "data/idx.h"

enum { TYPE_BYTE = 8, HEADER = 4, DIMENSION = 4, SIDE_MAX = 1 << 12 };

// Checks the header and reads `dimensions` sizes.
static lac_status read_header(
    const data_bytes *bytes, uint32_t dimensions, uint32_t *size_out)
{
    const size_t header = HEADER + (size_t)dimensions * DIMENSION;
    const uint32_t magic = (uint32_t)TYPE_BYTE << 8 | dimensions;
    if (bytes->len < header) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: has %zu bytes, expected at least %zu",
            bytes->name, bytes->len, header);
    }
    if (data_read_be32(bytes->data) != magic) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: begins with 0x%08x, expected 0x%08x",
            bytes->name, (unsigned)data_read_be32(bytes->data),
            (unsigned)magic);
    }
    for (uint32_t i = 0; i < dimensions; i++) {
        size_out[i] = data_read_be32(bytes->data + HEADER + i * DIMENSION);
    }
    return LAC_OK;
}

// Checks that the values fill the rest of the file.
static lac_status idx_check_values(
    const data_bytes *bytes, size_t header, uint64_t values)
{
    if (bytes->len - header != values) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: has %zu bytes after the header, expected %llu", bytes->name,
            bytes->len - header, (unsigned long long)values);
    }
    return LAC_OK;
}

lac_status data_idx_images(const data_bytes *bytes, data_idx *out)
{
    uint32_t size[3] = {0};
    LAC_TRY(read_header(bytes, 3, size));
    if (size[0] == 0 || size[1] == 0 || size[2] == 0 || size[1] > SIDE_MAX ||
        size[2] > SIDE_MAX) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: %u images of %u x %u, expected at least one, with sides of 1 "
            "to %d",
            bytes->name, size[0], size[1], size[2], SIDE_MAX);
    }
    LAC_TRY(idx_check_values(
        bytes, HEADER + 3 * DIMENSION, (uint64_t)size[0] * size[1] * size[2]));
    *out = (data_idx){
        size[0], size[1], size[2], bytes->data + HEADER + 3 * DIMENSION};
    return LAC_OK;
}

lac_status data_idx_labels(
    const data_bytes *bytes, uint32_t classes, data_idx *out)
{
    uint32_t size[1] = {0};
    LAC_TRY(read_header(bytes, 1, size));
    LAC_TRY(idx_check_values(bytes, HEADER + DIMENSION, size[0]));
    const uint8_t *const values = bytes->data + HEADER + DIMENSION;
    for (uint32_t i = 0; i < size[0]; i++) {
        if (values[i] >= classes) {
            return lac_fail(
                LAC_ERR_CORRUPT, "%s: label %u is %u, expected 0 to %u",
                bytes->name, i, values[i], classes - 1);
        }
    }
    *out = (data_idx){size[0], 1, 1, values};
    return LAC_OK;
}
