// SPDX-License-Identifier: MIT
// Learning rates: each schedule, its warm-up, and the milestones of users.
#include <math.h>
#include <string.h>

#include "lac_test.h"
#include "train/schedule.h"

enum { STEPS = 10 };

// A few roundings of double.
static void assert_rate(
    const train_schedule *schedule, uint64_t step, double expected)
{
    const double rate = train_rate(schedule, step, STEPS);
    if (fabs(rate - expected) > 8 * 0x1p-53 * schedule->rate) {
        fail_msg(
            "step %llu: %.17g, expected %.17g", (unsigned long long)step, rate,
            expected);
    }
}

static void a_constant_rate_stays(void **state)
{
    (void)state;
    const train_schedule s = {.course = TRAIN_CONSTANT, .rate = 0.3};
    assert_rate(&s, 0, 0.3);
    assert_rate(&s, 1000000, 0.3);
}

static void every_milestone_divides_by_ten(void **state)
{
    (void)state;
    train_schedule s = {.course = TRAIN_STEP, .rate = 0.5, .epochs = 9};
    assert_ok(train_milestones_parse("3,5.5", &s));
    assert_rate(&s, 0, 0.5);
    assert_rate(&s, 29, 0.5);
    assert_rate(&s, 30, 0.05);
    assert_rate(&s, 54, 0.05);
    assert_rate(&s, 55, 0.005);
    assert_rate(&s, 1000, 0.005);
}

static void milestones_are_those_of_step_alone(void **state)
{
    (void)state;
    train_schedule s = {.course = TRAIN_CONSTANT, .rate = 1, .epochs = 9};
    assert_ok(train_milestones_parse("3", &s));
    assert_rate(&s, 40, 1);
}

static void a_cosine_falls_to_nothing_and_stays_there(void **state)
{
    (void)state;
    const train_schedule s = {.course = TRAIN_COSINE, .rate = 2, .epochs = 6};
    assert_rate(&s, 0, 2);
    assert_rate(&s, 20, 1.5);
    assert_rate(&s, 30, 1);
    assert_rate(&s, 40, 0.5);
    for (uint64_t i = 1; i < 60; i++) {
        assert_true(train_rate(&s, i, STEPS) < train_rate(&s, i - 1, STEPS));
    }
    assert_true(train_rate(&s, 60, STEPS) == 0);
    assert_true(train_rate(&s, 90, STEPS) == 0);
}

// a / (lambda (t + b)) for a = 0.1, b = 2000 and lambda = 1/32561, as in the
// experiments of CHOCO (ICML 2019), step by step.
static void an_inverse_rate_falls_with_the_steps(void **state)
{
    (void)state;
    const double lambda = 1.0 / 32561;
    train_schedule s = {.epochs = 3};
    assert_ok(train_course_parse("inverse:0.1,2000", &s));
    assert_int_equal(s.course, TRAIN_INVERSE);
    s.rate = train_inverse_rate(&s, lambda);
    static const uint64_t steps[] = {0, 1, 15, 2000, 1000000};
    for (size_t i = 0; i < 5; i++) {
        assert_rate(&s, steps[i], 0.1 / (lambda * ((double)steps[i] + 2000)));
    }
}

static void courses_are_read(void **state)
{
    static const struct {
        const char *text;
        train_course course;
        double a, b;
    } cases[] = {
        {"constant", TRAIN_CONSTANT, 7, 8},
        {"step", TRAIN_STEP, 7, 8},
        {"cosine", TRAIN_COSINE, 7, 8},
        {"inverse:1e-15,.5", TRAIN_INVERSE, 1e-15, 0.5},
        {"inverse:3,2E3", TRAIN_INVERSE, 3, 2000},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        train_schedule s = {.rate = 1, .a = 7, .b = 8};
        assert_ok(train_course_parse(cases[i].text, &s));
        assert_int_equal(s.course, cases[i].course);
        assert_true(s.a == cases[i].a && s.b == cases[i].b && s.rate == 1);
    }
}

static void other_courses_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "linear",
        "cosines",
        "inverse",
        "inverse:",
        "inverse:1",
        "inverse:1,",
        "inverse:,1",
        "inverse:1,2,3",
        "inverse:1 ,2",
        "inverse: 1,2",
        "inverse:0,1",
        "inverse:1,0",
        "inverse:-1,1",
        "inverse:1,-1",
        "inverse:nan,1",
        "inverse:1,inf",
        "inverse:1e999,1",
        "inverse:0x1,1"};
    (void)state;
    train_schedule s = {.course = TRAIN_STEP, .a = 7, .b = 8};
    const train_schedule before = s;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_status(train_course_parse(wrong[i], &s), LAC_ERR_INVALID);
        assert_memory_equal(&s, &before, sizeof(s));
    }
    assert_fails(
        train_course_parse("linear", &s), LAC_ERR_INVALID,
        "--schedule is \"linear\", expected constant, step, cosine or "
        "inverse:A,B with numbers above 0");
}

