// SPDX-License-Identifier: MIT
// Natural compression: its payloads, its law and its edges.
#include "lac_test.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { CAP = 64, DRAWS = 1 << 16, SAMPLE = 1 << 20 };

static const lac_key key = {
    0x0123456789abcdef, 0xfedcba9876543210, LAC_SCOPE_WORKER};

static const char *const specs[] = {"natural", "natural:bits=8"};

static lac_compressor *open_for(const char *spec, size_t n)
{
    lac_compressor *c;
    assert_ok(lac_compressor_open(&c, spec, LAC_FORM_PLAIN));
    assert_ok(lac_compressor_reserve(c, (lac_shape){n, 1}));
    return c;
}

// Sends n values through a compressor.
static void pass(const char *spec, const float *x, float *y, size_t n)
{
    static uint8_t payload[2 * SAMPLE];
    const lac_shape shape = {n, 1};
    lac_compressor *const c = open_for(spec, n);
    size_t len;
    assert_ok(lac_compressor_encode(
        c, &key, shape, x, payload, sizeof(payload), &len));
    assert_ok(lac_compressor_decode(c, &key, shape, payload, len, y));
    lac_compressor_close(c);
}

static void check_payload(
    const char *spec, const float *x, size_t n, const uint8_t *expected,
    size_t len)
{
    static const char *const kernels[] = {"portable", "best"};
    for (size_t k = 0; k < 2; k++) {
        uint8_t payload[CAP];
        size_t found;
        lac_compressor *const c = open_for(spec, n);
        assert_ok(lac_compressor_use_kernels(c, kernels[k]));
        assert_ok(lac_compressor_encode(
            c, &key, (lac_shape){1, n}, x, payload, CAP, &found));
        assert_int_equal(found, len);
        assert_memory_equal(payload, expected, len);
        lac_compressor_close(c);
    }
}

// The payloads are wire formats: these bytes may never change. They were
// computed by another program from the description in natural.c.
static void nine_bits_are_as_documented(void **state)
{
    (void)state;
    const float x[11] = {3,   -3,    0.3f,  -0.7f, 1,     -0.0f,
                         100, 1e-3f, -5.5f, 2.75f, 1e-40f};
    const uint8_t expected[13] = {0x81, 0x81, 0x7e, 0x7e, 0x7f, 0x00, 0x85,
                                  0x75, 0x82, 0x80, 0x00, 0x2a, 0x01};
    check_payload("natural", x, 11, expected, sizeof(expected));
}

static void eight_bits_are_as_documented(void **state)
{
    (void)state;
    const float x[11] = {3,   -3,    0.3f,  -0.7f, 1,     -0.0f,
                         100, 1e-3f, -5.5f, 2.75f, 1e-40f};
    const uint8_t expected[12] = {0x86, 0x7a, 0xfa, 0x77, 0xf7, 0x78,
                                  0x80, 0x7e, 0x6e, 0xfb, 0x79, 0x00};
    check_payload("natural:8", x, 11, expected, sizeof(expected));
}

static void a_window_may_start_at_the_least_exponent(void **state)
{
    (void)state;
    const float x[4] = {0.01f, -0.02f, 0, 0.5f};
    const uint8_t expected[5] = {0x7e, 0x7a, 0xfb, 0x00, 0x7f};
    check_payload("natural:8", x, 4, expected, sizeof(expected));
}

// The largest value may become 2^61, so the least level is 2^-65.
static void values_below_a_window_become_zero_or_its_least_level(void **state)
{
    (void)state;
    const float x[10] = {0x3p59f,  -0x1p-66f, -0x3p-66f, 0x1p-66f, 0x5p-67f,
                         0x1p-66f, 0,         -0.0f,     0x1p-66f, -3};
    const uint8_t expected[11] = {0xbc, 0x7f, 0x80, 0x82, 0x01, 0x02,
                                  0x01, 0x00, 0x80, 0x00, 0xc3};
    check_payload("natural:8", x, 10, expected, sizeof(expected));
}

static void powers_of_two_and_zeros_survive(void **state)
{
    (void)state;
    const float x[7] = {0.0f, -0.0f, 1, -1, 0.5f, 0x1p-120f, -64};
    float y[7];
    for (size_t s = 0; s < 2; s++) {
        pass(specs[s], x, y, 7);
        assert_memory_equal(y, x, sizeof(x)); // the sign of 0 counts
    }
    const float extreme[2] = {0x1p-126f, 0x1p127f};
    pass("natural", extreme, y, 2);
    assert_memory_equal(y, extreme, sizeof(extreme));
}

