// SPDX-License-Identifier: MIT
// The idx format of MNIST and its kin.
#include "data/idx.h"

enum { TYPE_BYTE = 8, HEAD = 4, DIMENSION = 4, SIDE_MAX = 1 << 12 };

static uint32_t high_first(const uint8_t *in)
{
    return (uint32_t)in[0] << 24 | (uint32_t)in[1] << 16 |
           (uint32_t)in[2] << 8 | in[3];
}

// Checks the head and reads `dimensions` of them.
static lac_status read_head(
    const data_bytes *bytes, uint32_t dimensions, uint32_t *size_out)
{
    const size_t head = HEAD + (size_t)dimensions * DIMENSION;
    const uint32_t magic = (uint32_t)TYPE_BYTE << 8 | dimensions;
    if (bytes->len < head) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: has %zu bytes, expected at least %zu",
            bytes->name, bytes->len, head);
    }
    if (high_first(bytes->data) != magic) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s: begins with 0x%08x, expected 0x%08x",
            bytes->name, (unsigned)high_first(bytes->data), (unsigned)magic);
    }
    for (uint32_t i = 0; i < dimensions; i++) {
        size_out[i] = high_first(bytes->data + HEAD + i * DIMENSION);
    }
    return LAC_OK;
}

// Checks that the values fill the rest; their number fits into 64 bits.
static lac_status check_length(
    const data_bytes *bytes, size_t head, uint64_t values)
{
    if (bytes->len - head != values) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: has %zu bytes after the head, expected %llu as it says",
            bytes->name, bytes->len - head, (unsigned long long)values);
    }
    return LAC_OK;
}

lac_status data_idx_images(const data_bytes *bytes, data_idx *out)
{
    uint32_t size[3] = {0};
    lac_status status = read_head(bytes, 3, size);
    if (status != LAC_OK) {
        return status;
    }
    if (size[0] == 0 || size[1] == 0 || size[2] == 0 || size[1] > SIDE_MAX ||
        size[2] > SIDE_MAX) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: %u images of %u x %u, expected at least one, of sides from 1 "
            "to %d",
            bytes->name, size[0], size[1], size[2], SIDE_MAX);
    }
    status = check_length(
        bytes, HEAD + 3 * DIMENSION, (uint64_t)size[0] * size[1] * size[2]);
    if (status == LAC_OK) {
        *out = (data_idx){
            size[0], size[1], size[2], bytes->data + HEAD + 3 * DIMENSION};
    }
    return status;
}

lac_status data_idx_labels(
    const data_bytes *bytes, uint32_t classes, data_idx *out)
{
    uint32_t size[1] = {0};
    lac_status status = read_head(bytes, 1, size);
    if (status == LAC_OK) {
        status = check_length(bytes, HEAD + DIMENSION, size[0]);
    }
    if (status != LAC_OK) {
        return status;
    }
    const uint8_t *const values = bytes->data + HEAD + DIMENSION;
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
