// SPDX-License-Identifier: MIT
// PowerSGD as mathematics: what one worker gets for one matrix. Values are
// near 1, products have up to 36 terms in float: 1e-5 of a norm leaves room for
// all roundings.
#include "cost.h"
#include "powersgd_test.h"

#include "topology/lapack.h"

// The lengths of the two strings come last.
typedef void dgesvd_function(
    const char *jobu, const char *jobvt, const int *m, const int *n, double *a,
    const int *lda, double *s, double *u, const int *ldu, double *vt,
    const int *ldvt, double *work, const int *lwork, int *info, size_t jobu_len,
    size_t jobvt_len);

static float g[ALL], result[ALL];

static void low_rank_matrices_are_exact_after_one_step(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "powersgd:rank=3", "powersgd:rank=4", "powersgd:3,error-feedback=no",
        "powersgd:rank=7"};
    for (size_t i = 0; i < 4; i++) {
        solo s = solo_open(specs[i]);
        fill_outer(g, 3, 0.7, 1);
        assert_ok(reduce_both(s.a, 0, g, result));
        assert_true(square_distance(g, result, N) < 1e-10 * square(g, N));
        solo_close(&s);
    }
}

static void vectors_are_exact(void **state)
{
    (void)state;
    solo s = solo_open("powersgd");
    fill_normal(g, ALL, 2);
    assert_ok(reduce_both(s.a, 0, g, result));
    assert_memory_equal(g + N, result + N, BIAS_N * sizeof(*g));
    assert_true(square_distance(g, result, N) > 0.1 * square(g, N));
    solo_close(&s);
}

// |M - Mhat|^2 = |M|^2 - |Mhat|^2: Mhat is a projection.
static void a_result_is_a_projection(void **state)
{
    (void)state;
    solo s = solo_open("powersgd:rank=4,error-feedback=no");
    fill_normal(g, ALL, 3);
    for (uint64_t round = 0; round < 3; round++) {
        assert_ok(reduce_both(s.a, round, g, result));
        const double all = square(g, N);
        const double left = square_distance(g, result, N);
        assert_true(fabs(left - (all - square(result, N))) < 1e-5 * all);
    }
    solo_close(&s);
}

// The squared distance of the matrix in g to the best one of rank r, and the
// ratio of its singular values r + 1 and r.
static double best_error(int r, double *ratio_out)
{
    // Row by row is the transposed matrix column by column.
    const int rows = COLS, cols = ROWS, one = 1, room = 4096;
    static double a[N], values[ROWS], work[4096];
    int info;
    for (size_t i = 0; i < N; i++) {
        a[i] = (double)g[i];
    }
    laci_lapack_function *dgesvd = NULL;
    assert_ok(laci_lapack_load("test", LACI_LAPACK, "dgesvd_", &dgesvd));
    ((dgesvd_function *)dgesvd)(
        "N", "N", &rows, &cols, a, &rows, values, NULL, &one, NULL, &one, work,
        &room, &info, (size_t)1, (size_t)1);
    assert_int_equal(info, 0);
    double sum = 0;
    for (int i = r; i < ROWS; i++) {
        sum += values[i] * values[i];
    }
    *ratio_out = values[r] / values[r - 1];
    return sum;
}

// Angles to the singular vectors shrink by (sigma_{r+1} / sigma_r)^2 in a step,
// and the error beyond the best is quadratic in them. Single steps do better or
// worse, as long as smaller values matter too: a factor of 4 in all.
static void a_constant_gradient_gives_the_best_approximation(void **state)
{
    (void)state;
    enum { RANK = 2, STEPS = 12 };
    solo s = solo_open("powersgd:rank=2,error-feedback=no");
    double ratio, first = 0;
    fill_outer(g, 6, 0.6, 11);
    const double best = best_error(RANK, &ratio);
    assert_true(ratio > 0.4 && ratio < 0.9);
    for (uint64_t round = 0; round < STEPS; round++) {
        assert_ok(reduce_both(s.a, round, g, result));
        const double excess = square_distance(g, result, N) - best;
        first = round == 0 ? excess : first;
        assert_true(excess > -1e-5 * best);
        assert_true(
            excess < 4 * first * pow(ratio, 4 * (double)round) + 1e-5 * best);
    }
    solo_close(&s);
}