static void it_warms_up_step_by_step(void **state)
{
    (void)state;
    const train_schedule s = {.course = TRAIN_CONSTANT, .rate = 4, .warmup = 2};
    assert_rate(&s, 0, 0.2);
    assert_rate(&s, 1, 0.4);
    assert_rate(&s, 18, 3.8);
    assert_rate(&s, 19, 4);
    assert_rate(&s, 20, 4);
    assert_rate(&s, 21, 4);
}

static void a_part_of_an_epoch_warms_up_too(void **state)
{
    (void)state;
    train_schedule s = {.course = TRAIN_CONSTANT, .rate = 4, .warmup = 0.4};
    assert_rate(&s, 0, 1);
    assert_rate(&s, 3, 4);
    s.warmup = 0.01;
    assert_rate(&s, 0, 4);
}

static void warming_up_multiplies_the_course(void **state)
{
    (void)state;
    train_schedule s = {
        .course = TRAIN_COSINE, .rate = 2, .warmup = 4, .epochs = 6};
    assert_rate(&s, 20, 1.5 * 21 / 40);
    s.course = TRAIN_STEP;
    assert_ok(train_milestones_parse("1", &s));
    assert_rate(&s, 9, 2 * 10.0 / 40);
    assert_rate(&s, 10, 0.2 * 11 / 40);
}

static void milestones_are_read(void **state)
{
    (void)state;
    train_schedule s = {.rate = 7};
    assert_ok(train_milestones_parse("150,225", &s));
    assert_int_equal(s.milestone_count, 2);
    assert_true(s.milestones[0] == 150 && s.milestones[1] == 225);
    assert_true(s.rate == 7);
    assert_ok(train_milestones_parse("0.5", &s));
    assert_int_equal(s.milestone_count, 1);
    assert_true(s.milestones[0] == 0.5);
    assert_ok(train_milestones_parse("", &s));
    assert_int_equal(s.milestone_count, 0);
    assert_ok(
        train_milestones_parse("1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", &s));
    assert_int_equal(s.milestone_count, TRAIN_MILESTONES_MAX);
}

static void other_milestones_are_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"x", "milestones: 'x' is not a number of epochs"},
        {"150,", "milestones: '' is not a number of epochs"},
        {",150", "milestones: '' is not a number of epochs"},
        {"150,,225", "milestones: '' is not a number of epochs"},
        {"-1", "milestones: '-1' is not a number of epochs"},
        {"1, 2", "milestones: ' 2' is not a number of epochs"},
        {"inf", "milestones: 'inf' is not a number of epochs"},
        {"0x10", "milestones: '0x10' is not a number of epochs"},
        {"1.2.3", "milestones: '1.2.3' is not a number of epochs"},
        {".", "milestones: '.' is not a number of epochs"},
        {"1000000000000000000000000000000",
         "milestones: '100000000000000000000000' is not a number of epochs"},
        {"225,150", "milestones: 150 follows 225, expected a later epoch"},
        {"150,150", "milestones: 150 follows 150, expected a later epoch"},
        {"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
         "milestones: too many, expected at most 16"},
    };
    (void)state;
    train_schedule s = {.rate = 1};
    assert_ok(train_milestones_parse("3,4", &s));
    const train_schedule before = s;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_fails(
            train_milestones_parse(cases[i].text, &s), LAC_ERR_INVALID,
            cases[i].message);
        assert_memory_equal(&s, &before, sizeof(s));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constant_rate_stays),
        cmocka_unit_test(every_milestone_divides_by_ten),
        cmocka_unit_test(milestones_are_those_of_step_alone),
        cmocka_unit_test(a_cosine_falls_to_nothing_and_stays_there),
        cmocka_unit_test(an_inverse_rate_falls_with_the_steps),
        cmocka_unit_test(courses_are_read),
        cmocka_unit_test(other_courses_are_refused),
        cmocka_unit_test(it_warms_up_step_by_step),
        cmocka_unit_test(a_part_of_an_epoch_warms_up_too),
        cmocka_unit_test(warming_up_multiplies_the_course),
        cmocka_unit_test(milestones_are_read),
        cmocka_unit_test(other_milestones_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
