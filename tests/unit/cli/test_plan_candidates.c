// SPDX-License-Identifier: MIT
// The choices that a plan compares follow the registry of algorithms.
#include <string.h>

#include "cli/plan/candidates.h"
#include "lac_test.h"

static const lac_plugin first = {.name = "allreduce"};
static const lac_plugin second = {.name = "powersgd"};
static const lac_plugin third = {.name = "naive"};
static const lac_plugin fourth = {.name = "moniqua"};
static const lac_plugin fifth = {.name = "power"}; // not in the table
static const lac_plugin *const registry[] = {
    &first, &second, &third, &fourth, &fifth};

const lac_plugin *const *__wrap_lac_algorithms(size_t *count_out);
const lac_plugin *const *__wrap_lac_algorithms(size_t *count_out)
{
    *count_out = sizeof(registry) / sizeof(*registry);
    return registry;
}

// Choices of allreduce and powersgd, which the registry of this test has.
enum { USUAL = 5 };

static void algorithms_come_with_their_usual_settings(void **state)
{
    (void)state;
    plan_choice choices[PLAN_CHOICES_MAX];
    const size_t count = plan_choices(choices);
    static const char *const expected[USUAL] = {
        "allreduce", "powersgd:rank=1", "powersgd:rank=2", "powersgd:rank=4",
        "powersgd:rank=1,high=2"};
    assert_true(count > USUAL);
    for (size_t i = 0; i < USUAL; i++) {
        assert_string_equal(choices[i].algorithm, expected[i]);
        assert_null(choices[i].compressor);
        assert_false(choices[i].unknown);
    }
}

static void a_new_algorithm_is_one_choice(void **state)
{
    (void)state;
    plan_choice choices[PLAN_CHOICES_MAX];
    const size_t count = plan_choices(choices);
    assert_int_equal(count, USUAL + 1);
    assert_string_equal(choices[USUAL].algorithm, "power");
    assert_true(choices[USUAL].unknown);
}

static void an_algorithm_that_does_not_converge_is_left_out(void **state)
{
    (void)state;
    plan_choice choices[PLAN_CHOICES_MAX];
    const size_t count = plan_choices(choices);
    for (size_t i = 0; i < count; i++) {
        assert_string_not_equal(choices[i].algorithm, "naive");
        assert_string_not_equal(choices[i].algorithm, "moniqua");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(algorithms_come_with_their_usual_settings),
        cmocka_unit_test(a_new_algorithm_is_one_choice),
        cmocka_unit_test(an_algorithm_that_does_not_converge_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
