// SPDX-License-Identifier: MIT
#include "collective/number.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "kernels/vector.h"

// The marks of an overflow, see finite.h: quiet NaN with the letters "ov".
static const uint32_t mark_f32_bits = 0x7fc06f76;
static const uint64_t mark_f64_bits = 0x7ff8000000006f76;

// Whether bytes of a message can be used as numbers where they are.
static bool readable(const uint8_t *bytes, size_t size)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (uintptr_t)bytes % size == 0;
#else
    (void)bytes, (void)size;
    return false;
#endif
}

static void put_f32(uint8_t *out, const void *x, size_t n)
{
    laci_put_floats(out, x, n);
}

static void get_f32(const uint8_t *in, void *x, size_t n)
{
    laci_get_floats(in, x, n);
}

static void add_f32(
    const laci_kernels *kernels, const void *x, void *y, size_t n)
{
    kernels->vector->add(x, y, n);
}

static void add_bytes_f32(
    const laci_kernels *kernels, const uint8_t *in, void *y, size_t n)
{
    if (readable(in, sizeof(float))) {
        kernels->vector->add((const void *)in, y, n);
        return;
    }
    float *const sums = y;
    for (size_t i = 0; i < n; i++) {
        sums[i] += laci_get_f32(in + sizeof(float) * i);
    }
}

static bool finite_f32(const laci_kernels *kernels, const void *x, size_t n)
{
    return laci_all_finite(kernels, x, n);
}

static bool finite_bytes_f32(
    const laci_kernels *kernels, const uint8_t *in, size_t n)
{
    return kernels->vector->max_payload(in, n) < LACI_INFINITY_BITS;
}

static void unify_nan_f32(void *x, size_t n)
{
    float *const values = x;
    for (size_t i = 0; i < n; i++) {
        values[i] = isnan(values[i]) ? NAN : values[i];
    }
}

static void mark_f32(void *x, size_t n)
{
    float *const values = x;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i])) {
            values[i] = laci_float_of(mark_f32_bits);
        }
    }
}

static bool is_mark_f32(const uint8_t *in)
{
    return laci_get_u32(in) == mark_f32_bits;
}

static double read_f32(const void *x, size_t i)
{
    return (double)((const float *)x)[i];
}

static void write_f32(void *x, size_t i, double value)
{
    ((float *)x)[i] = (float)value;
}

const laci_number laci_number_f32 = {
    .size = sizeof(float),
    .put = put_f32,
    .get = get_f32,
    .add = add_f32,
    .add_bytes = add_bytes_f32,
    .finite = finite_f32,
    .finite_bytes = finite_bytes_f32,
    .unify_nan = unify_nan_f32,
    .mark = mark_f32,
    .is_mark = is_mark_f32,
    .read = read_f32,
    .write = write_f32,
};

static void put_f64(uint8_t *out, const void *x, size_t n)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(out, x, n * sizeof(double));
#else
    const double *const values = x;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof(bits));
        laci_put_u64(out + sizeof(bits) * i, bits);
    }
#endif
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
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(x, in, n * sizeof(double));
#else
    double *const values = x;
    for (size_t i = 0; i < n; i++) {
        values[i] = get_one_f64(in + sizeof(double) * i);
    }
#endif
}

static void add_f64(
    const laci_kernels *kernels, const void *x, void *y, size_t n)
{
    (void)kernels;
    const double *const values = x;
    double *const sums = y;
    for (size_t i = 0; i < n; i++) {
        sums[i] += values[i];
    }
}

static void add_bytes_f64(
    const laci_kernels *kernels, const uint8_t *in, void *y, size_t n)
{
    if (readable(in, sizeof(double))) {
        add_f64(kernels, in, y, n);
        return;
    }
    double *const sums = y;
    for (size_t i = 0; i < n; i++) {
        sums[i] += get_one_f64(in + sizeof(double) * i);
    }
}

static bool finite_f64(const laci_kernels *kernels, const void *x, size_t n)
{
    (void)kernels;
    const double *const values = x;
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        finite &= isfinite(values[i]) != 0;
    }
    return finite;
}

static bool finite_bytes_f64(
    const laci_kernels *kernels, const uint8_t *in, size_t n)
{
    if (readable(in, sizeof(double))) {
        return finite_f64(kernels, in, n);
    }
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        finite &= isfinite(get_one_f64(in + sizeof(double) * i)) != 0;
    }
    return finite;
}

static void unify_nan_f64(void *x, size_t n)
{
    double *const values = x;
    for (size_t i = 0; i < n; i++) {
        values[i] = isnan(values[i]) ? (double)NAN : values[i];
    }
}

static void mark_f64(void *x, size_t n)
{
    double *const values = x;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i])) {
            memcpy(&values[i], &mark_f64_bits, sizeof(values[i]));
        }
    }
}

static bool is_mark_f64(const uint8_t *in)
{
    return laci_get_u64(in) == mark_f64_bits;
}

static double read_f64(const void *x, size_t i)
{
    return ((const double *)x)[i];
}

