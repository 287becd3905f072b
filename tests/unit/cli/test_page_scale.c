// SPDX-License-Identifier: MIT
// Axes hold their values, and have a few round ticks.
#include <math.h>

#include "cli/page/scale.h"
#include "lac_test.h"

static page_scale scale_of(
    page_kind kind, double low, double high, page_form form)
{
    page_range range = PAGE_RANGE_EMPTY;
    page_scale s;
    page_range_add(&range, high);
    page_range_add(&range, low);
    assert_true(page_scale_make(kind, form, &range, &s));
    return s;
}

static void assert_ticks(
    const page_scale *s, const char *const *labels, size_t count)
{
    char text[PAGE_VALUE_SIZE];
    assert_int_equal(s->tick_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(page_scale_tick(s, i, text), labels[i]);
    }
}
#define ASSERT_TICKS(scale, ...)                                               \
    do {                                                                       \
        static const char *const labels[] = {__VA_ARGS__};                     \
        assert_ticks(scale, labels, sizeof(labels) / sizeof(labels[0]));       \
    } while (0)

static void ticks_are_round(void **state)
{
    (void)state;
    page_scale s = scale_of(PAGE_PERCENT, 0.652, 0.908, PAGE_LINEAR);
    ASSERT_TICKS(&s, "65 %", "70 %", "75 %", "80 %", "85 %", "90 %", "95 %");
    s = scale_of(PAGE_COUNT, 1, 3, PAGE_LINEAR);
    ASSERT_TICKS(&s, "1", "2", "3");
    s = scale_of(PAGE_NUMBER, 0.2, 1.1, PAGE_FROM_ZERO);
    ASSERT_TICKS(&s, "0", "0.2", "0.4", "0.6", "0.8", "1", "1.2");
    s = scale_of(PAGE_BYTES, 0, 4.1e6, PAGE_LINEAR);
    ASSERT_TICKS(&s, "0", "1 MB", "2 MB", "3 MB", "4 MB", "5 MB");
}

static void times_follow_the_clock(void **state)
{
    (void)state;
    page_scale s = scale_of(PAGE_SECONDS, 3, 40, PAGE_FROM_ZERO);
    ASSERT_TICKS(&s, "0", "10 s", "20 s", "30 s", "40 s");
    s = scale_of(PAGE_SECONDS, 3, 700, PAGE_FROM_ZERO);
    ASSERT_TICKS(&s, "0", "5 min", "10 min", "15 min");
    s = scale_of(PAGE_SECONDS, 3, 20000, PAGE_FROM_ZERO);
    ASSERT_TICKS(&s, "0", "2 h", "4 h", "6 h");
}

static void values_that_differ_much_have_a_logarithmic_axis(void **state)
{
    (void)state;
    page_scale s = scale_of(PAGE_BYTES, 900, 2e6, PAGE_WIDE);
    assert_true(s.logarithmic);
    ASSERT_TICKS(&s, "1 kB", "10 kB", "100 kB", "1 MB");
    assert_float_equal(page_scale_place(&s, 900), 0, 1e-12);
    assert_float_equal(page_scale_place(&s, 2e6), 1, 1e-12);
    assert_float_equal(page_scale_place(&s, sqrt(900 * 2e6)), 0.5, 1e-12);
    assert_true(isnan(page_scale_place(&s, 0)));
    assert_false(scale_of(PAGE_BYTES, 900, 20000, PAGE_WIDE).logarithmic);
    assert_false(scale_of(PAGE_BYTES, 900, 2e6, PAGE_LINEAR).logarithmic);
    assert_false(scale_of(PAGE_BYTES, 900, 2e6, PAGE_FROM_ZERO).logarithmic);
}