static void largest_values_stay_finite(void **state)
{
    (void)state;
    float x[100];
    float y[100];
    for (size_t i = 0; i < 100; i++) {
        x[i] = i % 2 == 0 ? FLT_MAX : -0x1.2p127f;
    }
    for (size_t s = 0; s < 2; s++) {
        pass(specs[s], x, y, 100);
        for (size_t i = 0; i < 100; i++) {
            assert_true(y[i] == (i % 2 == 0 ? 0x1p127f : -0x1p127f));
        }
    }
}

static void divergence_is_not_hidden(void **state)
{
    (void)state;
    float x[70] = {INFINITY, -INFINITY, NAN, -NAN, 8, FLT_MAX};
    x[69] = NAN;
    float y[70];
    for (size_t s = 0; s < 2; s++) {
        pass(specs[s], x, y, 70);
        assert_true(y[0] == INFINITY && y[1] == -INFINITY);
        assert_true(isinf(y[2]) && isinf(y[3]) && isinf(y[69]));
        assert_true(y[4] == 8 && y[5] == 0x1p127f && y[6] == 0);
    }
}

static void subnormals_round_to_zero_or_the_least_normal(void **state)
{
    (void)state;
    float x[1000];
    float y[1000];
    for (size_t i = 0; i < 1000; i++) {
        x[i] = 0x1p-127f;
    }
    for (size_t s = 0; s < 2; s++) {
        size_t ups = 0;
        pass(specs[s], x, y, 1000);
        for (size_t i = 0; i < 1000; i++) {
            assert_true(y[i] == 0.0f || y[i] == FLT_MIN);
            ups += y[i] != 0;
        }
        // Half of them, within four deviations of sqrt(1000) / 2.
        assert_true(ups > 500 - 64 && ups < 500 + 64);
    }
}

// C(u) for u in [1, 2) is 2 with probability p = u - 1, else 1. Its variance is
// p (1 - p). Its squared error is p^2 or (1 - p)^2, whose deviation is
// sqrt(p (1 - p)) |1 - 2p|. Means of DRAWS are within 4.5 deviations of theirs.
static void mean_and_variance_are_as_derived(void **state)
{
    (void)state;
    static float x[DRAWS];
    static float y[DRAWS];
    const float tried[] = {1, 1.125f, 4.0f / 3, 1.5f, 1.75f, 1.99f};
    for (size_t k = 0; k < sizeof(tried) / sizeof(tried[0]); k++) {
        const double p = (double)tried[k] - 1;
        const double deviation = sqrt(p * (1 - p) / DRAWS);
        for (size_t i = 0; i < DRAWS; i++) {
            x[i] = -tried[k];
        }
        pass(specs[k % 2], x, y, DRAWS);
        double mean = 0;
        double square = 0;
        for (size_t i = 0; i < DRAWS; i++) {
            const double error = (double)(y[i] - x[i]);
            mean += error / DRAWS;
            square += error * error / DRAWS;
        }
        assert_true(fabs(mean) <= 4.5 * deviation + 1e-9);
        assert_true(
            fabs(square - p * (1 - p)) <=
            4.5 * deviation * fabs(1 - 2 * p) + 1e-6);
    }
}

// omega is 0.0820 on Gaussian values. An error is at most its value, so the
// squared error s of one has E[s^2] <= E[x^2 s] <= E[x^4] / 8 = 3 / 8, and the
// mean of 2^20 a deviation of at most 0.0006; three of them are 0.0018.
static void error_on_gaussian_values_is_as_published(void **state)
{
    (void)state;
    static float x[SAMPLE];
    static float y[SAMPLE];
    fill_normal(x, SAMPLE, 1);
    for (size_t s = 0; s < 2; s++) {
        pass(specs[s], x, y, SAMPLE);
        double error = 0;
        double norm = 0;
        for (size_t i = 0; i < SAMPLE; i++) {
            error += pow((double)(y[i] - x[i]), 2);
            norm += pow((double)x[i], 2);
        }
        assert_true(fabs(error / norm - 0.0820) < 0.0018);
    }
}

static void every_form_claims_the_same(void **state)
{
    (void)state;
    for (int form = LAC_FORM_PLAIN; form <= LAC_FORM_CONTRACTIVE; form++) {
        lac_compressor *c;
        assert_ok(lac_compressor_open(&c, "natural", (lac_form)form));
        const lac_guarantee law =
            lac_compressor_guarantee(c, (lac_shape){10, 10});
        assert_true(law.unbiased && law.error == 0.125);
        assert_int_equal(
            lac_compressor_traits(c, LAC_SCOPE_WORKER),
            LAC_TRAIT_ELEMENTWISE | LAC_TRAIT_FIXED_SIZE);
        assert_int_equal(lac_compressor_wire_id(c), 4);
        lac_compressor_close(c);
    }
}

