// SPDX-License-Identifier: MIT
// Sums and combinations of vectors: every set of kernels gives the same bits,
// for every size and every alignment, and the norm is right for all floats.
#include "kernels_test.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/vector.h"

enum { SIZE_MAX_TESTED = 1100, SHIFTS = 8 };

static float x[SIZE_MAX_TESTED + SHIFTS], y[SIZE_MAX_TESTED + SHIFTS];

static void fill(void)
{
    const lac_key key = {1, 2, LAC_SCOPE_SHARED};
    for (uint32_t i = 0; i < SIZE_MAX_TESTED + SHIFTS; i++) {
        x[i] = lac_key_normal(&key, i);
        y[i] = lac_key_normal(&key, i + 10000);
    }
}

static void assert_same_double(double a, double b)
{
    assert_memory_equal(&a, &b, sizeof(a));
}

static void fast_equals_portable(void **state)
{
    (void)state;
    const laci_kernels *const fast = fast_or_skip();
    const laci_vector_kernels *const a = fast->vector;
    const laci_vector_kernels *const b = &laci_vector_portable;
    fill();
    uint8_t bytes[4 * SIZE_MAX_TESTED + 8];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i % 4 == 3 ? 0x3f : 37 * i); // small floats
    }
    for (size_t n = 0; n <= SIZE_MAX_TESTED; n++) {
        const float *const from = x + n % SHIFTS;
        float left[SIZE_MAX_TESTED], right[SIZE_MAX_TESTED];
        assert_same_double(
            a->sum_magnitudes(from, n), b->sum_magnitudes(from, n));
        assert_same_double(a->sum_squares(from, n), b->sum_squares(from, n));
        assert_int_equal(a->max_magnitude(from, n), b->max_magnitude(from, n));
        assert_int_equal(
            a->max_payload(bytes + n % 5, n), b->max_payload(bytes + n % 5, n));
        // An address in a payload is a multiple of 4, or it is not.
        const size_t at = n % 3 == 0 ? n % 31 : 4 * (n % 8);
        uint8_t written[4 * SIZE_MAX_TESTED + 32] = {0};
        assert_int_equal(
            a->stream_payload(from, written + at, n),
            b->max_magnitude(from, n));
        assert_memory_equal(written + at, from, n * sizeof(*from));
        assert_int_equal(written[at + n * sizeof(*from)], 0);
        memcpy(left, y, sizeof(left));
        memcpy(right, y, sizeof(right));
        a->add(from, left, n);
        b->add(from, right, n);
        a->add_scaled(0.3f, from, left, n);
        b->add_scaled(0.3f, from, right, n);
        a->add_payload(-0.7f, bytes + n % 5, left, n);
        b->add_payload(-0.7f, bytes + n % 5, right, n);
        assert_memory_equal(left, right, sizeof(left));
    }
}

static void sums_are_right(void **state)
{
    (void)state;
    const laci_vector_kernels *const best = laci_kernels_best()->vector;
    fill();
    double magnitudes = 0, squares = 0, largest = 0;
    for (size_t i = 0; i < SIZE_MAX_TESTED; i++) {
        magnitudes += fabs((double)x[i]);
        squares += (double)x[i] * (double)x[i];
        largest = fmax(largest, fabs((double)x[i]));
    }
    // Sixteen additions a lane and five levels of pairs: 21 roundings.
    const double slack = 21 * 0x1p-24;
    assert_true(
        fabs(best->sum_magnitudes(x, SIZE_MAX_TESTED) / magnitudes - 1) <
        slack);
    assert_true(
        fabs(best->sum_squares(x, SIZE_MAX_TESTED) / squares - 1) <
        slack + 0x1p-23);
    const uint32_t bits = best->max_magnitude(x, SIZE_MAX_TESTED);
    float max;
    memcpy(&max, &bits, sizeof(max));
    assert_true((double)max == largest);
}

// One value of many that is not finite is found, wherever it is.
static void a_value_that_is_not_finite_is_found(void **state)
{
    (void)state;
    static const float bad[] = {INFINITY, -INFINITY, NAN, -NAN};
    const laci_kernels *const best = laci_kernels_best();
    fill();
    for (size_t n = 1; n <= 100; n++) {
        float values[100];
        memcpy(values, x, sizeof(values));
        assert_true(laci_all_finite(best, values, n));
        values[n - 1] = FLT_MAX;
        assert_true(laci_all_finite(best, values, n));
        values[(7 * n) % n] = bad[n % 4];
        assert_false(laci_all_finite(best, values, n));
        assert_true(
            best->vector->max_payload((const uint8_t *)values, n) >=
            LACI_INFINITY_BITS);
    }
}

static void the_norm_is_right_for_all_floats(void **state)
{
    (void)state;
    static const struct {
        float values[4];
        float norm;
    } cases[] = {
        {{0, 0, 0, 0}, 0},
        {{3, -4, 0, 0}, 5},
        {{3e-30f, 4e-30f, 0, 0}, 5e-30f},
        {{3e30f, 4e30f, 0, 0}, 5e30f},
        {{0x1p-149f, 0, 0, 0}, 0x1p-149f},
        {{FLT_MAX, FLT_MAX, 0, 0}, FLT_MAX},
        {{0x1p127f, 0, 0, 1}, 0x1p127f},
    };
    const laci_vector_kernels *const best = laci_kernels_best()->vector;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const float norm = laci_norm(best, cases[i].values, 4);
        const float error = fabsf(norm - cases[i].norm);
        assert_true(error <= cases[i].norm * 0x1p-23f);
    }
    assert_true(isnan(laci_norm(best, (float[]){1, INFINITY}, 2)));
    assert_true(isnan(laci_norm(best, (float[]){1, NAN}, 2)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_equals_portable),
        cmocka_unit_test(sums_are_right),
        cmocka_unit_test(a_value_that_is_not_finite_is_found),
        cmocka_unit_test(the_norm_is_right_for_all_floats),
    };
    return cmocka_run_group_tests_name("vector", tests, NULL, NULL);
}
