// SPDX-License-Identifier: MIT
// Natural compression: floats to randomly rounded exponents and back.
// compress/natural.c describes the rounding and the two formats.
#ifndef LACONIC_KERNELS_NATURAL_H
#define LACONIC_KERNELS_NATURAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/draw.h"

enum {
    LACI_NATURAL_TOP = 254,    // the exponent field of the largest floats
    LACI_NATURAL_WINDOW = 127, // how many levels a window has
};

typedef struct laci_natural_kernels {
    // Nine bits: an exponent field a byte, and the signs, eight a byte. Value i
    // is rounded with draw first + i.
    void (*encode)(
        const laci_stream *stream, uint32_t first, const float *x, size_t n,
        uint8_t *exponents, uint8_t *signs);
    void (*decode)(
        const uint8_t *exponents, const uint8_t *signs, float *x, size_t n);
    // y += a * values
    void (*decode_add)(
        const uint8_t *exponents, const uint8_t *signs, float a, float *y,
        size_t n);

    // Eight bits: codes in the window that ends at exponent field `top`, which
    // is at least the field of every value after rounding.
    void (*encode_window)(
        const laci_stream *stream, uint32_t first, uint32_t top, const float *x,
        size_t n, uint8_t *codes);
    void (*decode_window)(
        uint32_t top, const uint8_t *codes, float *x, size_t n);
    void (*decode_window_add)(
        uint32_t top, const uint8_t *codes, float a, float *y, size_t n);

    // The least code that is not zero, signs apart; 255 when all are zero.
    uint32_t (*least_code)(const uint8_t *codes, size_t n);
} laci_natural_kernels;

extern const laci_natural_kernels laci_natural_portable;
extern const laci_natural_kernels laci_natural_avx2;
extern const laci_natural_kernels laci_natural_avx2_plain;
extern const laci_natural_kernels laci_natural_neon;

// laci_natural_least returns the exponent field of the least level of a window.
static inline uint32_t laci_natural_least(uint32_t top)
{
    return top > LACI_NATURAL_WINDOW ? top - LACI_NATURAL_WINDOW + 1 : 1;
}

#endif
