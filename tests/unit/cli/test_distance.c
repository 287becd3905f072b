// SPDX-License-Identifier: MIT
// Distances to the mean, and when values have grown too far.
#include <float.h>
#include <math.h>

#include "cli/average/distance.h"
#include "lac_test.h"

static void magnitude_is_that_of_the_largest_value(void **state)
{
    (void)state;
    const float x[] = {0.5f, -3, 2};
    assert_true(cli_magnitude(x, 3) == 3);
    assert_true(cli_magnitude(x, 0) == 0);
}

static void magnitude_of_nan_is_infinite(void **state)
{
    (void)state;
    const float x[] = {1, -NAN, 2};
    assert_true(isinf(cli_magnitude(x, 3)));
}

static void distances_are_squared_and_averaged_over_rows(void **state)
{
    (void)state;
    const float a[] = {1, 0}, b[] = {3, 4};
    const float *const rows[] = {a, b};
    double mean[2], error, drift;
    cli_mean(rows, 2, 2, mean);
    assert_true(mean[0] == 2 && mean[1] == 2);
    mean[1] = 1; // the rows' own mean is 1 away from this
    cli_distance(rows, 2, 2, mean, &error, &drift);
    assert_true(error == ((1 + 1) + (1 + 9)) / 2.0);
    assert_true(drift == 1);
}

static void a_million_times_the_start_is_the_limit(void **state)
{
    (void)state;
    assert_false(cli_diverged(3, 3e6));
    assert_true(cli_diverged(3, 3.1e6));
    assert_false(cli_diverged(1e-20, 1e-14));
    assert_true(cli_diverged(1e-20, 1.1e-14));
}

static void the_limit_from_zero_is_a_million(void **state)
{
    (void)state;
    assert_false(cli_diverged(0, 1e6));
    assert_true(cli_diverged(0, 1.1e6));
}

static void values_that_are_not_finite_have_diverged(void **state)
{
    (void)state;
    const double largest = (double)FLT_MAX;
    assert_true(cli_diverged(largest, (double)INFINITY));
    assert_true(cli_diverged(0, (double)NAN));
    assert_false(cli_diverged(largest, largest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(magnitude_is_that_of_the_largest_value),
        cmocka_unit_test(magnitude_of_nan_is_infinite),
        cmocka_unit_test(distances_are_squared_and_averaged_over_rows),
        cmocka_unit_test(a_million_times_the_start_is_the_limit),
        cmocka_unit_test(the_limit_from_zero_is_a_million),
        cmocka_unit_test(values_that_are_not_finite_have_diverged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
