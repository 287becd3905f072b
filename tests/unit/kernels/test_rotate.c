// SPDX-License-Identifier: MIT
// The kernels of rotations: they are rotations, decode is the transpose, and
// AVX2 gives the bits of the portable code for every size and alignment.
#include "kernels_test.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/rotate.h"

enum { SIZES = 7, ROOM = LACI_ROTATE_MAX + 8 };

static const laci_rotate_kernels *fast(void)
{
    return fast_or_skip()->rotate;
}

static laci_rotation rotation_of(size_t n, uint64_t key)
{
    const lac_key drawn = {key, key + 1, LAC_SCOPE_SHARED};
    return (laci_rotation){
        .stream = laci_stream_of(&drawn),
        .first = 0xfffffff0u + (uint32_t)key, // draws wrap round
        .n = n,
    };
}

static size_t size_of(size_t i)
{
    return (size_t)LACI_ROTATE_MIN << i;
}

static double gain_of(size_t n)
{
    return (double)n / 4 * pow(1.25, 4);
}

static double dot(const float *x, const float *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i] * (double)y[i];
    }
    return sum;
}

// Two vectors keep their scalar product. Each of the 2 log2(n) stages rounds a
// value up to three times, so the product is off by at most about
// 2 * 3 * 24 * 2^-24 of the lengths.
static void rotations_keep_scalar_products(void **state)
{
    (void)state;
    static float x[2][ROOM], y[2][ROOM];
    for (size_t i = 0; i < SIZES; i++) {
        const size_t n = size_of(i);
        const laci_rotation r = rotation_of(n, i);
        for (size_t k = 0; k < 2; k++) {
            fill_normal(x[k], n, 2 * i + k);
            laci_rotate_portable.rotate(&r, x[k], y[k]);
        }
        const double gain = gain_of(n) * gain_of(n);
        const double size = dot(x[0], x[0], n);
        const double tolerance = 2 * 3 * 24 * 0x1p-24 * size;
        assert_true(fabs(dot(y[0], y[0], n) / gain - size) < tolerance);
        assert_true(
            fabs(dot(y[0], y[1], n) / gain - dot(x[0], x[1], n)) < tolerance);
    }
}

// <R x, c> = <x, R^T c>, with the same rounding.
static void decoding_is_the_transpose(void **state)
{
    (void)state;
    static float x[ROOM], y[ROOM], z[ROOM], c[ROOM], work[ROOM];
    static uint8_t codes[ROOM];
    for (size_t i = 0; i < SIZES * LACI_ROTATE_BITS; i++) {
        const unsigned bits = 1 + (unsigned)(i % LACI_ROTATE_BITS);
        const size_t n = size_of(i / LACI_ROTATE_BITS);
        const laci_rotation r = rotation_of(n, i);
        const float step = 0.37f;
        fill_normal(x, n, i);
        fill_normal(y, n, 1000 + i);
        (void)laci_rotate_portable.quantise(bits, 1024, y, n, codes);
        laci_rotate_portable.decode(&r, bits, codes, step, work, z);
        laci_rotate_portable.rotate(&r, x, y);
        for (size_t k = 0; k < n; k++) {
            const unsigned level = codes[k] & ((1u << (bits - 1)) - 1);
            const float centre = (float)laci_centres(bits)[level] / 4096;
            c[k] = codes[k] >> (bits - 1) != 0 ? -centre * step : centre * step;
        }
        const double lengths = sqrt(dot(y, y, n) * dot(c, c, n));
        const double tolerance = 2 * 3 * 24 * 0x1p-24 * lengths;
        assert_true(fabs(dot(y, c, n) - dot(x, z, n)) < tolerance);
    }
}

// A magnitude has the level of the nearest centre, the lower one if it is in
// the middle.
static void codes_are_those_of_the_nearest_centre(void **state)
{
    (void)state;
    enum { N = 1 << 16 };
    static float y[N];
    static uint8_t codes[N];
    for (unsigned bits = 1; bits <= LACI_ROTATE_BITS; bits++) {
        uint64_t products = 0, squares = 0;
        for (int i = 0; i < N; i++) {
            y[i] = (float)(i - N / 2) / 512;
        }
        const laci_rotate_sums sums =
            laci_rotate_portable.quantise(bits, 512, y, N, codes);
        for (int i = 0; i < N; i++) {
            const int value = i - N / 2;
            const int magnitude = abs(value) < 32767 ? abs(value) : 32767;
            unsigned best = 0;
            for (unsigned j = 1; j < 1u << (bits - 1); j++) {
                const int16_t *const centres = laci_centres(bits);
                if (abs(4 * magnitude - centres[j]) <
                    abs(4 * magnitude - centres[best])) {
                    best = j;
                }
            }
            const uint64_t centre = (uint64_t)laci_centres(bits)[best];
            assert_int_equal(
                codes[i], best | (unsigned)(value < 0) << (bits - 1));
            products += (uint64_t)magnitude * centre;
            squares += centre * centre;
        }
        assert_true(sums.products == products && sums.squares == squares);
    }
}

