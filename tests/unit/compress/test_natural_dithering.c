// SPDX-License-Identifier: MIT
// Natural dithering: its payload, its law, and what is refused.
#include "dither_test.h"

static const dither_golden goldens[] = {
    {"natural-dithering:1",
     9,
     {0xee, 0x9f, 0x7f, 0x40, 0x9d, 0x20, 0x88, 0x88, 0x02}},
    {"natural-dithering:3,norm=inf",
     11,
     {0x00, 0x00, 0x00, 0x40, 0x7a, 0x8a, 0x59, 0x29, 0x1c, 0xaa, 0x05}},
    {"natural-dithering",
     15,
     {0xee, 0x9f, 0x7f, 0x40, 0xe6, 0x96, 0x0a, 0x8e, 0x35, 0xa4, 0x0e, 0x5b,
      0xa0, 0xa1, 0x15}},
    {"natural-dithering:20",
     17,
     {0xee, 0x9f, 0x7f, 0x40, 0xd2, 0x1c, 0xc5, 0xc0, 0x24, 0x4b, 0x50, 0xfc,
      0xc8, 0x11, 0x28, 0xc1, 0x31}},
    {"natural-dithering:127,norm=inf",
     21,
     {0x00, 0x00, 0x00, 0x40, 0x7e, 0xff, 0x7d, 0xfd, 0x00, 0x7f, 0xfe,
      0x7e, 0x7c, 0xfd, 0x7b, 0xfe, 0x7d, 0x80, 0x7e, 0xfc, 0xfd}},
};

static const char *const specs[] = {
    "natural-dithering:1",  "natural-dithering:3,norm=inf",
    "natural-dithering",    "natural-dithering:norm=inf",
    "natural-dithering:40", "natural-dithering:127,norm=inf",
};

enum { SPECS = sizeof(specs) / sizeof(specs[0]) };

static void payloads_never_change(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
        check_golden(&goldens[i]);
    }
}

static void codes_hold_sign_and_power(void **state)
{
    (void)state;
    static const uint8_t in[] = {0, 0, 0x40, 0x40, 0x31, 0x5f, 0x08};
    static const float expected[] = {
        3 * 0x1p-6f, 3 * 0x1p-4f, -3, 3 * 0x1p-2f, -0.0f};
    check_codes("natural-dithering:7", in, expected);
}

static void all_kernels_give_the_same_bytes_and_values(void **state)
{
    (void)state;
    for (size_t k = 0; k < SPECS; k++) {
        check_kernels(specs[k]);
    }
}

static void decode_add_is_decode_and_an_addition(void **state)
{
    (void)state;
    for (size_t k = 0; k < SPECS; k++) {
        check_decode_add(specs[k]);
    }
}

static void powers_of_two_of_the_norm_survive(void **state)
{
    (void)state;
    for (int i = 0; i < 127; i++) {
        big[i] = ldexpf(i % 2 == 0 ? 1.7f : -1.7f, -i);
    }
    big[127] = 0;
    check_survival("natural-dithering:127,norm=inf", 128);
}

// The levels around a value are at most max(|x|, lowest level) apart, so the
// mean of R rounds has a standard deviation of half of that over sqrt(R) at
// most: five of them are allowed.
static void every_value_is_unbiased(void **state)
{
    (void)state;
    static const double lowest[] = {4, 0.5, 0x1p-5, 0x1p-6, 0, 0};
    for (size_t k = 0; k < SPECS; k++) {
        double means[GOLDEN];
        take_means(specs[k], means);
        for (size_t i = 0; i < GOLDEN; i++) {
            const double x = (double)golden[i];
            const double apart = fmax(fabs(x), lowest[k]);
            assert_true(fabs(means[i] - x) <= 5 * apart / 2 / sqrt(ROUNDS));
        }
    }
}

