// SPDX-License-Identifier: MIT
// The binary batches of CIFAR-10.
#include "data/cifar.h"

lac_status data_cifar_check(const data_bytes *bytes, size_t *count_out)
{
    const size_t count = bytes->len / DATA_CIFAR_RECORD;
    if (count == 0 || bytes->len % DATA_CIFAR_RECORD != 0) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "%s: has %zu bytes, expected a multiple of %d and at least one "
            "image",
            bytes->name, bytes->len, DATA_CIFAR_RECORD);
    }
    for (size_t i = 0; i < count; i++) {
        const uint8_t label = bytes->data[i * DATA_CIFAR_RECORD];
        if (label >= DATA_CIFAR_CLASSES) {
            return lac_fail(
                LAC_ERR_CORRUPT, "%s: label %zu is %u, expected 0 to %d",
                bytes->name, i, label, DATA_CIFAR_CLASSES - 1);
        }
    }
    *count_out = count;
    return LAC_OK;
}

const char *data_cifar_name(size_t file)
{
    static const char *const names[DATA_CIFAR_FILES] = {
        "data_batch_1", "data_batch_2", "data_batch_3",
        "data_batch_4", "data_batch_5", "test_batch"};
    return names[file];
}
