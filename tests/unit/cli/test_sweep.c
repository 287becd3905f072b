// SPDX-License-Identifier: MIT
// The values of a sweep, and the specs with them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/average/sweep.h"
#include "lac_test.h"

// Asserts that a sweep has these values, separated by spaces.
static void assert_values(const char *text, const char *spec, const char *all)
{
    cli_sweep sweep;
    char found[512] = "";
    assert_int_equal(cli_sweep_open(&sweep, text, spec, NULL), LAC_OK);
    for (size_t i = 0; i < sweep.count; i++) {
        const size_t used = strlen(found);
        (void)snprintf(
            found + used, sizeof(found) - used, "%s%s", i == 0 ? "" : " ",
            sweep.points[i].value);
        assert_true(
            sweep.points[i].number == strtod(sweep.points[i].value, NULL));
    }
    assert_string_equal(found, all);
    cli_sweep_close(&sweep);
}

// Asserts that the specs of value 3 are these; a compressor may be NULL.
static void assert_specs(
    const char *text, const char *algorithm, const char *compressor,
    const char *new_algorithm, const char *new_compressor)
{
    cli_sweep sweep;
    assert_int_equal(
        cli_sweep_open(&sweep, text, algorithm, compressor), LAC_OK);
    assert_string_equal(sweep.points[0].algorithm, new_algorithm);
    if (compressor == NULL) {
        assert_null(sweep.points[0].compressor);
    } else {
        assert_string_equal(sweep.points[0].compressor, new_compressor);
    }
    cli_sweep_close(&sweep);
}

static void assert_refused(
    const char *text, const char *algorithm, const char *compressor,
    const char *message)
{
    cli_sweep sweep;
    assert_int_equal(
        cli_sweep_open(&sweep, text, algorithm, compressor), LAC_ERR_INVALID);
    assert_non_null(strstr(lac_error_message(), message));
    cli_sweep_close(&sweep);
}

static void a_range_is_logarithmic(void **state)
{
    (void)state;
    assert_values(
        "gamma=0.01..0.1", "choco",
        "0.01 0.01292 0.01668 0.02154 0.02783 0.03594 0.04642 0.05995 0.07743 "
        "0.1");
    assert_values(
        "gamma=1e-9..1", "choco",
        "1e-09 1e-08 1e-07 1e-06 1e-05 0.0001 0.001 0.01 0.1 1");
}

static void the_ends_of_a_range_keep_their_digits(void **state)
{
    (void)state;
    assert_values(
        "gamma=0.123456..0.123789", "choco",
        "0.123456 0.1235 0.1236 0.1237 "
        "0.123789");
}

static void a_range_of_whole_numbers_has_no_repetition(void **state)
{
    (void)state;
    assert_values("rank=1..9", "powergossip", "1 2 3 4 6 7 9");
    assert_values("rank=1..3", "powergossip", "1 2 3");
}

static void a_list_stays_as_it_is(void **state)
{
    (void)state;
    assert_values("gamma=0.4,0.10,1e-3", "choco", "0.4 0.10 1e-3");
    assert_values("gamma=2", "choco", "2");
    assert_values("rank=4,2,2", "powergossip", "4 2 2");
}

static void a_setting_is_added_to_its_spec(void **state)
{
    (void)state;
    assert_specs("gamma=3", "choco", "sign", "choco:gamma=3", "sign");
    assert_specs("rank=3", "powergossip", NULL, "powergossip:rank=3", NULL);
    assert_specs(
        "ratio=3", "choco:gamma=1", "top-k", "choco:gamma=1", "top-k:ratio=3");
    assert_specs(
        "rate=3", "powergossip:2,warm-start=no", NULL,
        "powergossip:2,warm-start=no,rate=3", NULL);
}

static void a_value_is_replaced(void **state)
{
    (void)state;
    assert_specs("gamma=3", "choco:gamma=1", "sign", "choco:gamma=3", "sign");
    assert_specs("gamma=3", "choco:1", "sign", "choco:gamma=3", "sign");
    assert_specs(
        "gamma=3", "choco:consensus_stepsize=1", "sign", "choco:gamma=3",
        "sign");
    assert_specs(
        "rank=3", "powergossip:rate=1,rank=2,fold=yes", NULL,
        "powergossip:rate=1,fold=yes,rank=3", NULL);
    assert_specs(
        "iterations=3", "powergossip:2,iterations=1", NULL,
        "powergossip:2,iterations=3", NULL);
}

