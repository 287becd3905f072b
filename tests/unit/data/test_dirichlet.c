// SPDX-License-Identifier: MIT
// Dirichlet shares and the functions that compute them.
#include <math.h>

#include "data/dirichlet.h"
#include "lac_test.h"

enum { SHARES = 4, SETS = 4000 };

// Half a unit in the last place of ln 2 times the exponent, and a few of the
// series: 1e-15 of the larger of the result and 1.
static void logarithm_and_exponential_are_those_of_libm(void **state)
{
    (void)state;
    for (int i = -600; i <= 600; i++) {
        const double x = exp(i * 1.09);
        assert_true(
            fabs(data_log(x) - log(x)) <= 1e-15 * fmax(1, fabs(log(x))));
        // An error of the argument's reduction, 700 * 1e-16, is relative here.
        const double y = -fabs(i * 1.09);
        assert_true(fabs(data_exp(y) - exp(y)) <= 5e-13 * exp(y));
    }
    assert_true(data_exp(-1e300) == 0);
    assert_true(data_exp(0) == 1 && data_log(1) == 0);
}

// Mean 1/k and variance (k-1) / k^2 / (k a + 1). The mean of n = 4000 has the
// deviation sqrt(variance / n), the mean of squared distances d has
// sqrt((mean of d^4 - variance^2) / n); five of each are allowed.
static void shares_have_the_moments_of_the_law(void **state)
{
    static const double alphas[] = {0.1, 0.5, 1, 7};
    (void)state;
    for (size_t a = 0; a < 4; a++) {
        const double k = SHARES;
        const double variance = (k - 1) / (k * k) / (k * alphas[a] + 1);
        double sum = 0, squares = 0, fourths = 0;
        for (uint64_t set = 0; set < SETS; set++) {
            double shares[SHARES], total = 0;
            const lac_key key =
                lac_key_make(1, LAC_PURPOSE_SPLIT, set, lac_scope_shared(), a);
            data_dirichlet(&key, alphas[a], SHARES, shares);
            for (int i = 0; i < SHARES; i++) {
                assert_true(shares[i] >= 0);
                total += shares[i];
            }
            assert_true(fabs(total - 1) < 1e-14);
            sum += shares[1];
            const double square = pow(shares[1] - 1 / k, 2);
            squares += square;
            fourths += square * square;
        }
        assert_true(fabs(sum / SETS - 1 / k) < 5 * sqrt(variance / SETS));
        const double spread = fourths / SETS - variance * variance;
        assert_true(fabs(squares / SETS - variance) < 5 * sqrt(spread / SETS));
    }
}

static void tiny_alphas_give_all_to_one(void **state)
{
    (void)state;
    for (uint64_t set = 0; set < 100; set++) {
        double shares[SHARES], most = 0;
        const lac_key key =
            lac_key_make(1, LAC_PURPOSE_SPLIT, set, lac_scope_shared(), 9);
        data_dirichlet(&key, 1e-6, SHARES, shares);
        for (int i = 0; i < SHARES; i++) {
            assert_true(isfinite(shares[i]));
            most = fmax(most, shares[i]);
        }
        assert_true(most > 0.999);
    }
}

// To a few roundings of logarithms up to 1e3, where a share is a number at
// all.
static void logarithms_are_those_of_the_shares(void **state)
{
    static const double alphas[] = {1e-6, 0.01, 1, 100};
    (void)state;
    for (size_t a = 0; a < 4; a++) {
        double shares[SHARES], logs[SHARES];
        const lac_key key =
            lac_key_make(1, LAC_PURPOSE_SPLIT, 3, lac_scope_shared(), a);
        data_dirichlet(&key, alphas[a], SHARES, shares);
        data_log_dirichlet(&key, alphas[a], SHARES, logs);
        for (int i = 0; i < SHARES; i++) {
            assert_true(isfinite(logs[i]) && logs[i] < 1e-15);
            if (shares[i] > 0) {
                assert_true(fabs(logs[i] - log(shares[i])) < 1e-12);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logarithm_and_exponential_are_those_of_libm),
        cmocka_unit_test(shares_have_the_moments_of_the_law),
        cmocka_unit_test(tiny_alphas_give_all_to_one),
        cmocka_unit_test(logarithms_are_those_of_the_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
