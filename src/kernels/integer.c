// SPDX-License-Identifier: MIT
#include "kernels/integer.h"

#include <math.h>

#include "base/draw.h"

// Rounds x / max * levels. The quotient is at most 1 where |x| is at most max;
// where a worker got another max than the rest, the limits keep it in range.
static int32_t encode_one(const laci_integers *type, float x, double u)
{
    const double levels = type->levels;
    const double y = floor(levels * ((double)x / (double)type->max) + u);
    return (int32_t)fmax(-levels, fmin(levels, y));
}

void laci_integers_encode(
    const laci_integers *type, const lac_key *key, const float *x, void *q,
    size_t n)
{
    const laci_stream stream =
        key == NULL ? (laci_stream){{0}} : laci_stream_of(key);
    uint8_t *const bytes = q;
    uint16_t *const words = q;
    for (size_t i = 0; i < n; i++) {
        const double u =
            key == NULL ? 0.5
                        : (double)laci_draw(&stream, (uint32_t)i) * 0x1p-32;
        const int32_t y = type->max > 0 ? encode_one(type, x[i], u) : 0;
        if (type->size == sizeof(*bytes)) {
            bytes[i] = (uint8_t)y;
        } else {
            words[i] = (uint16_t)y;
        }
    }
}

static double read_one(const laci_integers *type, const void *q, size_t i)
{
    return type->size == 1 ? ((const int8_t *)q)[i] : ((const int16_t *)q)[i];
}

void laci_integers_decode(
    const laci_integers *type, double scale, const void *q, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)(scale * read_one(type, q, i));
    }
}

void laci_integers_subtract(
    const laci_integers *type, double scale, const void *q, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)((double)x[i] - scale * read_one(type, q, i));
    }
}
