// SPDX-License-Identifier: MIT
// Which figures of a run count as slower than those of a saved one, and which
// of two results counts.
#include "cli/bench/compare.h"
#include "lac_test.h"

// Times in memcpys of one second.
static cli_bench_result result(double encode, double decode_add, double add)
{
    return (cli_bench_result){
        .encode = {encode, 1},
        .decode_add = {decode_add, 1},
        .encode_add = {add, 1},
    };
}

static void a_tenth_more_is_not_slower_and_more_than_that_is(void **state)
{
    (void)state;
    const cli_bench_row row = {.memcpys = {1, 2, 4}};
    const cli_bench_result same = result(1.09, 2.19, 4.39);
    const cli_bench_result slow[] = {
        result(1.11, 1, 1), result(1, 2.21, 1), result(1, 1, 4.41)};
    assert_false(cli_bench_entry_is_slower(&row, &same));
    for (size_t i = 0; i < 3; i++) {
        assert_true(cli_bench_entry_is_slower(&row, &slow[i]));
    }
}

static void a_step_is_compared_in_memcpys(void **state)
{
    (void)state;
    const cli_bench_row row = {.is_algorithm = true, .memcpys = {2}};
    cli_bench_step step = {.seconds = 8.7, .memcpy = 4};
    assert_false(cli_bench_step_is_slower(&row, &step));
    step.seconds = 8.9;
    assert_true(cli_bench_step_is_slower(&row, &step));
}

static void of_two_results_each_faster_figure_counts(void **state)
{
    (void)state;
    cli_bench_result best = result(1, 5, 3);
    const cli_bench_result again = {
        .encode = {4, 2}, .decode_add = {6, 2}, .encode_add = {1, 0.25}};
    cli_bench_result_improve(&best, &again);
    assert_true(best.encode.seconds == 1 && best.encode.memcpy == 1);
    assert_true(best.decode_add.seconds == 6 && best.decode_add.memcpy == 2);
    assert_true(best.encode_add.seconds == 3 && best.encode_add.memcpy == 1);
}

static void of_two_steps_the_faster_counts(void **state)
{
    (void)state;
    cli_bench_step best = {.seconds = 6, .memcpy = 2};
    const cli_bench_step slower = {.seconds = 4, .memcpy = 1};
    const cli_bench_step faster = {.seconds = 10, .memcpy = 4};
    cli_bench_step_improve(&best, &slower);
    assert_true(best.seconds == 6 && best.memcpy == 2);
    cli_bench_step_improve(&best, &faster);
    assert_true(best.seconds == 10 && best.memcpy == 4);
}

// A compressor with three figures and a step.
static lac_status check(double now)
{
    const cli_bench_saved saved = {.path = "f"};
    const cli_bench_row compressor = {.memcpys = {1, 1, 1}};
    const cli_bench_row algorithm = {.is_algorithm = true, .memcpys = {1}};
    const cli_bench_row *const entry_rows[] = {&compressor};
    const cli_bench_row *const step_rows[] = {&algorithm};
    const cli_bench_entry entry = {.result = result(1, now, 1)};
    const cli_bench_step step = {.seconds = now, .memcpy = 1};
    const cli_bench_report report = {
        .entries = &entry, .count = 1, .steps = &step, .step_count = 1};
    const cli_bench_comparison c = {&saved, &report, entry_rows, step_rows};
    return cli_bench_comparison_check(&c);
}

static void a_run_fails_if_a_figure_is_slower(void **state)
{
    (void)state;
    assert_ok(check(1));
    assert_ok(check(0.1));
    assert_fails(
        check(2), LAC_ERR_INVALID,
        "bench: 2 of 4 figures are more than 10 % slower than in f");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tenth_more_is_not_slower_and_more_than_that_is),
        cmocka_unit_test(a_step_is_compared_in_memcpys),
        cmocka_unit_test(of_two_results_each_faster_figure_counts),
        cmocka_unit_test(of_two_steps_the_faster_counts),
        cmocka_unit_test(a_run_fails_if_a_figure_is_slower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
