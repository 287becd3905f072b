// SPDX-License-Identifier: MIT
// What dithering claims about its error, measured.
#include "dither_test.h"

// A value is off by less than a step, with variance at most step^2 / 4, so the
// mean of R rounds has a standard deviation of step / 2 / sqrt(R) at most:
// five of them are allowed.
static void every_value_is_unbiased(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "dithering:levels=1", "dithering:levels=5,norm=inf",
        "dithering:norm=inf", "dithering:levels=300,bucket=4"};
    static const double steps[] = {4, 0.4, 2.0 / 127, 3.0 / 300};
    for (size_t k = 0; k < 4; k++) {
        double means[GOLDEN];
        take_means(specs[k], means);
        for (size_t i = 0; i < GOLDEN; i++) {
            const double off = means[i] - (double)golden[i];
            assert_true(fabs(off) <= 5 * steps[k] / 2 / sqrt(ROUNDS));
        }
    }
}

static void errors_are_those_of_the_paper(void **state)
{
    (void)state;
    static const struct {
        unsigned levels;
        double error;
    } rows[] = {
        {1, 251.5},    {4, 62.13},    {6, 41.08},    {8, 30.56},
        {9, 27.06},    {10, 24.25},   {12, 20.04},   {32, 6.891},
        {128, 0.9945}, {256, 0.2547}, {512, 0.0635}, {2048, 0.0040},
    };
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        char spec[32];
        snprintf(spec, sizeof(spec), "dithering:levels=%u", rows[k].levels);
        lac_compressor *const c = open_plain(spec);
        check_error(c, rows[k].error, 1. / rows[k].levels);
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
    check_forms("dithering:levels=2,bucket=1000", 3);
    check_forms("dithering:levels=3,norm=inf", 1);
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
