// SPDX-License-Identifier: MIT
// Dithering: its payload, what survives it, and what is refused.
#include "dither_test.h"

#include <float.h>

static const dither_golden goldens[] = {
    {"dithering:levels=1,norm=inf",
     9,
     {0x00, 0x00, 0x00, 0x40, 0x9c, 0x74, 0x8d, 0x89, 0x02}},
    {"dithering:levels=4",
     13,
     {0xee, 0x9f, 0x7f, 0x40, 0xa1, 0x81, 0x20, 0x2a, 0x91, 0x91, 0x81, 0x81,
      0x08}},
    {"dithering:levels=7,norm=inf,bucket=5",
     25,
     {0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x40, 0x00,
      0x00, 0x80, 0x3f, 0x00, 0x00, 0x00, 0x3f, 0xf3, 0x92,
      0x70, 0x4d, 0xb1, 0xf1, 0x84, 0xb7, 0x0f}},
    {"dithering:norm=inf", 21, {0x00, 0x00, 0x00, 0x40, 0x3f, 0xff, 0x20,
                                0x9f, 0x00, 0x7f, 0xdf, 0x40, 0x10, 0xb0,
                                0x08, 0xbf, 0x20, 0x80, 0x3f, 0x90, 0xa0}},
    {"dithering", 21, {0xee, 0x9f, 0x7f, 0x40, 0x1f, 0xbf, 0x10,
                       0x90, 0x00, 0x40, 0xb0, 0x20, 0x08, 0x98,
                       0x04, 0xa0, 0x10, 0x80, 0x1f, 0x88, 0x90}},
    {"dithering:levels=100,norm=inf,bucket=16",
     25,
     {0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x3f, 0x32,
      0xe4, 0x19, 0x99, 0x00, 0x64, 0xcb, 0x32, 0x0d, 0xa6,
      0x07, 0xb2, 0x19, 0x80, 0x32, 0x8c, 0xe4}},
    {"dithering:levels=1000", 28, {0xee, 0x9f, 0x7f, 0x40, 0xfa, 0xa8, 0xaf,
                                   0x1f, 0xfa, 0x08, 0x80, 0xfa, 0xe0, 0x75,
                                   0x1f, 0x3f, 0xe0, 0x25, 0x08, 0xf4, 0xd9,
                                   0x07, 0x00, 0xea, 0xe3, 0x87, 0x7d, 0x04}},
    {"dithering:levels=65535,norm=inf,bucket=8",
     49,
     {0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x80, 0x3f, 0x00, 0x00,
      0x00, 0x3f, 0xff, 0x7f, 0xfe, 0xff, 0x03, 0x00, 0xf9, 0xff,
      0x09, 0x00, 0xe0, 0xff, 0xdf, 0xff, 0x6f, 0x00, 0x40, 0x00,
      0x40, 0x00, 0x80, 0x03, 0x80, 0xf8, 0xff, 0x0f, 0x00, 0x08,
      0x00, 0xe0, 0xff, 0x3f, 0x00, 0xa0, 0xff, 0xff, 0x01}},
};

static void payloads_never_change(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
        check_golden(&goldens[i]);
    }
}

static void codes_hold_sign_and_level(void **state)
{
    (void)state;
    static const uint8_t in[] = {0, 0, 0x60, 0x40, 0x31, 0x5f, 0x08};
    static const float expected[] = {0.5f, 1.5f, -3.5f, 2.5f, -0.0f};
    check_codes("dithering:levels=7", in, expected);
}

static const char *const layouts[] = {
    "dithering:bucket=512",
    "dithering:norm=inf,bucket=33",
    "dithering:levels=4",
    "dithering:levels=4,norm=inf,bucket=300",
    "dithering:levels=1,norm=inf,bucket=1",
    "dithering:levels=1000,bucket=300",
    "dithering:levels=65535,bucket=2049",
    "dithering:levels=40,bucket=4000000000",
};

enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

