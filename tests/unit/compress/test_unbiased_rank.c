// SPDX-License-Identifier: MIT
// Unbiased low rank: its mean and its error are those of the formula, payloads
// under one key add up, and the key is sent only to who cannot derive it.
#include "compressed.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"

enum {
    ROWS = 4,
    COLS = 6,
    VALUES = ROWS * COLS,
    CAP = 4 * VALUES + 16,
    DRAWS = 20000,
    RANK = 2,
};

static const lac_shape shape = {ROWS, COLS};

static lac_key key_of(uint64_t round, lac_scope scope)
{
    return lac_key_make(1, LAC_PURPOSE_COMPRESS, round, scope, 0);
}

static double row_square(const float *x, size_t row)
{
    double sum = 0;
    for (size_t k = 0; k < COLS; k++) {
        sum += (double)x[row * COLS + k] * (double)x[row * COLS + k];
    }
    return sum;
}

// With G = U U^T and a row x of M, value k of x G has the variance
// (|x|^2 + x_k^2 (m - 2)) / r, where m, the fourth moment, is at most 3. Five
// standard deviations of the mean of all draws.
static void the_mean_is_the_matrix(void **state)
{
    (void)state;
    lac_compressor *const c =
        open_for("unbiased-rank:2", LAC_FORM_UNBIASED, shape);
    float x[VALUES], y[VALUES];
    double mean[VALUES] = {0};
    fill_normal(x, VALUES, 3);
    for (uint64_t k = 0; k < DRAWS; k++) {
        const lac_key key = key_of(k, lac_scope_shared());
        compress_with(c, &key, shape, x, y);
        for (size_t i = 0; i < VALUES; i++) {
            mean[i] += (double)y[i] / DRAWS;
        }
    }
    for (size_t i = 0; i < VALUES; i++) {
        const double own = (double)x[i] * (double)x[i];
        const double variance = (row_square(x, i / COLS) + own) / RANK;
        assert_true(fabs(mean[i] - (double)x[i]) < 5 * sqrt(variance / DRAWS));
    }
    lac_compressor_close(c);
}

// E|C(M) - M|^2 = |M|^2 (cols + m - 2) / r with the fourth moment m = 2.9 of a
// sum of twelve uniform numbers. Five standard errors, which the draws show
// themselves: about 4 %.
static void the_error_is_that_of_the_formula(void **state)
{
    (void)state;
    static const char *const specs[] = {"unbiased-rank", "unbiased-rank:3"};
    static const double ranks[] = {1, 3};
    for (size_t s = 0; s < 2; s++) {
        lac_compressor *const c = open_for(specs[s], LAC_FORM_UNBIASED, shape);
        float x[VALUES], y[VALUES];
        double norm = 0, sum = 0, squares = 0;
        fill_normal(x, VALUES, 4);
        for (size_t i = 0; i < ROWS; i++) {
            norm += row_square(x, i);
        }
        for (uint64_t k = 0; k < DRAWS; k++) {
            const lac_key key = key_of(k, lac_scope_shared());
            double error = 0;
            compress_with(c, &key, shape, x, y);
            for (size_t i = 0; i < VALUES; i++) {
                const double d = (double)y[i] - (double)x[i];
                error += d * d / norm;
            }
            sum += error;
            squares += error * error;
        }
        const double mean = sum / DRAWS;
        const double spread = sqrt((squares / DRAWS - mean * mean) / DRAWS);
        const double expected = (COLS + 0.9) / ranks[s];
        print_message("%g of %g, spread %g\n", mean, expected, spread);
        assert_true(fabs(mean - expected) < 5 * spread);
        assert_true(spread < 0.02 * expected);
        const lac_guarantee g = lac_compressor_guarantee(c, shape);
        assert_true(g.unbiased);
        assert_true(fabs(g.error - (COLS + 1) / ranks[s]) < 1e-12);
        lac_compressor_close(c);
    }
}

// The same draws, scaled by 1 / (1 + omega).
static void the_contractive_form_is_scaled(void **state)
{
    (void)state;
    lac_compressor *const unbiased =
        open_for("unbiased-rank:2", LAC_FORM_UNBIASED, shape);
    lac_compressor *const scaled =
        open_for("unbiased-rank:2", LAC_FORM_CONTRACTIVE, shape);
    const double omega = (COLS + 1) / (double)RANK;
    const lac_key key = key_of(7, lac_scope_shared());
    float x[VALUES], y[VALUES], z[VALUES];
    fill_normal(x, VALUES, 5);
    compress_with(unbiased, &key, shape, x, y);
    compress_with(scaled, &key, shape, x, z);
    for (size_t i = 0; i < VALUES; i++) {
        const double expected = (double)y[i] / (1 + omega);
        assert_true(fabs((double)z[i] - expected) < 1e-6);
    }
    const lac_guarantee g = lac_compressor_guarantee(scaled, shape);
    assert_false(g.unbiased);
    assert_true(fabs(g.error - omega / (1 + omega)) < 1e-12);
    lac_compressor_close(unbiased);
    lac_compressor_close(scaled);
}