static void write_f64(void *x, size_t i, double value)
{
    ((double *)x)[i] = value;
}

const laci_number laci_number_f64 = {
    .size = sizeof(double),
    .put = put_f64,
    .get = get_f64,
    .add = add_f64,
    .add_bytes = add_bytes_f64,
    .finite = finite_f64,
    .finite_bytes = finite_bytes_f64,
    .unify_nan = unify_nan_f64,
    .mark = mark_f64,
    .is_mark = is_mark_f64,
    .read = read_f64,
    .write = write_f64,
};

static void put_i8(uint8_t *out, const void *x, size_t n)
{
    memcpy(out, x, n);
}

static void get_i8(const uint8_t *in, void *x, size_t n)
{
    memcpy(x, in, n);
}

static void add_i8(
    const laci_kernels *kernels, const void *x, void *y, size_t n)
{
    (void)kernels;
    const uint8_t *const values = x;
    uint8_t *const sums = y;
    for (size_t i = 0; i < n; i++) {
        sums[i] = (uint8_t)(sums[i] + values[i]);
    }
}

static void add_bytes_i8(
    const laci_kernels *kernels, const uint8_t *in, void *y, size_t n)
{
    add_i8(kernels, in, y, n);
}

static double read_i8(const void *x, size_t i)
{
    return ((const int8_t *)x)[i];
}

static void write_i8(void *x, size_t i, double value)
{
    ((int8_t *)x)[i] = (int8_t)value;
}

const laci_number laci_number_i8 = {
    .size = sizeof(int8_t),
    .put = put_i8,
    .get = get_i8,
    .add = add_i8,
    .add_bytes = add_bytes_i8,
    .read = read_i8,
    .write = write_i8,
};

static uint16_t get_one_i16(const uint8_t *in)
{
    return (uint16_t)(in[0] | in[1] << 8);
}

static void put_i16(uint8_t *out, const void *x, size_t n)
{
    const uint16_t *const values = x;
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = (uint8_t)values[i];
        out[2 * i + 1] = (uint8_t)(values[i] >> 8);
    }
}

static void get_i16(const uint8_t *in, void *x, size_t n)
{
    uint16_t *const values = x;
    for (size_t i = 0; i < n; i++) {
        values[i] = get_one_i16(in + 2 * i);
    }
}

static void add_i16(
    const laci_kernels *kernels, const void *x, void *y, size_t n)
{
    (void)kernels;
    const uint16_t *const values = x;
    uint16_t *const sums = y;
    for (size_t i = 0; i < n; i++) {
        sums[i] = (uint16_t)(sums[i] + values[i]);
    }
}

static void add_bytes_i16(
    const laci_kernels *kernels, const uint8_t *in, void *y, size_t n)
{
    (void)kernels;
    uint16_t *const sums = y;
    for (size_t i = 0; i < n; i++) {
        sums[i] = (uint16_t)(sums[i] + get_one_i16(in + 2 * i));
    }
}

static double read_i16(const void *x, size_t i)
{
    return ((const int16_t *)x)[i];
}

static void write_i16(void *x, size_t i, double value)
{
    ((int16_t *)x)[i] = (int16_t)value;
}

const laci_number laci_number_i16 = {
    .size = sizeof(int16_t),
    .put = put_i16,
    .get = get_i16,
    .add = add_i16,
    .add_bytes = add_bytes_i16,
    .read = read_i16,
    .write = write_i16,
};

// NaN counts as the largest, so that it is not lost.
static float max_of(float x, float y)
{
    return x <= y || isnan(y) ? y : x;
}

static void add_max(
    const laci_kernels *kernels, const void *x, void *y, size_t n)
{
    (void)kernels;
    const float *const values = x;
    float *const most = y;
    for (size_t i = 0; i < n; i++) {
        most[i] = max_of(values[i], most[i]);
    }
}

static void add_bytes_max(
    const laci_kernels *kernels, const uint8_t *in, void *y, size_t n)
{
    (void)kernels;
    float *const most = y;
    for (size_t i = 0; i < n; i++) {
        most[i] = max_of(laci_get_f32(in + sizeof(float) * i), most[i]);
    }
}

const laci_number laci_number_max = {
    .size = sizeof(float),
    .put = put_f32,
    .get = get_f32,
    .add = add_max,
    .add_bytes = add_bytes_max,
    .finite = finite_f32,
    .finite_bytes = finite_bytes_f32,
    .unify_nan = unify_nan_f32,
    .mark = mark_f32,
    .read = read_f32,
    .write = write_f32,
};

void *laci_numbers_begin(const laci_number *type, uint8_t *out, void *room)
{
    return readable(out, type->size) ? out : room;
}

void laci_numbers_end(
    const laci_number *type, uint8_t *out, const void *x, size_t n)
{
    if (x != out) {
        type->put(out, x, n);
    }
}

const void *laci_numbers_view(
    const laci_number *type, const uint8_t *in, void *room, size_t n)
{
    if (readable(in, type->size)) {
        return in;
    }
    type->get(in, room, n);
    return room;
}
