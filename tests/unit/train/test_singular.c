// SPDX-License-Identifier: MIT
// Singular values of matrices whose singular values are known.
#include "train/singular.h"

#include <math.h>

#include "lac_test.h"

enum { SHORT = 6, LONG = 11 };

// Multiplies a (rows x cols) from the left by the reflection
// I - 2 v v^T / v^T v, with a fixed v.
static void reflect(double *a, size_t rows, size_t cols, double shift)
{
    double v[LONG], square = 0;
    for (size_t i = 0; i < rows; i++) {
        v[i] = sin((double)i + shift);
        square += v[i] * v[i];
    }
    for (size_t j = 0; j < cols; j++) {
        double product = 0;
        for (size_t i = 0; i < rows; i++) {
            product += v[i] * a[i * cols + j];
        }
        for (size_t i = 0; i < rows; i++) {
            a[i * cols + j] -= 2 * product / square * v[i];
        }
    }
}

static void transpose(const double *a, size_t rows, size_t cols, double *out)
{
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < cols; j++) {
            out[j * rows + i] = a[i * cols + j];
        }
    }
}

// Checks the values of U S V^T with two reflections U and V, wide and tall. The
// error is that of the rounding to floats, 2^-24 of the norm of the matrix,
// which is below 2.5 times the largest value here.
static void check_values(const double expected[SHORT])
{
    const double tolerance = 2.5 * 0x1p-24 * expected[0];
    double a[SHORT * LONG] = {0}, b[SHORT * LONG], found[SHORT];
    float wide[SHORT * LONG], tall[SHORT * LONG];
    for (size_t i = 0; i < SHORT; i++) {
        a[i * LONG + i] = expected[i];
    }
    reflect(a, SHORT, LONG, 1);
    transpose(a, SHORT, LONG, b);
    reflect(b, LONG, SHORT, 2);
    transpose(b, LONG, SHORT, a);
    for (size_t i = 0; i < sizeof(a) / sizeof(a[0]); i++) {
        wide[i] = (float)a[i];
        tall[i] = (float)b[i];
    }
    for (int is_tall = 0; is_tall < 2; is_tall++) {
        const lac_shape shape = {
            is_tall ? LONG : SHORT, is_tall ? SHORT : LONG};
        assert_ok(train_singular_values(is_tall ? tall : wide, shape, found));
        for (size_t i = 0; i < SHORT; i++) {
            assert_true(fabs(found[i] - expected[i]) <= tolerance);
        }
    }
}

static void known_values_are_found(void **state)
{
    (void)state;
    check_values((const double[]){5, 3, 2, 1, 0.5, 0.25});
    check_values((const double[]){1, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5});
    check_values((const double[]){4e-9, 3e-9, 2e-9, 2e-9, 1e-9, 0});
}

static void equal_values_and_low_ranks_are_found(void **state)
{
    (void)state;
    check_values((const double[]){2, 2, 2, 2, 2, 2});
    check_values((const double[]){7, 0, 0, 0, 0, 0});
    check_values((const double[]){0, 0, 0, 0, 0, 0});
}

// [[1, 1], [0, 1]]: the golden ratio and its inverse.
static void a_shear_has_the_golden_ratio(void **state)
{
    (void)state;
    const float a[] = {1, 1, 0, 1};
    double found[2];
    assert_ok(train_singular_values(a, (lac_shape){2, 2}, found));
    assert_true(fabs(found[0] - (1 + sqrt(5)) / 2) < 1e-14);
    assert_true(fabs(found[1] - (sqrt(5) - 1) / 2) < 1e-14);
}

static void a_vector_has_its_norm(void **state)
{
    (void)state;
    double found = 0;
    const float a[] = {3, 4, 12};
    assert_ok(train_singular_values(a, (lac_shape){3, 1}, &found));
    assert_true(fabs(found - 13) < 1e-14);
    assert_ok(train_singular_values(a, (lac_shape){1, 3}, &found));
    assert_true(fabs(found - 13) < 1e-14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values_are_found),
        cmocka_unit_test(equal_values_and_low_ranks_are_found),
        cmocka_unit_test(a_shear_has_the_golden_ratio),
        cmocka_unit_test(a_vector_has_its_norm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