static void all_kernels_give_the_same_bytes_and_values(void **state)
{
    (void)state;
    for (size_t k = 0; k < LAYOUTS; k++) {
        check_kernels(layouts[k]);
    }
}

static void a_bucket_is_a_tensor_of_its_own_norm(void **state)
{
    (void)state;
    fill_normal(big, 1000, 2);
    lac_compressor *const c = open_plain("dithering:norm=inf,bucket=300");
    pass(c, 1, big, 1000);
    for (size_t start = 0; start < 1000; start += 300) {
        float norm = 0;
        const size_t stop = start + 300 < 1000 ? start + 300 : 1000;
        for (size_t i = start; i < stop; i++) {
            norm = fmaxf(norm, fabsf(big[i]));
        }
        assert_true(laci_get_f32(payload + start / 300 * 4) == norm);
        for (size_t i = start; i < stop; i++) {
            assert_true(fabsf(decoded[i] - big[i]) <= norm / 127 * 1.0001f);
        }
    }
    lac_compressor_close(c);
}

static void decode_add_is_decode_and_an_addition(void **state)
{
    (void)state;
    for (size_t k = 0; k < LAYOUTS; k++) {
        check_decode_add(layouts[k]);
    }
}

static void multiples_of_the_step_survive(void **state)
{
    (void)state;
    for (int i = 0; i < 255; i++) {
        big[i] = (float)(i - 127);
    }
    check_survival("dithering:norm=inf", 255);
}

static void divergence_stays_visible_in_its_bucket(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    static const char *const specs[] = {
        "dithering:bucket=4", "dithering:norm=inf,bucket=4",
        "dithering:levels=9,bucket=4", "dithering:levels=999,bucket=4"};
    for (size_t k = 0; k < 12; k++) {
        float x[12] = {1, 1, 1, 1, 2, 3, 4, 5, 1, 1, 1, 1};
        x[6] = bad[k % 3];
        lac_compressor *const c = open_plain(specs[k / 3]);
        pass(c, 1, x, 12);
        for (size_t i = 0; i < 12; i++) {
            assert_int_equal(isnan(decoded[i]) != 0, i >= 4 && i < 8);
        }
        assert_int_equal(laci_get_u32(payload + 4), 0x7fc00000);
        lac_compressor_close(c);
    }
}

static void zeros_stay_zeros(void **state)
{
    (void)state;
    for (size_t k = 0; k < LAYOUTS; k++) {
        check_zeros(layouts[k]);
    }
}

// Down to where values are subnormal and levels / norm would be infinite.
static void tiny_tensors_have_the_codes_of_larger_ones(void **state)
{
    (void)state;
    static const int shifts[] = {-60, -68, -69, -70, -90, -120, -149};
    static const char *const specs[] = {
        "dithering:norm=inf", "dithering:levels=9,norm=inf",
        "dithering:levels=999,norm=inf"};
    for (size_t k = 0; k < 3 * 7; k++) {
        check_scaled(specs[k / 7], shifts[k % 7]);
    }
}

static void the_largest_floats_stay_finite(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "dithering:levels=25,norm=inf", "dithering:levels=50,norm=inf",
        "dithering:levels=1000", "dithering", "terngrad"};
    const float x[4] = {FLT_MAX, -FLT_MAX, FLT_MAX / 2, 1};
    for (size_t k = 0; k < 5; k++) {
        lac_compressor *const c = open_plain(specs[k]);
        pass(c, 1, x, 4);
        for (size_t i = 0; i < 4; i++) {
            assert_true(isfinite(decoded[i]));
        }
        assert_true(decoded[0] > 0.99f * FLT_MAX);
        lac_compressor_close(c);
    }
}

