// SPDX-License-Identifier: MIT
// The kernels that choose values: what they do, on the portable ones, and that
// the others give the same bits for every size and alignment.
#include "lac_test.h"

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

static const laci_kernels *best(void)
{
    return laci_kernels_best();
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
        cmocka_unit_test(a_permutation_permutes),
        cmocka_unit_test(same_counts_for_every_size),
        cmocka_unit_test(same_collection_for_every_size),
        cmocka_unit_test(same_permutation_for_every_size),
    };
    return cmocka_run_group_tests_name("kernels/select", tests, setup, NULL);
}
