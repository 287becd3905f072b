// SPDX-License-Identifier: MIT
// A few curves do not stretch an axis; a spread of all of them does.
#include "cli/report/robust.h"
#include "lac_test.h"

enum { CURVES_MAX = 16 };

static cli_interval range_of(const cli_interval *curves, size_t count)
{
    double lows[CURVES_MAX], highs[CURVES_MAX];
    for (size_t i = 0; i < count; i++) {
        lows[i] = curves[i].low;
        highs[i] = curves[i].high;
    }
    return cli_robust_range(lows, highs, count);
}

static void assert_range(cli_interval range, double low, double high)
{
    assert_float_equal(range.low, low, 1e-9);
    assert_float_equal(range.high, high, 1e-9);
}

// Accuracies of 11 runs from 75 to 91 %, of which `failed` stay below 54 %.
static size_t accuracies(cli_interval curves[CURVES_MAX], size_t failed)
{
    for (size_t i = 0; i < 11; i++) {
        curves[i] =
            i < failed
                ? (cli_interval){20 + (double)i, 50 + (double)i}
                : (cli_interval){75 + (double)i / 2, 91 - (double)i / 10};
    }
    return 11;
}

static void failed_runs_do_not_flatten_the_others(void **state)
{
    (void)state;
    cli_interval curves[CURVES_MAX];
    for (size_t failed = 1; failed <= 3; failed++) {
        const size_t count = accuracies(curves, failed);
        assert_range(
            range_of(curves, count), 75 + (double)failed / 2,
            91 - (double)failed / 10);
    }
}

static void many_failed_runs_are_the_result(void **state)
{
    (void)state;
    cli_interval curves[CURVES_MAX];
    const size_t count = accuracies(curves, 4);
    assert_range(range_of(curves, count), 20, 90.6);
}

static void outliers_may_be_on_both_sides_and_of_several_sizes(void **state)
{
    (void)state;
    static const cli_interval curves[] = {
        {1, 2}, {1.1, 2}, {1, 1e9}, {1, 2.1}, {1.2, 2},
        {1, 2}, {-40, 2}, {1, 50},  {1, 2},   {1.1, 1.9}};
    assert_range(range_of(curves, 10), 1, 2.1);
}

static void few_curves_are_shown_whole(void **state)
{
    (void)state;
    static const cli_interval curves[] = {{1, 2}, {1, 2}, {1, 1000}, {1, 2}};
    assert_range(range_of(curves, 1), 1, 2);
    assert_range(range_of(curves, 3), 1, 1000);
    assert_range(range_of(curves, 4), 1, 2);
}

static void a_spread_of_all_curves_is_shown_whole(void **state)
{
    (void)state;
    cli_interval curves[CURVES_MAX];
    for (size_t i = 0; i < CURVES_MAX; i++) {
        curves[i] = (cli_interval){(double)i, (double)i};
    }
    for (size_t count = 1; count <= CURVES_MAX; count++) {
        assert_range(range_of(curves, count), 0, (double)(count - 1));
    }
    for (size_t i = 0; i < CURVES_MAX; i++) {
        curves[i] = (cli_interval){7, 7};
    }
    assert_range(range_of(curves, CURVES_MAX), 7, 7);
    curves[3].high = 70;
    assert_range(range_of(curves, CURVES_MAX), 7, 70);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failed_runs_do_not_flatten_the_others),
        cmocka_unit_test(many_failed_runs_are_the_result),
        cmocka_unit_test(outliers_may_be_on_both_sides_and_of_several_sizes),
        cmocka_unit_test(few_curves_are_shown_whole),
        cmocka_unit_test(a_spread_of_all_curves_is_shown_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
