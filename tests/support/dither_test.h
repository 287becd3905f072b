// SPDX-License-Identifier: MIT
// What the tests of the dithering compressors share.
#ifndef LACONIC_TESTS_DITHER_TEST_H
#define LACONIC_TESTS_DITHER_TEST_H

#include "lac_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

enum { D = 100000, CAP = 4 * D + 64, ROUNDS = 10000 };

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

static inline lac_status check(lac_compressor *c, size_t n, size_t len)
{
    return lac_compressor_check(c, &golden_key, shape_of(n), payload, len);
}

// A payload, written down by a program of its own from the definitions in
// kernels/dither.h and compress/dither.h.
typedef struct dither_golden {
    const char *spec;
    size_t len;
    uint8_t bytes[64];
} dither_golden;

static inline void check_golden(const dither_golden *g)
{
    lac_compressor *const c = open_plain(g->spec);
    assert_int_equal(encode(c, &golden_key, golden, GOLDEN), g->len);
    assert_memory_equal(payload, g->bytes, g->len);
    assert_ok(lac_compressor_use_kernels(c, "portable"));
    assert_int_equal(encode(c, &golden_key, golden, GOLDEN), g->len);
    assert_memory_equal(payload, g->bytes, g->len);
    lac_compressor_close(c);
}

// What the codes of five values stand for.
static inline void check_codes(
    const char *spec, const uint8_t in[7], const float expected[5])
{
    lac_compressor *const c = open_plain(spec);
    assert_ok(
        lac_compressor_decode(c, &golden_key, shape_of(5), in, 7, decoded));
    assert_memory_equal(decoded, expected, 5 * sizeof(*decoded));
    lac_compressor_close(c);
}

// The first n values of `big` are levels: they come out as they are.
static inline void check_survival(const char *spec, size_t n)
{
    lac_compressor *const c = open_plain(spec);
    for (uint64_t round = 0; round < 10; round++) {
        pass(c, round, big, n);
        assert_memory_equal(decoded, big, n * sizeof(*big));
    }
    lac_compressor_close(c);
}

static inline void check_zeros(const char *spec)
{
    static const uint8_t zeros[32] = {0};
    const float x[4] = {0, -0.0f, 0, 0};
    lac_compressor *const c = open_plain(spec);
    const size_t len = lac_compressor_bound(c, shape_of(4), 0);
    assert_true(len <= sizeof(zeros));
    pass(c, 1, x, 4);
    assert_memory_equal(payload, zeros, len);
    for (size_t i = 0; i < 4; i++) {
        assert_true(decoded[i] == 0);
    }
    lac_compressor_close(c);
}

// Every kernel gives the bytes and values of the portable ones, whatever the
// size; `big` is unaligned.
static inline void check_kernels(const char *spec)
{
    static const size_t sizes[] = {1, 2, 7, 31, 2047, 2048, 2049, 10007};
    fill_normal(big, D, 2);
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
    fill_normal(big, n, 2);
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

// The mean of each of the golden values over many rounds.
static inline void take_means(const char *spec, double means_out[GOLDEN])
{
    lac_compressor *const c = open_plain(spec);
    memset(means_out, 0, GOLDEN * sizeof(*means_out));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        pass(c, round, golden, GOLDEN);
        for (size_t i = 0; i < GOLDEN; i++) {
            means_out[i] += (double)decoded[i] / ROUNDS;
        }
    }
    lac_compressor_close(c);
}

// The error of D normal values is the paper's, and below what is claimed.
// With levels that are at most w norms apart a squared error is at most w^2,
// so that of a run has a variance of at most w^2 times its mean omega |x|^2;
// relative to that mean and for R runs, a standard deviation of
// w / sqrt(R omega). Four of them, and 1 % for the sample of the table and for
// values that are not quite normal.
static inline void check_error(lac_compressor *c, double omega, double w)
{
    enum { RUNS = 40 };
    fill_normal(big, D, 2);
    const double error = mean_error(c, big, D, RUNS);
    const double noise = w / sqrt(RUNS * omega);
    assert_true(fabs(error / omega - 1) <= 4 * noise + 0.01);
    assert_true(error <= lac_compressor_guarantee(c, shape_of(D)).error);
}

// The plain form is the unbiased one; the contractive one differs in the norms
// at the start of the payload alone.
static inline void check_forms(const char *spec, size_t norms)
{
    enum { n = 3000 };
    const lac_key key = key_of(1);
    lac_compressor *const c = open_plain(spec);
    lac_compressor *const unbiased = open_in(spec, LAC_FORM_UNBIASED);
    lac_compressor *const small = open_in(spec, LAC_FORM_CONTRACTIVE);
    fill_normal(big, n, 2);
    const size_t len = encode(c, &key, big, n);
    memcpy(other, payload, len);
    assert_int_equal(encode(unbiased, &key, big, n), len);
    assert_memory_equal(payload, other, len);
    assert_int_equal(encode(small, &key, big, n), len);
    const double omega = lac_compressor_guarantee(c, shape_of(n)).error;
    for (size_t b = 0; b < norms; b++) {
        const double norm = (double)laci_get_f32(other + 4 * b);
        const double stored = (double)laci_get_f32(payload + 4 * b);
        assert_true(fabs(stored - norm / (1 + omega)) <= 1e-7 * stored);
    }
    assert_memory_equal(
        payload + 4 * norms, other + 4 * norms, len - 4 * norms);
    const lac_guarantee g = lac_compressor_guarantee(small, shape_of(n));
    assert_false(g.unbiased);
    assert_true(fabs(g.error - omega / (1 + omega)) < 1e-12);
    assert_true(mean_error(small, big, n, 20) < g.error);
    lac_compressor_close(small);
    lac_compressor_close(unbiased);
    lac_compressor_close(c);
}

#endif