// From a random start, each iteration is a step of the power method: the excess
// shrinks as above, and no round depends on the one before.
static void iterations_give_the_best_approximation_at_once(void **state)
{
    (void)state;
    enum { RANK = 2 };
    static const char *const specs[] = {
        "powersgd:rank=2,warm-start=no,error-feedback=no",
        "powersgd:rank=2,warm-start=no,error-feedback=no,iterations=4",
        "powersgd:rank=2,warm-start=no,error-feedback=no,iterations=12"};
    static const double steps[] = {0, 3, 11};
    double ratio, first = 0;
    fill_outer(g, 6, 0.6, 11);
    const double best = best_error(RANK, &ratio);
    for (size_t i = 0; i < 3; i++) {
        solo s = solo_open(specs[i]);
        assert_ok(reduce_both(s.a, 0, g, result));
        const double excess = square_distance(g, result, N) - best;
        print_message("%s: %g of %g\n", specs[i], excess, best);
        first = i == 0 ? excess : first;
        assert_true(excess > -1e-5 * best);
        assert_true(
            excess < 4 * first * pow(ratio, 4 * steps[i]) + 1e-5 * best);
        solo_close(&s);
    }
    assert_true(first > 0.05 * best);
}

// With warm start, rounds of one iteration on the same matrix do the same as
// one round of several, but for rounding.
static void iterations_are_rounds_on_the_same_matrix(void **state)
{
    (void)state;
    float once[ALL];
    solo several = solo_open("powersgd:rank=3,error-feedback=no,iterations=5");
    solo single = solo_open("powersgd:rank=3,error-feedback=no");
    fill_outer(g, 6, 0.6, 11);
    assert_ok(reduce_both(several.a, 0, g, once));
    for (uint64_t round = 0; round < 5; round++) {
        assert_ok(reduce_both(single.a, round, g, result));
    }
    assert_true(square_distance(once, result, N) < 1e-9 * square(g, N));
    solo_close(&several);
    solo_close(&single);
}

static void iterations_of_the_alternating_form_are_refused(void **state)
{
    (void)state;
    assert_refused(
        "powersgd:alternating=yes,iterations=2", NULL, 1,
        "powersgd: iterations is 2 with alternating=yes, expected 1");
}

// Half a step a round, but the same way.
static void the_alternating_form_gets_there_too(void **state)
{
    (void)state;
    enum { RANK = 2, STEPS = 24 };
    solo s = solo_open("powersgd:rank=2,error-feedback=no,alternating=yes");
    double ratio, error = 0;
    fill_outer(g, 6, 0.6, 11);
    const double best = best_error(RANK, &ratio);
    for (uint64_t round = 0; round < STEPS; round++) {
        assert_ok(reduce_both(s.a, round, g, result));
        error = square_distance(g, result, N);
        assert_true(error < (1 + 1e-6) * square(g, N));
    }
    assert_true(fabs(error - best) < 1e-4 * best);
    solo_close(&s);
}

// With a constant gradient the mean of the results goes to it: what is left out
// comes later, and the memory stays bounded.
static void error_feedback_delivers_everything(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "powersgd", "powersgd:alternating=yes", "powersgd:warm-start=no"};
    enum { STEPS = 400 };
    for (size_t k = 0; k < 3; k++) {
        solo s = solo_open(specs[k]);
        static float mean[N];
        memset(mean, 0, sizeof(mean));
        fill_outer(g, 6, 0.6, 21);
        for (uint64_t round = 0; round < STEPS; round++) {
            assert_ok(reduce_both(s.a, round, g, result));
            for (size_t i = 0; i < N; i++) {
                mean[i] += result[i] / STEPS;
            }
        }
        assert_true(square_distance(g, mean, N) < 0.01 * square(g, N));
        solo_close(&s);
    }
}