// No value is beyond 6 / sqrt(D) < 2^-5 of the norm, so levels are at most
// max(2^(1-s), 2^-6) norms apart.
static void errors_are_those_of_the_paper(void **state)
{
    (void)state;
    static const struct {
        unsigned levels;
        double error;
        double bound; // Theorem 7
    } rows[] = {
        {1, 251.5, 316.4},    {4, 30.56, 39.65},  {6, 6.891, 10.01},
        {8, 0.9945, 2.596},   {9, 0.2600, 1.360}, {10, 0.1070, 0.5065},
        {12, 0.0820, 0.1488},
    };
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        char spec[32];
        snprintf(spec, sizeof(spec), "natural-dithering:%u", rows[k].levels);
        lac_compressor *const c = open_plain(spec);
        const double apart = fmax(ldexp(2, -(int)rows[k].levels), 0x1p-6);
        check_error(c, rows[k].error, apart);
        const lac_guarantee g = lac_compressor_guarantee(c, shape_of(D));
        assert_true(g.unbiased);
        assert_true(fabs(g.error / rows[k].bound - 1) < 0.0005);
        assert_int_equal(lac_compressor_wire_id(c), 5);
        lac_compressor_close(c);
    }
}

static void the_contractive_form_is_in_the_norm(void **state)
{
    (void)state;
    for (size_t k = 0; k < SPECS; k++) {
        check_forms(specs[k], 1);
    }
}

static void divergence_stays_visible(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t k = 0; k < SPECS * 3; k++) {
        const float x[4] = {1, 0, bad[k % 3], -2};
        lac_compressor *const c = open_plain(specs[k / 3]);
        pass(c, 1, x, 4);
        assert_int_equal(laci_get_u32(payload), 0x7fc00000);
        for (size_t i = 0; i < 4; i++) {
            assert_true(isnan(decoded[i]));
        }
        lac_compressor_close(c);
    }
}

static void zeros_stay_zeros(void **state)
{
    (void)state;
    for (size_t k = 0; k < SPECS; k++) {
        check_zeros(specs[k]);
    }
}

// Even where values are subnormal or at the end of the floats.
static void codes_do_not_depend_on_the_scale(void **state)
{
    (void)state;
    static const int shifts[] = {-149, -130, -69, -60, 100, 123};
    for (size_t k = 0; k < SPECS * 6; k++) {
        if (strstr(specs[k / 6], "inf") != NULL) {
            check_scaled(specs[k / 6], shifts[k % 6]);
        }
    }
}

static void bad_payloads_have_different_messages(void **state)
{
    (void)state;
    const float x[3] = {1, 2, 3};
    lac_compressor *const c = open_plain("natural-dithering:6");
    assert_int_equal(encode(c, &golden_key, x, 3), 6);
    assert_ok(check(c, 3, 6));
    assert_fails(
        check(c, 3, 5), LAC_ERR_CORRUPT,
        "natural-dithering: payload has 5 bytes, expected 6");
    payload[5] |= 0x80;
    assert_fails(
        check(c, 3, 6), LAC_ERR_CORRUPT,
        "natural-dithering: the bits after the last value are 0x8, expected "
        "0");
    payload[5] = 0x07;
    assert_fails(
        check(c, 3, 6), LAC_ERR_CORRUPT,
        "natural-dithering: one of the values 0 to 2 has level 7, expected at "
        "most 6");
    payload[5] = 0x0e; // level 6, negative
    laci_put_f32(payload, NAN);
    assert_ok(check(c, 3, 6));
    laci_put_f32(payload, -0.5f);
    assert_fails(
        check(c, 3, 6), LAC_ERR_CORRUPT,
        "natural-dithering: norm 0 is -0.5, expected a finite one of at least "
        "0, or NaN");
    laci_put_f32(payload, INFINITY);
    assert_fails(
        check(c, 3, 6), LAC_ERR_CORRUPT,
        "natural-dithering: norm 0 is inf, expected a finite one of at least "
        "0, or NaN");
    lac_compressor_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payloads_never_change),
        cmocka_unit_test(codes_hold_sign_and_power),
        cmocka_unit_test(all_kernels_give_the_same_bytes_and_values),
        cmocka_unit_test(decode_add_is_decode_and_an_addition),
        cmocka_unit_test(powers_of_two_of_the_norm_survive),
        cmocka_unit_test(every_value_is_unbiased),
        cmocka_unit_test(errors_are_those_of_the_paper),
        cmocka_unit_test(the_contractive_form_is_in_the_norm),
        cmocka_unit_test(divergence_stays_visible),
        cmocka_unit_test(zeros_stay_zeros),
        cmocka_unit_test(codes_do_not_depend_on_the_scale),
        cmocka_unit_test(bad_payloads_have_different_messages),
    };
    return cmocka_run_group_tests_name(
        "compress.natural_dithering", tests, NULL, NULL);
}