static void an_axis_of_errors_is_always_logarithmic(void **state)
{
    (void)state;
    page_scale s = scale_of(PAGE_NUMBER, 0.1, 2, PAGE_LOG);
    assert_true(s.logarithmic);
    ASSERT_TICKS(&s, "0.1", "0.2", "0.5", "1", "2");
    assert_true(page_scale_is_major(&s, 0) && page_scale_is_major(&s, 3));
    assert_false(page_scale_is_major(&s, 1) || page_scale_is_major(&s, 4));
    // Less than a decade has more ticks than a 1, a 2 or a 5.
    s = scale_of(PAGE_NUMBER, 0.3, 0.9, PAGE_LOG);
    assert_true(s.logarithmic);
    ASSERT_TICKS(&s, "0.2", "0.4", "0.6", "0.8", "1");
    s = scale_of(PAGE_NUMBER, 1, 9.5, PAGE_LOG);
    ASSERT_TICKS(&s, "2", "4", "6", "8", "10");
    assert_float_equal(page_scale_place(&s, 1), 0, 1e-12);
    // Nothing above 0 can be placed on one.
    assert_false(scale_of(PAGE_NUMBER, 0, 0, PAGE_LOG).logarithmic);
    assert_false(scale_of(PAGE_NUMBER, -1, 0, PAGE_LOG).logarithmic);
}

static void every_axis_holds_its_values(void **state)
{
    (void)state;
    for (int power = -140; power < 150; power += 7) {
        for (int digit = 1; digit < 100; digit += 3) {
            for (int kind = PAGE_NUMBER; kind <= PAGE_SECONDS; kind++) {
                const double low = pow(10, power), high = digit * low;
                const page_form form = digit % 2 == 0        ? PAGE_WIDE
                                       : kind == PAGE_NUMBER ? PAGE_LOG
                                                             : PAGE_LINEAR;
                const page_scale s = scale_of((page_kind)kind, low, high, form);
                assert_true(page_scale_place(&s, low) > -1e-6);
                assert_true(page_scale_place(&s, high) < 1 + 1e-6);
                assert_between(s.tick_count, 2, PAGE_TICKS_MAX);
            }
        }
    }
}

static void equal_values_have_an_axis(void **state)
{
    (void)state;
    static const double values[] = {0, 1, -3, 1e-150, 1e150, 0.5};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        const page_scale s =
            scale_of(PAGE_NUMBER, values[i], values[i], PAGE_WIDE);
        const double at = page_scale_place(&s, values[i]);
        assert_true(at > 0.2 && at < 0.8);
    }
}

static void values_that_are_not_finite_are_ignored(void **state)
{
    (void)state;
    page_range range = PAGE_RANGE_EMPTY;
    page_scale s;
    char text[PAGE_VALUE_SIZE];
    page_range_add(&range, (double)NAN);
    page_range_add(&range, (double)INFINITY);
    page_range_add(&range, -1e300);
    assert_false(page_scale_make(PAGE_NUMBER, PAGE_WIDE, &range, &s));
    page_range_add(&range, 1);
    assert_true(page_scale_make(PAGE_NUMBER, PAGE_WIDE, &range, &s));
    assert_true(isnan(page_scale_place(&s, (double)NAN)));
    assert_string_equal(page_value(PAGE_NUMBER, (double)NAN, text), "-");
    assert_string_equal(page_value(PAGE_BYTES, (double)INFINITY, text), "-");
}

static void values_have_units(void **state)
{
    (void)state;
    char text[PAGE_VALUE_SIZE];
    assert_string_equal(page_value(PAGE_PERCENT, 0.9075, text), "90.75 %");
    assert_string_equal(page_value(PAGE_BYTES, 20, text), "20 B");
    assert_string_equal(page_value(PAGE_BYTES, 1.25e6, text), "1.25 MB");
    assert_string_equal(page_value(PAGE_BYTES, 1e30, text), ">99 EB");
    assert_string_equal(page_value(PAGE_SECONDS, 0, text), "0 s");
    assert_string_equal(page_value(PAGE_SECONDS, 0.0123, text), "12.3 ms");
    assert_string_equal(page_value(PAGE_NUMBER, 0.27191, text), "0.2719");
    assert_string_equal(page_value(PAGE_COUNT, 123456, text), "123456");
    assert_string_equal(page_value(PAGE_COUNT, 5 / 3.0, text), "1.667");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_round),
        cmocka_unit_test(times_follow_the_clock),
        cmocka_unit_test(values_that_differ_much_have_a_logarithmic_axis),
        cmocka_unit_test(an_axis_of_errors_is_always_logarithmic),
        cmocka_unit_test(every_axis_holds_its_values),
        cmocka_unit_test(equal_values_have_an_axis),
        cmocka_unit_test(values_that_are_not_finite_are_ignored),
        cmocka_unit_test(values_have_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
