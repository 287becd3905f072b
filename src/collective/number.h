// SPDX-License-Identifier: MIT
// The types of numbers that can be summed: their bytes in a message, and their
// addition.
#ifndef LACONIC_COLLECTIVE_NUMBER_H
#define LACONIC_COLLECTIVE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

typedef struct laci_number {
    size_t size;
    void (*put)(uint8_t *out, const void *x, size_t n);
    void (*get)(const uint8_t *in, void *x, size_t n);

    // y += x
    void (*add)(const laci_kernels *kernels, const void *x, void *y, size_t n);

    // The same for n numbers in a message.
    void (*add_bytes)(
        const laci_kernels *kernels, const uint8_t *in, void *y, size_t n);

    // Whether n numbers in memory, or in a message, are finite. These and the
    // next three are NULL for integers.
    bool (*finite)(const laci_kernels *kernels, const void *x, size_t n);
    bool (*finite_bytes)(
        const laci_kernels *kernels, const uint8_t *in, size_t n);

    // All NaN become the same one: the sum of two NaNs has the bits of either.
    void (*unify_nan)(void *x, size_t n);

    // All numbers that are not finite become the mark of an overflow, a NaN
    // with bits of its own (finite.h). is_mark returns whether one number in
    // a message is that; NULL where nothing overflows.
    void (*mark)(void *x, size_t n);
    bool (*is_mark)(const uint8_t *in);

    // One number of an array.
    double (*read)(const void *x, size_t i);
    void (*write)(void *x, size_t i, double value);
} laci_number;

extern const laci_number laci_number_f32;
extern const laci_number laci_number_f64;

// Integers in two's complement, whose sums wrap around: callers keep them small
// enough, and bytes of a peer cannot overflow.
extern const laci_number laci_number_i8;
extern const laci_number laci_number_i16;

// Floats from 0 up whose "sum" is the larger one.
extern const laci_number laci_number_max;

// Numbers that are computed in a message, without a copy where the host has the
// byte order of messages. `room` is used elsewhere.
//
// laci_numbers_begin returns where to write numbers for out, which is aligned;
// laci_numbers_end then puts n of them there. laci_numbers_view returns n
// numbers of a message.
void *laci_numbers_begin(const laci_number *type, uint8_t *out, void *room);
void laci_numbers_end(
    const laci_number *type, uint8_t *out, const void *x, size_t n);
const void *laci_numbers_view(
    const laci_number *type, const uint8_t *in, void *room, size_t n);

#endif
