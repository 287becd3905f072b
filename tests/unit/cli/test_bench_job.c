// SPDX-License-Identifier: MIT
// What is measured once, and what twice. The measurements are canned: the first
// result of a compressor or algorithm takes 3 memcpys, the second 2, the third
// would take 1.
#include "cli/bench/job.h"
#include "lac_test.h"

static size_t measured; // calls for the compressor or algorithm in turn

lac_status __wrap_cli_bench_measure(
    cli_bench *b, lac_compressor *c, cli_bench_result *out);
lac_status __wrap_cli_bench_step_measure(
    cli_bench_step *step, const cli_bench_step_options *options);

lac_status __wrap_cli_bench_measure(
    cli_bench *b, lac_compressor *c, cli_bench_result *out)
{
    (void)b;
    (void)c;
    const cli_bench_time time = {3 - (double)measured++, 1};
    *out = (cli_bench_result){
        .encode = time, .decode_add = time, .encode_add = time};
    return LAC_OK;
}

lac_status __wrap_cli_bench_step_measure(
    cli_bench_step *step, const cli_bench_step_options *options)
{
    (void)options;
    step->seconds = 3 - (double)measured++;
    step->memcpy = 1;
    return LAC_OK;
}

static const cli_bench_saved saved;

// Measures what a row has, compares with it, and returns the figure.
static double measure_row(const cli_bench_row *row)
{
    cli_bench_job j = {
        .values = 10,
        .runs = 1,
        .kernels = "portable",
        .threads = 1,
        .saved = &saved};
    measured = 0;
    assert_ok(cli_bench_job_add_row(&j, row));
    assert_ok(cli_bench_job_measure(&j));
    const double figure = row->is_algorithm
                              ? j.steps[0].seconds
                              : j.entries[0].result.encode_add.seconds;
    cli_bench_job_close(&j);
    return figure;
}

static cli_bench_row compressor(double encode_add)
{
    return (cli_bench_row){.spec = "sign", .memcpys = {5, 5, encode_add}};
}

static cli_bench_row algorithm(double figure)
{
    return (cli_bench_row){
        .is_algorithm = true,
        .spec = "choco",
        .compressor = "sign",
        .model = "lenet",
        .layout = "lenet",
        .values = 61706,
        .degree = 1,
        .memcpys = {figure},
    };
}

static void what_is_not_slower_is_measured_once(void **state)
{
    (void)state;
    const cli_bench_row rows[] = {compressor(2.9), algorithm(2.9)};
    for (size_t i = 0; i < 2; i++) {
        assert_true(measure_row(&rows[i]) == 3);
        assert_int_equal(measured, 1);
    }
}

static void what_is_slower_is_measured_twice_and_no_more(void **state)
{
    (void)state;
    const cli_bench_row rows[] = {
        compressor(2.5), algorithm(2.5), // the second result is good
        compressor(1.5), algorithm(1.5), // and here it is not
    };
    for (size_t i = 0; i < 4; i++) {
        assert_true(measure_row(&rows[i]) == 2);
        assert_int_equal(measured, 2);
    }
}

static void without_a_saved_run_everything_is_measured_once(void **state)
{
    (void)state;
    cli_bench_job j = {
        .values = 10, .runs = 1, .kernels = "portable", .threads = 1};
    measured = 0;
    assert_ok(cli_bench_job_add_compressor(&j, "sign"));
    assert_ok(cli_bench_job_add_compressor(&j, "natural"));
    assert_ok(cli_bench_job_measure(&j));
    assert_int_equal(measured, 2);
    cli_bench_job_close(&j);
}

static void a_layout_that_has_changed_is_refused(void **state)
{
    (void)state;
    cli_bench_job j = {
        .values = 10,
        .runs = 1,
        .kernels = "portable",
        .threads = 1,
        .saved = &saved};
    cli_bench_row row = algorithm(1);
    row.values = 61705;
    assert_fails(
        cli_bench_job_add_row(&j, &row), LAC_ERR_INVALID,
        "lenet has 61706 values, expected 61705");
    cli_bench_job_close(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_slower_is_measured_once),
        cmocka_unit_test(what_is_slower_is_measured_twice_and_no_more),
        cmocka_unit_test(without_a_saved_run_everything_is_measured_once),
        cmocka_unit_test(a_layout_that_has_changed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