// A control: as many values of random-k have the error cols / r - 1, below
// (cols + 1) / r for every rank.
static void random_values_of_the_same_size_are_better(void **state)
{
    (void)state;
    static const char *const ranked[] = {
        "unbiased-rank:1", "unbiased-rank:2", "unbiased-rank:3"};
    static const char *const chosen[] = {
        "random-k:0.16666667", "random-k:0.33333334", "random-k:0.5"};
    for (size_t i = 0; i < 3; i++) {
        lac_compressor *const a = open_for(ranked[i], LAC_FORM_UNBIASED, shape);
        lac_compressor *const b = open_for(chosen[i], LAC_FORM_UNBIASED, shape);
        const double rank = (double)i + 1;
        assert_int_equal(
            lac_compressor_bound(a, shape, LAC_SCOPE_SHARED),
            lac_compressor_bound(b, shape, LAC_SCOPE_SHARED));
        const lac_guarantee g = lac_compressor_guarantee(a, shape);
        const lac_guarantee h = lac_compressor_guarantee(b, shape);
        assert_true(g.unbiased && h.unbiased);
        assert_true(fabs(g.error - (COLS + 1) / rank) < 1e-12);
        assert_true(fabs(h.error - (COLS / rank - 1)) < 1e-12);
        lac_compressor_close(a);
        lac_compressor_close(b);
    }
}

static void only_a_workers_own_key_is_sent(void **state)
{
    (void)state;
    lac_compressor *const c =
        open_for("unbiased-rank:2", LAC_FORM_PLAIN, shape);
    const lac_key shared = key_of(1, lac_scope_shared());
    const lac_key own = {
        0x0123456789abcdef, 0xfedcba9876543210, LAC_SCOPE_WORKER};
    uint8_t payload[CAP];
    float x[VALUES];
    size_t len = 0;
    fill_normal(x, VALUES, 6);
    assert_ok(lac_compressor_encode(c, &shared, shape, x, payload, CAP, &len));
    assert_int_equal(len, 4 * RANK * ROWS);
    assert_int_equal(
        lac_compressor_traits(c, LAC_SCOPE_SHARED),
        LAC_TRAIT_LINEAR | LAC_TRAIT_FIXED_SIZE);
    assert_ok(lac_compressor_encode(c, &own, shape, x, payload, CAP, &len));
    assert_int_equal(len, 16 + 4 * RANK * ROWS);
    assert_int_equal(laci_get_u64(payload), own.low);
    assert_int_equal(laci_get_u64(payload + 8), own.high);
    assert_int_equal(
        lac_compressor_traits(c, LAC_SCOPE_WORKER), LAC_TRAIT_FIXED_SIZE);
    assert_fails(
        lac_compressor_check(c, &own, shape, payload, 15), LAC_ERR_CORRUPT,
        "unbiased-rank: payload has 15 bytes, expected at least the 16 of its "
        "key");
    assert_fails(
        lac_compressor_check(c, &own, shape, payload, 20), LAC_ERR_CORRUPT,
        "unbiased-rank: payload has 4 bytes, expected 32");
    lac_compressor_close(c);
}

static void what_would_not_shrink_passes_whole(void **state)
{
    (void)state;
    static const lac_shape shapes[] = {{1, 9}, {9, 1}, {5, 2}, {1, 1}};
    lac_compressor *c = NULL;
    assert_ok(lac_compressor_open(&c, "unbiased-rank:2", LAC_FORM_UNBIASED));
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        const lac_key key = key_of(1, lac_scope_shared());
        const size_t n = lac_shape_values(shapes[i]);
        uint8_t payload[CAP];
        float x[VALUES], y[VALUES];
        size_t len;
        fill_normal(x, n, i);
        assert_ok(lac_compressor_reserve(c, shapes[i]));
        assert_ok(
            lac_compressor_encode(c, &key, shapes[i], x, payload, CAP, &len));
        assert_int_equal(len, 4 * n);
        assert_ok(lac_compressor_decode(c, &key, shapes[i], payload, len, y));
        assert_memory_equal(x, y, 4 * n);
        assert_true(lac_compressor_guarantee(c, shapes[i]).error == 0);
    }
    lac_compressor_close(c);
}

// These bytes may never change.
static void payload_is_always_the_same(void **state)
{
    (void)state;
    const uint8_t expected[] = {0xa0, 0xc2, 0x9e, 0xbe, 0x9c, 0xc0, 0x1a, 0x3d,
                                0x8b, 0xc4, 0xa,  0xbf, 0xbe, 0x74, 0x3b, 0xbe,
                                0x73, 0xb7, 0x73, 0x3f, 0x4,  0x2f, 0x84, 0x3f,
                                0xe4, 0x78, 0xe4, 0xbe, 0xb4, 0x77, 0xb3, 0x3f};
    const lac_key key = {1, 2, LAC_SCOPE_SHARED};
    float x[VALUES];
    uint8_t payload[CAP];
    size_t len;
    for (uint32_t i = 0; i < VALUES; i++) {
        x[i] = lac_key_normal(&key, 1000 + i);
    }
    lac_compressor *const c =
        open_for("unbiased-rank:2", LAC_FORM_PLAIN, shape);
    assert_ok(lac_compressor_encode(c, &key, shape, x, payload, CAP, &len));
    assert_int_equal(len, sizeof(expected));
    assert_memory_equal(payload, expected, sizeof(expected));
    lac_compressor_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_is_the_matrix),
        cmocka_unit_test(the_error_is_that_of_the_formula),
        cmocka_unit_test(the_contractive_form_is_scaled),
        cmocka_unit_test(random_values_of_the_same_size_are_better),
        cmocka_unit_test(only_a_workers_own_key_is_sent),
        cmocka_unit_test(what_would_not_shrink_passes_whole),
        cmocka_unit_test(payload_is_always_the_same),
    };
    return cmocka_run_group_tests_name("unbiased_rank", tests, NULL, NULL);
}
