// SPDX-License-Identifier: MIT
// Data augmentation: random crop and flip of training images.
#ifndef LACONIC_DATA_AUGMENT_H
#define LACONIC_DATA_AUGMENT_H

#include <laconic/laconic.h>

#include "data/dataset.h"

enum { DATA_CROP_PADDING = 4 };

// data_augment_key returns the key of an epoch.
lac_key data_augment_key(uint64_t seed, uint64_t epoch);

// data_augment writes image `in` of the shape of `info` to `out`, which must
// not overlap it: padded by four black pixels on all sides, cropped to its size
// at a random offset, and with probability 1/2 mirrored left to right. The
// draws depend only on the key and on `example`, its index in the set.
void data_augment(
    const data_info *info, const lac_key *key, uint32_t example,
    const float *in, float *out);

#endif
