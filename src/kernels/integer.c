// SPDX-License-Identifier: MIT
#include "kernels/integer.h"

#include <math.h>

// Rounds x * step. It is within the limits where |x| is at most max; where a
// worker got another max than the rest, they keep it in range.
static int32_t encode_one(double step, double levels, float x, double u)
{
    const double y = floor((double)x * step + u);
    return (int32_t)fmax(-levels, fmin(levels, y));
}

static void integer_encode(
    const laci_integers *type, const laci_stream *stream, uint32_t first,
    const float *x, void *q, size_t n)
{
    const double levels = type->levels;
    const double step = type->max > 0 ? levels / (double)type->max : 0;
    uint8_t *const bytes = q;
    uint16_t *const words = q;
    for (size_t i = 0; i < n; i++) {
        const double u =
            stream == NULL
                ? 0.5
                : (double)laci_draw(stream, first + (uint32_t)i) * 0x1p-32;
        const int32_t y = encode_one(step, levels, x[i], u);
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

static void integer_decode(
    const laci_integers *type, double scale, const void *q, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)(scale * read_one(type, q, i));
    }
}

static void integer_subtract(
    const laci_integers *type, double scale, const void *q, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)((double)x[i] - scale * read_one(type, q, i));
    }
}

const laci_integer_kernels laci_integer_portable = {
    .encode = integer_encode,
    .decode = integer_decode,
    .subtract = integer_subtract,
};
