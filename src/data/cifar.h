// SPDX-License-Identifier: MIT
// The binary batches of CIFAR-10: records of one label and 3 x 32 x 32 pixels,
// all red ones first, then green, then blue.
#ifndef LACONIC_DATA_CIFAR_H
#define LACONIC_DATA_CIFAR_H

#include "data/file.h"

enum {
    DATA_CIFAR_SIDE = 32,
    DATA_CIFAR_CHANNELS = 3,
    DATA_CIFAR_PIXELS = DATA_CIFAR_CHANNELS * DATA_CIFAR_SIDE * DATA_CIFAR_SIDE,
    DATA_CIFAR_RECORD = 1 + DATA_CIFAR_PIXELS,
    DATA_CIFAR_CLASSES = 10,
    DATA_CIFAR_BATCH = 10000, // images in each of the files
    DATA_CIFAR_FILES = 6,     // five for training, one for testing
};

// data_cifar_check writes the number of records in a batch to `*count_out`.
// Fails with LAC_ERR_CORRUPT if there is none, an incomplete one, or a label
// above 9.
lac_status data_cifar_check(const data_bytes *bytes, size_t *count_out);

// data_cifar_name returns "data_batch_1" to "data_batch_5", "test_batch".
const char *data_cifar_name(size_t file);

#endif
