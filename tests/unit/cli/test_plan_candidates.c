// SPDX-License-Identifier: MIT
// The choices that a plan compares follow the registry of algorithms, and
// streaming fits the local steps.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/plan/candidates.h"
#include "lac_test.h"
#include "train/local_steps.h"

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

static void assert_streams(uint64_t steps, const char *expected)
{
    char spec[PLAN_STREAMING_SIZE];
    assert_true(plan_streaming(steps, "", spec));
    assert_string_equal(spec, expected);
}

static void streaming_has_few_fragments_and_a_short_delay(void **state)
{
    (void)state;
    char spec[PLAN_STREAMING_SIZE];
    assert_streams(2, "outer:fragments=1,delay=1,alpha=0.5");
    assert_streams(7, "outer:fragments=1,delay=5,alpha=0.5");
    assert_streams(8, "outer:fragments=4,delay=1,alpha=0.5");
    assert_streams(9, "outer:fragments=3,delay=2,alpha=0.5");
    assert_streams(10, "outer:fragments=2,delay=4,alpha=0.5");
    assert_streams(16, "outer:fragments=4,delay=3,alpha=0.5");
    assert_streams(500, "outer:fragments=4,delay=5,alpha=0.5");
    assert_true(plan_streaming(6, "inner=(powersgd),", spec));
    assert_string_equal(
        spec, "outer:inner=(powersgd),fragments=3,delay=1,alpha=0.5");
    assert_false(plan_streaming(0, "", spec));
    assert_false(plan_streaming(1, "", spec));
}

// By the check of train.
static void streaming_fits_every_number_of_local_steps(void **state)
{
    (void)state;
    for (uint64_t steps = 2; steps < 300; steps++) {
        char spec[PLAN_STREAMING_SIZE], text[32];
        unsigned fragments = 0, delay = 0;
        train_local_steps l = {0};
        assert_true(plan_streaming(steps, "", spec));
        assert_int_equal(
            sscanf(spec, "outer:fragments=%u,delay=%u", &fragments, &delay), 2);
        (void)snprintf(text, sizeof(text), "%" PRIu64, steps);
        assert_ok(train_local_steps_parse(text, &l));
        assert_ok(train_local_steps_stream(&l, fragments, delay));
        assert_between(delay, 1, 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(algorithms_come_with_their_usual_settings),
        cmocka_unit_test(a_new_algorithm_is_one_choice),
        cmocka_unit_test(an_algorithm_that_does_not_converge_is_left_out),
        cmocka_unit_test(streaming_has_few_fragments_and_a_short_delay),
        cmocka_unit_test(streaming_fits_every_number_of_local_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
