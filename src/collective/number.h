// SPDX-License-Identifier: MIT
// The types of numbers that can be summed: their bytes in a message, and their
// addition.
#ifndef LACONIC_COLLECTIVE_NUMBER_H
#define LACONIC_COLLECTIVE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

typedef struct laci_number {
    size_t size;
    void (*put)(uint8_t *out, const void *x, size_t n);
    void (*get)(const uint8_t *in, void *x, size_t n);
    void (*add)(
        const laci_kernels *kernels, const uint8_t *in, void *y, size_t n);

    // The sum of two NaNs has the bits of either; this makes them equal.
    void (*unify_nan)(void *x, size_t n);
} laci_number;

extern const laci_number laci_number_f32;
extern const laci_number laci_number_f64;

// Floats that are computed in a message, without a copy where the host has the
// byte order of messages. `room` is used elsewhere.
//
// laci_floats_begin returns where to write floats for out, which is aligned;
// laci_floats_end then puts n of them there. laci_floats_view returns n floats
// of a message.
float *laci_floats_begin(uint8_t *out, float *room);
void laci_floats_end(uint8_t *out, const float *x, size_t n);
const float *laci_floats_view(const uint8_t *in, float *room, size_t n);

#endif
