// SPDX-License-Identifier: MIT
#include "collective/number.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "kernels/vector.h"

static void put_f32(uint8_t *out, const void *x, size_t n)
{
    laci_put_floats(out, x, n);
}

static void get_f32(const uint8_t *in, void *x, size_t n)
{
    laci_get_floats(in, x, n);
}

// Whether bytes of a message can be used as floats where they are.
static bool readable(const uint8_t *bytes)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (uintptr_t)bytes % sizeof(float) == 0;
#else
    (void)bytes;
    return false;
#endif
}

static void add_f32(
    const laci_kernels *kernels, const uint8_t *in, void *y, size_t n)
{
    if (readable(in)) {
        kernels->vector->add((const void *)in, y, n);
        return;
    }
    float *const sums = y;
    for (size_t i = 0; i < n; i++) {
        sums[i] += laci_get_f32(in + sizeof(float) * i);
    }
}

static void unify_nan_f32(void *x, size_t n)
{
    float *const values = x;
    for (size_t i = 0; i < n; i++) {
        values[i] = isnan(values[i]) ? NAN : values[i];
    }
}

const laci_number laci_number_f32 = {
    sizeof(float), put_f32, get_f32, add_f32, unify_nan_f32,
};

static void put_f64(uint8_t *out, const void *x, size_t n)
{
    const double *const values = x;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof(bits));
        laci_put_u64(out + sizeof(bits) * i, bits);
    }
}

static double get_one_f64(const uint8_t *in)
{
    const uint64_t bits = laci_get_u64(in);
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static void get_f64(const uint8_t *in, void *x, size_t n)
{
    double *const values = x;
    for (size_t i = 0; i < n; i++) {
        values[i] = get_one_f64(in + sizeof(double) * i);
    }
}

static void add_f64(
    const laci_kernels *kernels, const uint8_t *in, void *y, size_t n)
{
    (void)kernels;
    double *const sums = y;
    for (size_t i = 0; i < n; i++) {
        sums[i] += get_one_f64(in + sizeof(double) * i);
    }
}

static void unify_nan_f64(void *x, size_t n)
{
    double *const values = x;
    for (size_t i = 0; i < n; i++) {
        values[i] = isnan(values[i]) ? (double)NAN : values[i];
    }
}

const laci_number laci_number_f64 = {
    sizeof(double), put_f64, get_f64, add_f64, unify_nan_f64,
};

float *laci_floats_begin(uint8_t *out, float *room)
{
    return readable(out) ? (void *)out : room;
}

void laci_floats_end(uint8_t *out, const float *x, size_t n)
{
    if ((const void *)x != out) {
        laci_put_floats(out, x, n);
    }
}

const float *laci_floats_view(const uint8_t *in, float *room, size_t n)
{
    if (readable(in)) {
        return (const void *)in;
    }
    laci_get_floats(in, room, n);
    return room;
}
