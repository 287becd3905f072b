// SPDX-License-Identifier: MIT
// The matrix that a vector is viewed as.
#include "lac_test.h"

#include "base/fold.h"

static void assert_folded(lac_shape given)
{
    const size_t n = lac_shape_values(given);
    const lac_shape m = laci_fold(given);
    assert_true(m.rows * m.rows >= n && (m.rows - 1) * (m.rows - 1) < n);
    assert_true(m.rows * m.cols >= n && m.rows * (m.cols - 1) < n);
}

static void vectors_become_nearly_square(void **state)
{
    (void)state;
    for (size_t n = 1; n < 2000; n++) {
        assert_folded((lac_shape){n, 1});
        assert_folded((lac_shape){1, n});
    }
}

// A double has 53 bits: the root of n + 1 is that of n.
static void huge_squares_are_exact(void **state)
{
    (void)state;
    for (size_t root = (size_t)1 << 24; root < LAC_VALUES_MAX / root;
         root *= 2) {
        for (size_t off = 0; off < 3; off++) {
            assert_folded((lac_shape){root * root - 1 + off, 1});
            assert_folded((lac_shape){(root - 1) * (root - 1) - 1 + off, 1});
        }
    }
}

static void matrices_and_empty_tensors_stay(void **state)
{
    (void)state;
    static const lac_shape shapes[] = {{2, 50}, {3, 3}, {0, 7}, {7, 0}, {1, 1}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        const lac_shape m = laci_fold(shapes[i]);
        assert_int_equal(m.rows, shapes[i].rows);
        assert_int_equal(m.cols, shapes[i].cols);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_become_nearly_square),
        cmocka_unit_test(huge_squares_are_exact),
        cmocka_unit_test(matrices_and_empty_tensors_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
