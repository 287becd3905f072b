// SPDX-License-Identifier: MIT
// The kernels that choose values: what they do, on the portable ones, and that
// the others give the same bits for every size and alignment.
#include "kernels_test.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/select.h"

enum { MOST = 700, OFFSETS = 8, GUARD = 0x5a5a5a5a };

static float data[MOST + OFFSETS];

// Few different magnitudes, so that there are ties, and every special value.
static int setup(void **state)
{
    static const float special[] = {0.0f,      -0.0f, NAN,   -NAN,
                                    -INFINITY, 1.0f,  -1.0f, 0x1p-149f};
    const lac_key key =
        lac_key_make(1, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
    for (uint32_t i = 0; i < MOST + OFFSETS; i++) {
        const uint32_t bits = lac_key_draw(&key, i);
        data[i] = bits % 7 == 0 ? special[bits / 7 % 8]
                                : (float)(bits % 13) * 0.25f - 1.5f;
    }
    (void)state;
    return 0;
}

// The kernels that are compared with the portable ones.
static const laci_kernels *best(void)
{
    return fast_or_skip();
}

static void magnitudes_are_ordered_with_nan_on_top(void **state)
{
    (void)state;
    const float x[] = {1, -2, INFINITY, NAN, -INFINITY, 0.5f};
    uint32_t indices[6];
    const laci_limit limit = {laci_magnitude(2.0f), 1};
    const size_t found =
        laci_select_portable.collect(x, 6, limit, 6, indices, NULL);
    assert_int_equal(found, 4);
    const uint32_t expected[] = {1, 2, 3, 4};
    assert_memory_equal(indices, expected, sizeof(expected));
}

static void ties_go_to_the_lower_index(void **state)
{
    (void)state;
    const float x[] = {1, -1, 2, 1, -1};
    uint32_t indices[5];
    float values[5];
    const laci_limit limit = {laci_magnitude(1.0f), 2};
    const size_t found =
        laci_select_portable.collect(x, 5, limit, 5, indices, values);
    assert_int_equal(found, 3);
    const uint32_t expected[] = {0, 1, 2};
    assert_memory_equal(indices, expected, sizeof(expected));
    assert_true(values[0] == 1 && values[1] == -1 && values[2] == 2);
}

static void too_many_are_reported_and_not_written(void **state)
{
    (void)state;
    float x[MOST];
    uint32_t indices[101];
    float values[101];
    for (size_t i = 0; i < MOST; i++) {
        x[i] = 1;
    }
    const laci_limit all = {0, SIZE_MAX};
    const laci_select_kernels *const select = best()->select;
    indices[100] = GUARD;
    values[100] = 7;
    assert_int_equal(
        laci_select_portable.collect(x, MOST, all, 100, indices, values), 101);
    assert_int_equal(select->collect(x, MOST, all, 100, indices, values), 101);
    assert_int_equal(select->collect(x, 100, all, 100, indices, values), 100);
    assert_int_equal(indices[100], GUARD);
    assert_true(values[100] == 7);
}

static void digits_are_counted_below_a_prefix(void **state)
{
    (void)state;
    const float x[] = {1.0f, 1.5f, -1.5f, 2.0f, 0.0f};
    uint32_t counts[LACI_DIGITS] = {0};
    const laci_digit digit = {
        .shift = 22, .bits = 1, .higher = laci_magnitude(1.0f) >> 23};
    laci_select_portable.count(x, 5, digit, counts);
    assert_int_equal(counts[0], 1);
    assert_int_equal(counts[1], 2);
}

static void a_survey_separates_above_from_within(void **state)
{
    (void)state;
    const float x[] = {3, -1, 0.5f, 2, -NAN, 1.5f, 0, -2, -4};
    const laci_band band = {laci_magnitude(1.0f), laci_magnitude(3.0f)};
    uint8_t above[2] = {0xff, 0xff};
    float values[4];
    uint32_t indices[4];
    const laci_census census =
        laci_select_portable.survey(x, 9, band, 4, above, values, indices);
    const uint32_t expected[] = {1, 3, 5, 7};
    assert_int_equal(census.within, 4);
    assert_int_equal(census.above, 3);
    assert_int_equal(above[0], 0x11);
    assert_int_equal(above[1], 0x01);
    assert_memory_equal(indices, expected, sizeof(expected));
    assert_true(values[0] == -1 && values[1] == 2 && values[3] == -2);
}

static void ones_of_a_bitmap_are_counted_beyond_the_room(void **state)
{
    (void)state;
    const uint8_t bits[] = {0x81, 0x00, 0x05};
    uint32_t indices[3] = {0, 0, GUARD};
    assert_int_equal(laci_select_portable.expand(bits, 20, 2, indices), 4);
    assert_int_equal(indices[0], 0);
    assert_int_equal(indices[1], 7);
    assert_int_equal(indices[2], GUARD);
}

static void a_permutation_permutes(void **state)
{
    (void)state;
    for (unsigned bits = 2; bits <= 12; bits++) {
        const laci_permutation p = {
            .stream = {{1, 2, 3, bits}},
            .low_bits = bits - bits / 2,
            .high_bits = bits / 2,
        };
        bool seen[4096] = {false};
        for (uint32_t i = 0; i < 1u << bits; i++) {
            const uint32_t to = laci_permute(&p, i);
            assert_true(to < 1u << bits);
            assert_false(seen[to]);
            seen[to] = true;
        }
    }
}

static void same_counts_for_every_size(void **state)
{
    (void)state;
    static const laci_digit digits[] = {
        {20, 11, 0}, {10, 10, 0x3f8}, {0, 10, 0x3f8 << 10}, {10, 10, 0x7fc}};
    for (size_t n = 0; n <= MOST; n++) {
        const float *const x = data + n % OFFSETS;
        for (size_t d = 0; d < sizeof(digits) / sizeof(digits[0]); d++) {
            uint32_t a[LACI_DIGITS] = {0}, b[LACI_DIGITS] = {0};
            laci_select_portable.count(x, n, digits[d], a);
            best()->select->count(x, n, digits[d], b);
            assert_memory_equal(a, b, sizeof(a));
        }
    }
}

static void compare_collections(
    const float *x, size_t n, laci_limit limit, size_t cap)
{
    uint32_t a[MOST + 1], b[MOST + 1];
    float u[MOST + 1], v[MOST + 1];
    memset(b, 0x5a, sizeof(b));
    memset(v, 0x5a, sizeof(v));
    const size_t found = laci_select_portable.collect(x, n, limit, cap, a, u);
    assert_int_equal(best()->select->collect(x, n, limit, cap, b, v), found);
    assert_int_equal(b[cap], GUARD);
    assert_int_equal(laci_bits_of(v[cap]), GUARD);
    if (found <= cap) {
        assert_memory_equal(a, b, found * sizeof(*a));
        assert_memory_equal(u, v, found * sizeof(*u));
        assert_int_equal(
            best()->select->collect(x, n, limit, cap, b, NULL), found);
        assert_memory_equal(a, b, found * sizeof(*a));
    }
}

static void same_collection_for_every_size(void **state)
{
    (void)state;
    static const float limits[] = {0.0f, 0.5f, 1.0f, 1.5f, INFINITY, NAN};
    static const size_t ties[] = {0, 1, 5, 40, SIZE_MAX};
    for (size_t n = 0; n <= MOST; n++) {
        for (size_t i = 0; i < 6 * 5; i++) {
            const laci_limit limit = {
                laci_magnitude(limits[i / 5]), ties[i % 5]};
            compare_collections(data + n % OFFSETS, n, limit, MOST);
            compare_collections(data + n % OFFSETS, n, limit, n / 4);
        }
    }
}

static void compare_surveys(
    const float *x, size_t n, laci_band band, size_t cap)
{
    uint32_t a[MOST + 1], b[MOST + 1];
    float u[MOST + 1], v[MOST + 1];
    uint8_t s[MOST / 8 + 2], t[MOST / 8 + 2];
    const size_t bytes = (n + 7) / 8;
    memset(b, 0x5a, sizeof(b));
    memset(v, 0x5a, sizeof(v));
    memset(t, 0x5a, sizeof(t));
    const laci_census one =
        laci_select_portable.survey(x, n, band, cap, s, u, a);
    const laci_census two = best()->select->survey(x, n, band, cap, t, v, b);
    assert_int_equal(one.above, two.above);
    assert_int_equal(one.within, two.within);
    assert_memory_equal(s, t, bytes);
    assert_int_equal(t[bytes], 0x5a);
    assert_int_equal(b[cap], GUARD);
    assert_int_equal(laci_bits_of(v[cap]), GUARD);
    if (one.within <= cap) {
        assert_memory_equal(a, b, one.within * sizeof(*a));
        assert_memory_equal(u, v, one.within * sizeof(*u));
    }
}

static void same_survey_for_every_size(void **state)
{
    (void)state;
    const laci_band bands[] = {
        {0, 0},
        {0, UINT32_C(1) << 31},
        {laci_magnitude(0.5f), laci_magnitude(1.0f)},
        {laci_magnitude(1.0f), laci_magnitude(1.0f) + 1},
        {laci_magnitude(1.25f), UINT32_C(1) << 31},
    };
    for (size_t n = 0; n <= MOST; n++) {
        for (size_t i = 0; i < sizeof(bands) / sizeof(bands[0]); i++) {
            compare_surveys(data + n % OFFSETS, n, bands[i], MOST);
            compare_surveys(data + n % OFFSETS, n, bands[i], n / 4);
        }
    }
}

// One in `part` bits, and words with none and with all.
static void fill_bits(uint8_t *bits, size_t n, uint32_t part)
{
    const lac_key key =
        lac_key_make(part, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
    memset(bits, 0, n / 8 + 1);
    for (uint32_t i = 0; i < n; i++) {
        const unsigned one = i / 64 % 5 == 2
                                 ? i / 64 % 2 == 0
                                 : lac_key_draw(&key, i) % part == 0;
        bits[i / 8] |= (uint8_t)(one << i % 8);
    }
}

static void same_expansion_for_every_size(void **state)
{
    (void)state;
    uint8_t bits[MOST / 8 + 2];
    uint32_t a[MOST + 1], b[MOST + 1];
    for (size_t n = 0; n <= MOST; n++) {
        for (uint32_t part = 1; part < 40; part += part) {
            const size_t cap = n % 3 == 0 ? n / 4 : n;
            uint8_t *const in = bits + n % 2;
            fill_bits(in, n, part);
            memset(b, 0x5a, sizeof(b));
            const size_t found = laci_select_portable.expand(in, n, cap, a);
            assert_int_equal(best()->select->expand(in, n, cap, b), found);
            assert_int_equal(b[cap], GUARD);
            assert_memory_equal(a, b, (found < cap ? found : cap) * sizeof(*a));
        }
    }
}

static void same_permutation_for_every_size(void **state)
{
    (void)state;
    for (uint32_t n = 0; n <= MOST; n++) {
        const unsigned bits = 9 + n % 24;
        const laci_permutation p = {
            .stream = {{n, ~n, 3 * n, 7}},
            .low_bits = bits - bits / 2,
            .high_bits = bits / 2,
        };
        uint32_t a[MOST + OFFSETS], b[MOST + OFFSETS];
        uint32_t *const u = a + n % OFFSETS, *const v = b + n % OFFSETS;
        for (uint32_t i = 0; i < n; i++) {
            u[i] = v[i] = i;
        }
        laci_select_portable.permute(&p, u, n);
        best()->select->permute(&p, v, n);
        assert_memory_equal(u, v, n * sizeof(*u));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(magnitudes_are_ordered_with_nan_on_top),
        cmocka_unit_test(ties_go_to_the_lower_index),
        cmocka_unit_test(too_many_are_reported_and_not_written),
        cmocka_unit_test(digits_are_counted_below_a_prefix),
        cmocka_unit_test(a_survey_separates_above_from_within),
        cmocka_unit_test(ones_of_a_bitmap_are_counted_beyond_the_room),
        cmocka_unit_test(a_permutation_permutes),
        cmocka_unit_test(same_counts_for_every_size),
        cmocka_unit_test(same_collection_for_every_size),
        cmocka_unit_test(same_survey_for_every_size),
        cmocka_unit_test(same_expansion_for_every_size),
        cmocka_unit_test(same_permutation_for_every_size),
    };
    return cmocka_run_group_tests_name("kernels/select", tests, setup, NULL);
}