static void fast_kernels_rotate_to_the_same_bits(void **state)
{
    (void)state;
    const laci_rotate_kernels *const kernels = fast();
    static float x[ROOM], expected[ROOM], y[ROOM];
    for (size_t i = 0; i < SIZES * 8; i++) {
        const size_t n = size_of(i / 8), shift = i % 8;
        const laci_rotation r = rotation_of(n, i);
        fill_normal(x + shift, n, i);
        laci_rotate_portable.rotate(&r, x + shift, expected);
        kernels->rotate(&r, x + shift, y + 7 - shift);
        assert_memory_equal(y + 7 - shift, expected, n * sizeof(*y));
    }
}

// Of values up to far beyond the largest magnitude.
static void fast_kernels_quantise_to_the_same_codes(void **state)
{
    (void)state;
    const laci_rotate_kernels *const kernels = fast();
    static const float scales[] = {0, 512, 1024, 20000, 1e7f};
    static float y[ROOM];
    static uint8_t expected[ROOM], codes[ROOM];
    for (size_t i = 0; i < SIZES * LACI_ROTATE_BITS * 5; i++) {
        const unsigned bits = 1 + (unsigned)(i % LACI_ROTATE_BITS);
        const size_t n = size_of(i / LACI_ROTATE_BITS / 5), shift = i % 8;
        const float scale = scales[i / LACI_ROTATE_BITS % 5];
        fill_normal(y + shift, n, i);
        const laci_rotate_sums a =
            laci_rotate_portable.quantise(bits, scale, y + shift, n, expected);
        const laci_rotate_sums b =
            kernels->quantise(bits, scale, y + shift, n, codes + shift);
        assert_memory_equal(codes + shift, expected, n);
        assert_true(a.products == b.products && a.squares == b.squares);
    }
}

static void fast_decodes_to_the_same_bits(void **state)
{
    (void)state;
    const laci_rotate_kernels *const kernels = fast();
    static float work[ROOM], expected[2][ROOM], x[ROOM];
    static uint8_t codes[ROOM];
    for (size_t i = 0; i < SIZES * LACI_ROTATE_BITS * 8; i++) {
        const unsigned bits = 1 + (unsigned)(i % LACI_ROTATE_BITS);
        const size_t shift = i / LACI_ROTATE_BITS % 8;
        const size_t n = size_of(i / LACI_ROTATE_BITS / 8);
        const laci_rotation r = rotation_of(n, i);
        for (size_t k = 0; k < n; k++) {
            const uint32_t draw = laci_draw(&r.stream, (uint32_t)(900 + k));
            codes[k] = (uint8_t)(draw >> (32 - bits));
        }
        laci_rotate_portable.decode(&r, bits, codes, 0.3f, work, expected[0]);
        kernels->decode(&r, bits, codes, 0.3f, work, x + shift);
        assert_memory_equal(x + shift, expected[0], n * sizeof(*x));
        fill_normal(expected[1], n, i);
        memcpy(x + shift, expected[1], n * sizeof(*x));
        laci_rotate_portable.decode_add(
            &r, bits, codes, 0.3f, work, -0.7f, expected[1]);
        kernels->decode_add(&r, bits, codes, 0.3f, work, -0.7f, x + shift);
        assert_memory_equal(x + shift, expected[1], n * sizeof(*x));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rotations_keep_scalar_products),
        cmocka_unit_test(decoding_is_the_transpose),
        cmocka_unit_test(codes_are_those_of_the_nearest_centre),
        cmocka_unit_test(fast_kernels_rotate_to_the_same_bits),
        cmocka_unit_test(fast_kernels_quantise_to_the_same_codes),
        cmocka_unit_test(fast_decodes_to_the_same_bits),
    };
    return cmocka_run_group_tests_name("rotate", tests, NULL, NULL);
}
