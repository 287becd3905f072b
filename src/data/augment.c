// SPDX-License-Identifier: MIT
// Random crop and flip.
#include "data/augment.h"

#include <stdbool.h>

enum { OFFSETS = 2 * DATA_CROP_PADDING + 1 };

lac_key data_augment_key(uint64_t seed, uint64_t epoch)
{
    return lac_key_make(
        seed, LAC_PURPOSE_SPLIT, epoch, lac_scope_shared(),
        lac_name_hash("augment"));
}

// Writes one row of the crop. `in` is the row it comes from, or NULL for
// padding.
static void write_row(
    const float *in, float blank, int width, int shift, bool mirrored,
    float *out)
{
    for (int x = 0; x < width; x++) {
        const int from = (mirrored ? width - 1 - x : x) + shift;
        out[x] = in != NULL && from >= 0 && from < width ? in[from] : blank;
    }
}

void data_augment(
    const data_info *info, const lac_key *key, uint32_t example,
    const float *in, float *out)
{
    const int height = (int)info->height, width = (int)info->width;
    // The top bit mirrors, the others choose one of 81 offsets.
    const uint32_t draw = lac_key_draw(key, example);
    const bool mirrored = draw >> 31 != 0;
    const uint32_t offset =
        (uint32_t)((uint64_t)(draw << 1 >> 1) * (OFFSETS * OFFSETS) >> 31);
    const int down = (int)(offset / OFFSETS) - DATA_CROP_PADDING;
    const int right = (int)(offset % OFFSETS) - DATA_CROP_PADDING;
    for (uint32_t c = 0; c < info->channels; c++) {
        for (int y = 0; y < height; y++) {
            const int from = y + down;
            write_row(
                from >= 0 && from < height ? in + (ptrdiff_t)from * width
                                           : NULL,
                info->blank[c], width, right, mirrored, out);
            out += width;
        }
        in += (ptrdiff_t)height * width;
    }
}