static void parts_of_a_compressor_are_found(void **state)
{
    (void)state;
    assert_specs(
        "levels=3", "choco", "top-k:0.1+natural-dithering:norm=2", "choco",
        "top-k:0.1+natural-dithering:norm=2,levels=3");
    assert_specs(
        "ratio=3", "choco", "top-k:0.1+natural", "choco",
        "top-k:ratio=3+natural");
    assert_specs("levels=3", "choco", "qsgd", "choco", "qsgd:levels=3");
}

static void other_names_of_a_setting_are_known(void **state)
{
    (void)state;
    cli_sweep sweep;
    assert_int_equal(
        cli_sweep_open(&sweep, "consensus_stepsize=1", "choco", "sign"),
        LAC_OK);
    assert_string_equal(sweep.setting, "gamma");
    assert_string_equal(sweep.general.algorithm, "choco:gamma=...");
    assert_string_equal(sweep.general.compressor, "sign");
    cli_sweep_close(&sweep);
}

static void settings_that_cannot_be_swept_are_refused(void **state)
{
    (void)state;
    assert_refused(
        "rat=1", "choco", "top-k+natural",
        "no setting with a number is named \"rat\", expected gamma, trigger, "
        "ratio");
    assert_refused(
        "fold=1", "powergossip", NULL,
        "named \"fold\", expected rank, iterations, rate");
    assert_refused(
        "x=1", "allreduce", NULL,
        "neither algorithm nor compressor has a setting that is a number");
    assert_refused(
        "rank=1", "choco", "random-k+low-rank",
        "2 parts of the specs have the setting rank");
}

static void values_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "gamma=",
        "gamma=a",
        "gamma=1,",
        "gamma=,1",
        "gamma=1,,2",
        "gamma=nan",
        "gamma=0x1",
        "gamma=1e999",
        "gamma=0..1",
        "gamma=1..1",
        "gamma=2..1",
        "gamma=-2..-1",
        "gamma=1..",
        "gamma=..1",
        "gamma=1..2,3",
        "gamma=1..2..3",
        "gamma= 1",
        "gamma=auto",
        "gamma=0.1000000000000000000000000000000000001",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_refused(
            texts[i], "choco", NULL, "expected FROM..TO with 0 < FROM < TO");
    }
    assert_refused("gamma", "choco", NULL, "expected SETTING=FROM..TO");
    assert_refused("=1", "choco", NULL, "expected SETTING=FROM..TO");
}

static void a_list_has_at_most_a_hundred_values(void **state)
{
    (void)state;
    char text[256] = "gamma=1";
    cli_sweep sweep;
    for (size_t i = 1; i < 100; i++) {
        memcpy(text + strlen(text), ",1", 3);
    }
    assert_int_equal(cli_sweep_open(&sweep, text, "choco", NULL), LAC_OK);
    assert_int_equal(sweep.count, 100);
    cli_sweep_close(&sweep);
    memcpy(text + strlen(text), ",1", 3);
    assert_refused(text, "choco", NULL, "at most 100 numbers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_is_logarithmic),
        cmocka_unit_test(the_ends_of_a_range_keep_their_digits),
        cmocka_unit_test(a_range_of_whole_numbers_has_no_repetition),
        cmocka_unit_test(a_list_stays_as_it_is),
        cmocka_unit_test(a_setting_is_added_to_its_spec),
        cmocka_unit_test(a_value_is_replaced),
        cmocka_unit_test(parts_of_a_compressor_are_found),
        cmocka_unit_test(other_names_of_a_setting_are_known),
        cmocka_unit_test(settings_that_cannot_be_swept_are_refused),
        cmocka_unit_test(values_that_are_none_are_refused),
        cmocka_unit_test(a_list_has_at_most_a_hundred_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