static void bad_payloads_are_explained(void **state)
{
    (void)state;
    const uint8_t padded[4] = {1, 2, 3, 0x08};
    float y[3] = {7, 7, 7};
    const lac_shape shape = {3, 1};
    lac_compressor *const c = open_for("natural", 3);
    assert_fails(
        lac_compressor_decode(c, &key, shape, padded, 3, y), LAC_ERR_CORRUPT,
        "natural: payload has 3 bytes, expected 4");
    assert_fails(
        lac_compressor_decode(c, &key, shape, padded, 4, y), LAC_ERR_CORRUPT,
        "natural: signs past the last value are not zero, expected zero");
    assert_true(y[0] == 7 && y[1] == 7 && y[2] == 7);
    lac_compressor_close(c);
}

// With top 100 the exponent field of code c is c - 27.
static void bad_windows_are_explained(void **state)
{
    (void)state;
    uint8_t payload[5] = {100, 0x80, 0x9c, 0x1b};
    float y[3];
    const lac_shape shape = {3, 1};
    lac_compressor *const c = open_for("natural:8", 3);
    assert_fails(
        lac_compressor_decode(c, &key, shape, payload, 5, y), LAC_ERR_CORRUPT,
        "natural: payload has 5 bytes, expected 4");
    assert_fails(
        lac_compressor_decode(c, &key, shape, payload, 4, y), LAC_ERR_CORRUPT,
        "natural: a code is 27 in a window with top 100, expected 0 or at "
        "least 28");
    payload[3] = 0x1c;
    assert_ok(lac_compressor_decode(c, &key, shape, payload, 4, y));
    assert_true(y[1] == -FLT_MIN && y[2] == FLT_MIN);
    payload[0] = 0; // a tensor of zeros has no levels at all
    assert_status(
        lac_compressor_decode(c, &key, shape, payload, 4, y), LAC_ERR_CORRUPT);
    memset(payload + 1, 0x80, 3);
    assert_ok(lac_compressor_decode(c, &key, shape, payload, 4, y));
    lac_compressor_close(c);
}

static void decode_add_is_decoding_and_adding(void **state)
{
    (void)state;
    const float x[3] = {3, -0.3f, 100};
    const lac_shape shape = {3, 1};
    for (size_t s = 0; s < 2; s++) {
        uint8_t payload[CAP];
        size_t len;
        float values[3];
        float y[3] = {0.1f, 0.2f, 0.3f};
        lac_compressor *const c = open_for(specs[s], 3);
        assert_ok(lac_compressor_encode(c, &key, shape, x, payload, CAP, &len));
        assert_ok(lac_compressor_decode(c, &key, shape, payload, len, values));
        assert_ok(
            lac_compressor_decode_add(c, &key, shape, payload, len, 0.7f, y));
        assert_true(y[0] == 0.1f + 0.7f * values[0]);
        assert_true(y[1] == 0.2f + 0.7f * values[1]);
        assert_true(y[2] == 0.3f + 0.7f * values[2]);
        lac_compressor_close(c);
    }
}

static void too_many_values_are_refused(void **state)
{
    (void)state;
    lac_compressor *c;
    assert_ok(lac_compressor_open(&c, "natural", LAC_FORM_PLAIN));
    assert_status(
        lac_compressor_reserve(c, (lac_shape){(size_t)1 << 32, 1}),
        LAC_ERR_INVALID);
    lac_compressor_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nine_bits_are_as_documented),
        cmocka_unit_test(eight_bits_are_as_documented),
        cmocka_unit_test(a_window_may_start_at_the_least_exponent),
        cmocka_unit_test(values_below_a_window_become_zero_or_its_least_level),
        cmocka_unit_test(powers_of_two_and_zeros_survive),
        cmocka_unit_test(largest_values_stay_finite),
        cmocka_unit_test(divergence_is_not_hidden),
        cmocka_unit_test(subnormals_round_to_zero_or_the_least_normal),
        cmocka_unit_test(mean_and_variance_are_as_derived),
        cmocka_unit_test(error_on_gaussian_values_is_as_published),
        cmocka_unit_test(every_form_claims_the_same),
        cmocka_unit_test(bad_payloads_are_explained),
        cmocka_unit_test(bad_windows_are_explained),
        cmocka_unit_test(decode_add_is_decoding_and_adding),
        cmocka_unit_test(too_many_values_are_refused),
    };
    return cmocka_run_group_tests_name("compress.natural", tests, NULL, NULL);
}
