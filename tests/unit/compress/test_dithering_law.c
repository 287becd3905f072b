// SPDX-License-Identifier: MIT
// What dithering claims about its error, measured.
#include "dither_test.h"

// A value is off by less than a step, with variance at most step^2 / 4, so the
// mean of R rounds has a standard deviation of step / 2 / sqrt(R) at most:
// five of them are allowed.
static void every_value_is_unbiased(void **state)
{
    (void)state;
    enum { ROUNDS = 10000 };
    static const char *const specs[] = {
        "dithering:levels=1", "dithering:levels=5,norm=inf",
        "dithering:norm=inf", "dithering:levels=300,bucket=4"};
    static const double steps[] = {4, 0.4, 2.0 / 127, 3.0 / 300};
    for (size_t k = 0; k < 4; k++) {
        double sum[GOLDEN] = {0};
        lac_compressor *const c = open_plain(specs[k]);
        for (uint64_t round = 0; round < ROUNDS; round++) {
            pass(c, round, golden, GOLDEN);
            for (size_t i = 0; i < GOLDEN; i++) {
                sum[i] += (double)decoded[i];
            }
        }
        for (size_t i = 0; i < GOLDEN; i++) {
            const double off = sum[i] / ROUNDS - (double)golden[i];
            assert_true(fabs(off) <= 5 * steps[k] / 2 / sqrt(ROUNDS));
        }
        lac_compressor_close(c);
    }
}

// The squared error of a value is at most a step^2, so that of a run has a
// variance of at most step^2 times its mean omega |x|^2; relative to that mean
// and for R runs, a standard deviation of (1/s) / sqrt(R omega). Four of them,
// and 1 % for the sample of the table and for values that are not quite
// normal.
static void errors_are_those_of_the_paper(void **state)
{
    (void)state;
    enum { ROUNDS = 40 };
    static const struct {
        unsigned levels;
        double error;
    } rows[] = {
        {1, 251.5},    {4, 62.13},    {6, 41.08},    {8, 30.56},
        {9, 27.06},    {10, 24.25},   {12, 20.04},   {32, 6.891},
        {128, 0.9945}, {256, 0.2547}, {512, 0.0635}, {2048, 0.0040},
    };
    make_normal(big, D);
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        char spec[32];
        snprintf(spec, sizeof(spec), "dithering:levels=%u", rows[k].levels);
        lac_compressor *const c = open_plain(spec);
        const double error = mean_error(c, big, D, ROUNDS);
        const double noise =
            1 / (rows[k].levels * sqrt(ROUNDS * rows[k].error));
        assert_true(fabs(error / rows[k].error - 1) <= 4 * noise + 0.01);
        assert_true(error <= lac_compressor_guarantee(c, shape_of(D)).error);
        lac_compressor_close(c);
    }
}

static void laws_are_as_derived(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        double error;
    } laws[] = {
        {"dithering:levels=1", 10},                 // sqrt(100) / 1
        {"dithering:levels=20", 0.25},              // 100 / 400
        {"dithering:levels=20,bucket=25", 0.0625},  // 25 / 400
        {"dithering:levels=20,bucket=101", 0.25},   // the tensor is shorter
        {"terngrad", 4.5},                          // (sqrt(100) - 1) / 2
        {"dithering:levels=3,norm=inf", 1.2320508}, // (sqrt(12) - 1) / 2
    };
    for (size_t k = 0; k < sizeof(laws) / sizeof(laws[0]); k++) {
        lac_compressor *c = open_plain(laws[k].spec);
        const lac_guarantee g = lac_compressor_guarantee(c, shape_of(100));
        assert_true(g.unbiased);
        assert_true(fabs(g.error - laws[k].error) < 1e-6);
        lac_compressor_close(c);
        c = open_in(laws[k].spec, LAC_FORM_CONTRACTIVE);
        const lac_guarantee f = lac_compressor_guarantee(c, shape_of(100));
        assert_false(f.unbiased);
        assert_true(fabs(f.error - g.error / (1 + g.error)) < 1e-12);
        lac_compressor_close(c);
    }
}

// One value of 1 and 100 of t = 1 / (2 (1 + omega)) are the worst there is.
// Their errors have the mean 100 t (1 - t) = 8.2 and at most that variance, so
// the mean of 4000 rounds has a standard deviation of 0.55 %.
static void the_law_of_the_norm_inf_is_attained(void **state)
{
    (void)state;
    lac_compressor *const c = open_plain("terngrad");
    const double omega = lac_compressor_guarantee(c, shape_of(101)).error;
    big[0] = 1;
    for (size_t i = 1; i < 101; i++) {
        big[i] = (float)(0.5 / (1 + omega));
    }
    assert_true(fabs(mean_error(c, big, 101, 4000) / omega - 1) < 4 * 0.0055);
    lac_compressor_close(c);
}

static void the_contractive_form_is_in_the_norms(void **state)
{
    (void)state;
    enum { n = 3000 };
    static const char *const specs[] = {
        "dithering:levels=2,bucket=1000", "dithering:levels=3,norm=inf"};
    make_normal(big, n);
    for (size_t k = 0; k < 2; k++) {
        const lac_key key = key_of(1);
        lac_compressor *const c = open_plain(specs[k]);
        lac_compressor *const unbiased = open_in(specs[k], LAC_FORM_UNBIASED);
        lac_compressor *const small = open_in(specs[k], LAC_FORM_CONTRACTIVE);
        const size_t len = encode(c, &key, big, n);
        memcpy(other, payload, len);
        encode(unbiased, &key, big, n);
        assert_memory_equal(payload, other, len);
        encode(small, &key, big, n);
        const size_t norms = k == 0 ? 3 : 1;
        const double omega = lac_compressor_guarantee(c, shape_of(n)).error;
        for (size_t b = 0; b < norms; b++) {
            const double norm = (double)laci_get_f32(other + 4 * b);
            const double stored = (double)laci_get_f32(payload + 4 * b);
            assert_true(fabs(stored - norm / (1 + omega)) <= 1e-7 * stored);
        }
        assert_memory_equal(
            payload + 4 * norms, other + 4 * norms, len - 4 * norms);
        assert_true(
            mean_error(small, big, n, 20) <
            lac_compressor_guarantee(small, shape_of(n)).error);
        lac_compressor_close(small);
        lac_compressor_close(unbiased);
        lac_compressor_close(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_is_unbiased),
        cmocka_unit_test(errors_are_those_of_the_paper),
        cmocka_unit_test(laws_are_as_derived),
        cmocka_unit_test(the_law_of_the_norm_inf_is_attained),
        cmocka_unit_test(the_contractive_form_is_in_the_norms),
    };
    return cmocka_run_group_tests_name(
        "compress.dithering_law", tests, NULL, NULL);
}
