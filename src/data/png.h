// SPDX-License-Identifier: MIT
// PNG images of 8-bit red, green and blue without interlacing, the only ones
// that the data sets use.
#ifndef LACONIC_DATA_PNG_H
#define LACONIC_DATA_PNG_H

#include "data/file.h"

enum { DATA_PNG_CHANNELS = 3 };

// data_png_read checks that `bytes` are an image of this size and writes its
// pixels, rows from the top, three bytes each, to `*pixels_out`, which the
// caller frees. Fails with LAC_ERR_CORRUPT or LAC_ERR_NOMEM; `*pixels_out` is
// then NULL.
lac_status data_png_read(
    const data_bytes *bytes, uint32_t width, uint32_t height,
    uint8_t **pixels_out);

#endif
