// SPDX-License-Identifier: MIT
// What the tests of the dithering compressors share.
#ifndef LACONIC_TESTS_DITHER_TEST_H
#define LACONIC_TESTS_DITHER_TEST_H

#include "lac_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

enum { D = 100000, CAP = 4 * D + 64 };

// Large arrays, once.
static float big[D];
static float decoded[D];
static float kept[D];
static uint8_t payload[CAP];
static uint8_t other[CAP];

static const lac_key golden_key = {
    .low = 0x0123456789abcdef, .high = 0xfedcba9876543210};

static const float golden[] = {1,     -2,    0.5f,  -0.5f,  0,      2,
                               -1.5f, 1,     0.25f, -0.75f, 0.125f, -1,
                               0.5f,  -0.0f, 1,     -0.25f, -0.5f};

enum { GOLDEN = sizeof(golden) / sizeof(golden[0]) };

static inline lac_shape shape_of(size_t n)
{
    return (lac_shape){n, 1};
}

static inline lac_compressor *open_in(const char *spec, lac_form form)
{
    lac_compressor *c = NULL;
    assert_ok(lac_compressor_open(&c, spec, form));
    assert_ok(lac_compressor_reserve(c, shape_of(D)));
    return c;
}

static inline lac_compressor *open_plain(const char *spec)
{
    return open_in(spec, LAC_FORM_PLAIN);
}

static inline lac_key key_of(uint64_t round)
{
    return lac_key_make(1, LAC_PURPOSE_COMPRESS, round, lac_scope_worker(0), 0);
}

static inline size_t encode(
    lac_compressor *c, const lac_key *key, const float *x, size_t n)
{
    size_t len = 0;
    assert_ok(lac_compressor_encode(
        c, key, shape_of(n), x, payload, sizeof(payload), &len));
    return len;
}

// Encodes and decodes into `decoded`.
static inline void pass(
    lac_compressor *c, uint64_t round, const float *x, size_t n)
{
    const lac_key key = key_of(round);
    const size_t len = encode(c, &key, x, n);
    assert_ok(
        lac_compressor_decode(c, &key, shape_of(n), payload, len, decoded));
}

static inline void make_normal(float *x, uint32_t n)
{
    const lac_key key =
        lac_key_make(2, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
    for (uint32_t i = 0; i < n; i++) {
        x[i] = lac_key_normal(&key, i);
    }
}

// Every kernel gives the bytes and values of the portable ones, whatever the
// size; `big` is unaligned.
static inline void check_kernels(const char *spec)
{
    static const size_t sizes[] = {1, 2, 7, 31, 2047, 2048, 2049, 10007};
    make_normal(big, D);
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        const size_t n = sizes[k];
        lac_compressor *const c = open_plain(spec);
        pass(c, 3, big + 1, n);
        const size_t len = lac_compressor_bound(c, shape_of(n), 0);
        memcpy(other, payload, len);
        memcpy(kept, decoded, n * sizeof(*kept));
        assert_ok(lac_compressor_use_kernels(c, "portable"));
        pass(c, 3, big + 1, n);
        assert_memory_equal(payload, other, len);
        assert_memory_equal(decoded, kept, n * sizeof(*kept));
        lac_compressor_close(c);
    }
}

static inline void check_decode_add(const char *spec)
{
    enum { n = 5000 };
    const lac_key key = key_of(4);
    lac_compressor *const c = open_plain(spec);
    make_normal(big, n);
    pass(c, 4, big, n);
    memcpy(kept, big, n * sizeof(*big));
    assert_ok(lac_compressor_decode_add(
        c, &key, shape_of(n), payload, lac_compressor_bound(c, shape_of(n), 0),
        0.3f, kept));
    for (size_t i = 0; i < n; i++) {
        const float product = 0.3f * decoded[i];
        decoded[i] = big[i] + product;
    }
    assert_memory_equal(kept, decoded, n * sizeof(*kept));
    lac_compressor_close(c);
}

// Multiplied by a power of two, a tensor has the same codes. The norm is the
// largest magnitude; others are rounded, and not always alike.
static inline void check_scaled(const char *spec, int shift)
{
    const lac_key key = key_of(2);
    lac_compressor *const c = open_plain(spec);
    for (size_t i = 0; i < 300; i++) {
        big[i] = (float)(i % 61) - 30;
    }
    const size_t len = encode(c, &key, big, 300);
    memcpy(other, payload, len);
    for (size_t i = 0; i < 300; i++) {
        big[i] = ldexpf(big[i], shift);
    }
    encode(c, &key, big, 300);
    assert_memory_equal(payload + 4, other + 4, len - 4);
    assert_true(laci_get_f32(payload) == ldexpf(30, shift));
    lac_compressor_close(c);
}

// |decoded - x|^2 / |x|^2, the mean of several rounds.
static inline double mean_error(
    lac_compressor *c, const float *x, size_t n, uint64_t rounds)
{
    double error = 0;
    double square = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        pass(c, round, x, n);
        for (size_t i = 0; i < n; i++) {
            const double e = (double)decoded[i] - (double)x[i];
            error += e * e;
            square += (double)x[i] * (double)x[i];
        }
    }
    return error / square;
}

#endif