static void a_cold_start_is_worse(void **state)
{
    (void)state;
    double errors[2];
    for (size_t k = 0; k < 2; k++) {
        solo s = solo_open(
            k == 0 ? "powersgd:rank=2,error-feedback=no"
                   : "powersgd:rank=2,error-feedback=no,warm_start=no");
        fill_outer(g, 6, 0.8, 31);
        for (uint64_t round = 0; round < 20; round++) {
            assert_ok(reduce_both(s.a, round, g, result));
        }
        errors[k] = square_distance(g, result, N);
        solo_close(&s);
    }
    assert_true(errors[0] < 0.95 * errors[1]);
}

static void rounds_before_the_start_are_exact(void **state)
{
    (void)state;
    solo s = solo_open("powersgd:start-iteration=2");
    fill_normal(g, ALL, 4);
    for (uint64_t round = 0; round < 4; round++) {
        assert_ok(reduce_both(s.a, round, g, result));
        const bool exact = memcmp(g, result, sizeof(g)) == 0;
        assert_int_equal(exact, round < 2);
    }
    solo_close(&s);
}

// 24 x 36 at rank 2 is 120 of 864 values: 7.2 times fewer.
static void what_would_not_shrink_enough_goes_raw(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "powersgd:rank=2,min-compression-rate=7.1",
        "powersgd:rank=2,min-compression-rate=7.2", "powersgd:rank=15"};
    fill_normal(g, ALL, 5);
    for (size_t i = 0; i < 3; i++) {
        solo s = solo_open(specs[i]);
        assert_ok(reduce_both(s.a, 0, g, result));
        const bool exact = memcmp(g, result, sizeof(g)) == 0;
        assert_int_equal(exact, i > 0);
        solo_close(&s);
    }
}

static void other_names_are_taken(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "powersgd:rank=3,start-iteration=1,error-feedback=no,warm-start=no,"
        "min-compression-rate=2",
        "powersgd:matrix_approximation_rank=3,start_powerSGD_iter=1,"
        "use_error_feedback=no,warm_start=no,min_compression_rate=2"};
    float results[2][ALL];
    fill_normal(g, ALL, 6);
    for (size_t i = 0; i < 2; i++) {
        solo s = solo_open(specs[i]);
        for (uint64_t round = 0; round < 3; round++) {
            assert_ok(reduce_both(s.a, round, g, results[i]));
        }
        assert_int_equal(s.a->fields.count, 0);
        solo_close(&s);
    }
    assert_memory_equal(results[0], results[1], sizeof(results[0]));
    lac_algorithm *a;
    lac_layout *layout;
    lac_algorithm_options o = lac_algorithm_options_default();
    assert_ok(lac_layout_open(&layout, both_tensors, 2));
    o.layout = layout;
    o.spec = "powersgd:rank=33";
    assert_status(lac_algorithm_open(&a, &o), LAC_ERR_INVALID);
    lac_layout_close(layout);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(low_rank_matrices_are_exact_after_one_step),
        cmocka_unit_test(vectors_are_exact),
        cmocka_unit_test(a_result_is_a_projection),
        cmocka_unit_test(a_constant_gradient_gives_the_best_approximation),
        cmocka_unit_test(iterations_give_the_best_approximation_at_once),
        cmocka_unit_test(iterations_are_rounds_on_the_same_matrix),
        cmocka_unit_test(iterations_of_the_alternating_form_are_refused),
        cmocka_unit_test(the_alternating_form_gets_there_too),
        cmocka_unit_test(error_feedback_delivers_everything),
        cmocka_unit_test(a_cold_start_is_worse),
        cmocka_unit_test(rounds_before_the_start_are_exact),
        cmocka_unit_test(what_would_not_shrink_enough_goes_raw),
        cmocka_unit_test(other_names_are_taken),
    };
    return cmocka_run_group_tests_name("powersgd", tests, NULL, NULL);
}