static void bad_payloads_have_different_messages(void **state)
{
    (void)state;
    const float x[5] = {1, 2, 3, 4, 5};
    lac_compressor *const c = open_plain("dithering:levels=4,bucket=3");
    assert_int_equal(encode(c, &golden_key, x, 5), 11);
    assert_ok(check(c, 5, 11));
    assert_fails(
        check(c, 5, 10), LAC_ERR_CORRUPT,
        "dithering: payload has 10 bytes, expected 11");
    assert_fails(
        check(c, 5, 12), LAC_ERR_CORRUPT,
        "dithering: payload has 12 bytes, expected 11");
    payload[10] |= 0x30;
    assert_fails(
        check(c, 5, 11), LAC_ERR_CORRUPT,
        "dithering: the bits after the last value are 0x3, expected 0");
    payload[10] = 0x05;
    assert_fails(
        check(c, 5, 11), LAC_ERR_CORRUPT,
        "dithering: one of the values 0 to 4 has level 5, expected at most 4");
    payload[10] = 0x0c; // level 4, negative
    assert_ok(check(c, 5, 11));
    laci_put_f32(payload + 4, NAN);
    assert_ok(check(c, 5, 11));
    laci_put_f32(payload + 4, -1);
    assert_fails(
        check(c, 5, 11), LAC_ERR_CORRUPT,
        "dithering: norm 1 is -1, expected a finite one of at least 0, or NaN");
    laci_put_f32(payload, INFINITY);
    assert_fails(
        check(c, 5, 11), LAC_ERR_CORRUPT,
        "dithering: norm 0 is inf, expected a finite one of at least 0, or "
        "NaN");
    lac_compressor_close(c);
}

static void levels_are_checked_in_every_block(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "dithering:levels=100", "dithering:levels=1000"};
    fill_normal(big, 5000, 2);
    for (size_t k = 0; k < 2; k++) {
        lac_compressor *const c = open_plain(specs[k]);
        const size_t len = encode(c, &golden_key, big, 5000);
        memset(payload + len - 8, 0xff, 8);
        assert_fails(
            check(c, 5000, len), LAC_ERR_CORRUPT,
            k == 0 ? "dithering: one of the values 4096 to 4999 has level 127, "
                     "expected at most 100"
                   : "dithering: one of the values 4096 to 4999 has level "
                     "1023, expected at most 1000");
        lac_compressor_close(c);
    }
}

static void sizes_follow_from_the_settings(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        size_t n;
        size_t size;
    } sizes[] = {
        {"terngrad", 1000, 4 + 250},
        {"qsgd", 1000, 4 + 1000},
        {"qsgd:bucket=512", 1025, 12 + 1025},
        {"dithering:levels=128", 1000, 4 + 1125},
        {"dithering:levels=65535", 1001, 4 + 2128},
        {"dithering:bucket=1", UINT32_MAX, (size_t)5 * UINT32_MAX},
        {"dithering", (size_t)UINT32_MAX + 1, 0},
    };
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        lac_compressor *const c = open_plain(sizes[k].spec);
        assert_int_equal(
            lac_compressor_bound(c, shape_of(sizes[k].n), 0), sizes[k].size);
        assert_int_equal(lac_compressor_wire_id(c), 6);
        lac_compressor_close(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payloads_never_change),
        cmocka_unit_test(codes_hold_sign_and_level),
        cmocka_unit_test(all_kernels_give_the_same_bytes_and_values),
        cmocka_unit_test(a_bucket_is_a_tensor_of_its_own_norm),
        cmocka_unit_test(decode_add_is_decode_and_an_addition),
        cmocka_unit_test(multiples_of_the_step_survive),
        cmocka_unit_test(divergence_stays_visible_in_its_bucket),
        cmocka_unit_test(zeros_stay_zeros),
        cmocka_unit_test(tiny_tensors_have_the_codes_of_larger_ones),
        cmocka_unit_test(the_largest_floats_stay_finite),
        cmocka_unit_test(bad_payloads_have_different_messages),
        cmocka_unit_test(levels_are_checked_in_every_block),
        cmocka_unit_test(sizes_follow_from_the_settings),
    };
    return cmocka_run_group_tests_name("compress.dithering", tests, NULL, NULL);
}
