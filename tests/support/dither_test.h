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

static inline void make_normal(float *x, uint32_t n)
{
    const lac_key key =
        lac_key_make(2, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
    for (uint32_t i = 0; i < n; i++) {
        x[i] = lac_key_normal(&key, i);
    }
}

#endif
