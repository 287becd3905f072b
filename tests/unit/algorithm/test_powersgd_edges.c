// SPDX-License-Identifier: MIT
// PowerSGD where numbers are difficult: nothing becomes NaN, nothing is lost.
#include "powersgd_test.h"

static float g[ALL], result[ALL];

// Ranks with and without a fused kernel, and both forms.
static const char *const specs[] = {
    "powersgd", "powersgd:rank=4", "powersgd:rank=9",
    "powersgd:rank=4,alternating=yes", "powersgd:rank=2,error-feedback=no"};

enum { SPECS = sizeof(specs) / sizeof(*specs) };

static void assert_finite_state(const lac_algorithm *a)
{
    for (size_t i = 0; i < a->fields.count; i++) {
        if (a->fields.fields[i].name != NULL) {
            assert_finite(
                a->fields.fields[i].values, a->fields.fields[i].count);
        }
    }
}

// After zeros comes a matrix of rank 1, which any rank gets right.
static void zeros_leave_everything_finite_and_the_next_step_works(void **state)
{
    (void)state;
    for (size_t k = 0; k < SPECS; k++) {
        solo s = solo_open(specs[k]);
        memset(g, 0, sizeof(g));
        for (uint64_t round = 0; round < 3; round++) {
            assert_ok(reduce_both(s.a, round, g, result));
            assert_true(square_distance(g, result, ALL) == 0);
            assert_finite_state(s.a);
        }
        fill_outer(g, 1, 1, 1);
        assert_ok(reduce_both(s.a, 3, g, result));
        assert_finite_state(s.a);
        if (strstr(specs[k], "alternating") == NULL) {
            assert_true(square_distance(g, result, N) < 1e-10 * square(g, N));
        } else {
            assert_true(square(result, N) > 0.01 * square(g, N));
        }
        solo_close(&s);
    }
}

// Zeros after something: the memory is delivered, and then all is zero.
static void a_memory_drains_to_zero(void **state)
{
    (void)state;
    solo s = solo_open("powersgd:rank=4");
    fill_outer(g, 6, 0.5, 5);
    assert_ok(reduce_both(s.a, 0, g, result));
    const double all = square(g, N);
    memset(g, 0, sizeof(g));
    for (uint64_t round = 1; round < 12; round++) {
        assert_ok(reduce_both(s.a, round, g, result));
        assert_finite_state(s.a);
        assert_finite(result, ALL);
    }
    assert_true(square(result, N) < 1e-10 * all);
    solo_close(&s);
}

// The second matrix has room for other directions than those of the first.
static void a_low_rank_matrix_leaves_room_for_the_next(void **state)
{
    (void)state;
    for (size_t k = 1; k < 3; k++) {
        solo s = solo_open(specs[k]);
        fill_outer(g, 1, 1, 1);
        for (uint64_t round = 0; round < 5; round++) {
            assert_ok(reduce_both(s.a, round, g, result));
            assert_finite_state(s.a);
            assert_true(square_distance(g, result, N) < 1e-10 * square(g, N));
        }
        fill_outer(g, 4, 1, 7);
        assert_ok(reduce_both(s.a, 5, g, result));
        assert_true(square_distance(g, result, N) < 1e-8 * square(g, N));
        solo_close(&s);
    }
}

// A matrix of rank 3 at any scale a float has room for; values below 1e-38 have
// few digits left.
static void the_scale_does_not_matter(void **state)
{
    (void)state;
    static const double scales[] = {1e-30, 1e30, 1e-36, 1e35, 1e-42};
    for (size_t i = 0; i < sizeof(scales) / sizeof(*scales); i++) {
        for (size_t k = 1; k < SPECS; k++) {
            solo s = solo_open(specs[k]);
            fill_outer(g, 2, 0.7, 3);
            for (size_t j = 0; j < N; j++) {
                g[j] = (float)((double)g[j] * scales[i]);
            }
            for (uint64_t round = 0; round < 4; round++) {
                assert_ok(reduce_both(s.a, round, g, result));
                assert_finite(result, ALL);
                assert_finite_state(s.a);
                if (scales[i] > 1e-37 && strstr(specs[k], "alt") == NULL) {
                    assert_true(
                        square_distance(g, result, N) < 1e-8 * square(g, N));
                }
            }
            solo_close(&s);
        }
    }
}

// From large to small and back: columns of the last round have the wrong scale.
static void scales_may_change(void **state)
{
    (void)state;
    static const double scales[] = {1e30, 1e-30, 1, 1e-38, 1e25};
    solo s = solo_open("powersgd:rank=4,error-feedback=no");
    for (uint64_t round = 0; round < 5; round++) {
        fill_outer(g, 2, 0.7, 3 + round);
        for (size_t j = 0; j < N; j++) {
            g[j] = (float)((double)g[j] * scales[round]);
        }
        assert_ok(reduce_both(s.a, round, g, result));
        assert_finite_state(s.a);
        assert_true(square_distance(g, result, N) < 1e-3 * square(g, N));
    }
    solo_close(&s);
}

static void too_large_a_matrix_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    for (size_t k = 0; k < SPECS; k++) {
        solo s = solo_open(specs[k]);
        fill_normal(g, ALL, 8);
        assert_ok(reduce_both(s.a, 0, g, result));
        uint8_t *const before = state_of(s.a);
        for (size_t i = 0; i < N; i++) {
            g[i] = 3e38f;
        }
        assert_fails(
            reduce_both(s.a, 1, g, result), LAC_ERR_INVALID,
            "powersgd: worker 0 has values in x that overflow its error "
            "memory");
        uint8_t *const after = state_of(s.a);
        assert_memory_equal(before, after, lac_algorithm_state_size(s.a));
        free(before);
        free(after);
        fill_normal(g, ALL, 9);
        assert_ok(reduce_both(s.a, 1, g, result));
        assert_finite(result, ALL);
        solo_close(&s);
    }
}

// One value anywhere in a matrix is found, though nobody looks at all of them.
static void a_value_that_is_not_finite_is_found(void **state)
{
    (void)state;
    static const float values[] = {NAN, INFINITY, -INFINITY};
    for (size_t k = 0; k < SPECS; k++) {
        solo s = solo_open(specs[k]);
        fill_normal(g, ALL, 8);
        assert_ok(reduce_both(s.a, 0, g, result));
        uint8_t *const before = state_of(s.a);
        for (size_t i = 0; i < N; i += 53) {
            const float kept = g[i];
            g[i] = values[i % 3];
            assert_fails(
                reduce_both(s.a, 1, g, result), LAC_ERR_INVALID,
                "powersgd: worker 0 has a value in x that is not finite");
            g[i] = kept;
        }
        uint8_t *const after = state_of(s.a);
        assert_memory_equal(before, after, lac_algorithm_state_size(s.a));
        free(before);
        free(after);
        assert_ok(reduce_both(s.a, 1, g, result));
        assert_finite(result, ALL);
        solo_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeros_leave_everything_finite_and_the_next_step_works),
        cmocka_unit_test(a_memory_drains_to_zero),
        cmocka_unit_test(a_low_rank_matrix_leaves_room_for_the_next),
        cmocka_unit_test(the_scale_does_not_matter),
        cmocka_unit_test(scales_may_change),
        cmocka_unit_test(too_large_a_matrix_is_refused_and_changes_nothing),
        cmocka_unit_test(a_value_that_is_not_finite_is_found),
    };
    return cmocka_run_group_tests_name("powersgd_edges", tests, NULL, NULL);
}
