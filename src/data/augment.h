// SPDX-License-Identifier: MIT
// Small changes to training images that do not change what they show.
#ifndef LACONIC_DATA_AUGMENT_H
#define LACONIC_DATA_AUGMENT_H

#include <laconic/laconic.h>

#include "data/dataset.h"

enum { DATA_CROP_PADDING = 4 };

// data_augment_key is the key for one epoch.
lac_key data_augment_key(uint64_t seed, uint64_t epoch);

// data_augment writes image `in` of the shape of `info` to `out`, which does
// not overlap it: padded by four black pixels on all sides, cut to its old
// size at a random place, and with even odds mirrored left to right. What is
// drawn depends on the key and on `example` alone, its number in the set.
void data_augment(
    const data_info *info, const lac_key *key, uint32_t example,
    const float *in, float *out);

#endif
