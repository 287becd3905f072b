// SPDX-License-Identifier: MIT
// Files with the output of `laconic bench --json`: what is read from a good
// one, and the messages about bad ones.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/saved.h"
#include "lac_test.h"

enum { TEXT_SIZE = 16384 };

static const char head[] =
    "{\"version\": \"0.1.0\", \"processor\": \"P\", \"processor_id\": \"V 1\", "
    "\"kernels\": \"avx2\", \"prefetch\": true, \"threads\": 2, \"values\": "
    "100, \"runs\": 7, ";
static const char rows[] =
    "\"compressors\": ["
    "{\"spec\": \"sign\", \"encode_memcpys\": 0.5, "
    "\"decode_add_memcpys\": 0.25, \"encode_add_memcpys\": 0.75}], "
    "\"algorithms\": ["
    "{\"spec\": \"choco\", \"compressor\": \"sign\", \"model\": \"lenet\", "
    "\"layout\": \"lenet\", \"values\": 61706, \"degree\": 1, "
    "\"memcpy_ratio\": 2.5}, "
    "{\"spec\": \"choco\", \"compressor\": null, \"model\": null, "
    "\"layout\": \"x.txt\", \"values\": 6, \"degree\": 255, "
    "\"memcpy_ratio\": 3.5}]}";

static const char *good(char text[TEXT_SIZE])
{
    (void)snprintf(text, TEXT_SIZE, "%s%s", head, rows);
    return text;
}

static void parse_good(cli_bench_saved *out)
{
    char text[TEXT_SIZE];
    good(text);
    assert_ok(cli_bench_saved_parse("f", text, strlen(text), out));
}

static void the_figures_and_settings_are_read(void **state)
{
    (void)state;
    cli_bench_saved s;
    parse_good(&s);
    assert_string_equal(s.version, "0.1.0");
    assert_string_equal(s.processor, "P");
    assert_string_equal(s.processor_id, "V 1");
    assert_string_equal(s.kernels, "avx2");
    assert_true(s.prefetch);
    assert_int_equal(s.threads, 2);
    assert_int_equal(s.values, 100);
    assert_int_equal(s.runs, 7);
    assert_int_equal(s.count, 3);
    assert_false(s.rows[0].is_algorithm);
    assert_true(s.rows[0].memcpys[0] == 0.5);
    assert_true(s.rows[0].memcpys[1] == 0.25);
    assert_true(s.rows[0].memcpys[2] == 0.75);
    assert_true(s.rows[1].is_algorithm);
    assert_string_equal(s.rows[1].compressor, "sign");
    assert_string_equal(s.rows[1].model, "lenet");
    assert_int_equal(s.rows[1].values, 61706);
    assert_null(s.rows[2].compressor);
    assert_null(s.rows[2].model);
    assert_int_equal(s.rows[2].degree, 255);
    assert_true(s.rows[2].memcpys[0] == 3.5);
    cli_bench_saved_free(&s);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    char text[TEXT_SIZE];
    const size_t len = strlen(good(text));
    for (size_t i = 0; i < len; i++) {
        cli_bench_saved s;
        // A sanitizer finds reads past the end.
        char *const part = malloc(i == 0 ? 1 : i);
        assert_non_null(part);
        memcpy(part, text, i);
        assert_fails(
            cli_bench_saved_parse("f", part, i, &s), LAC_ERR_CORRUPT,
            "f: is not one JSON object, or is truncated, expected the output "
            "of `laconic bench --json`");
        assert_null(s.object);
        free(part);
    }
}

// Replaces the only occurrence of `from` in a good file.
static void refuses(const char *from, const char *to, const char *message)
{
    char text[TEXT_SIZE], changed[TEXT_SIZE];
    cli_bench_saved s;
    const char *const at = strstr(good(text), from);
    assert_non_null(at);
    (void)snprintf(
        changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, to,
        at + strlen(from));
    assert_fails(
        cli_bench_saved_parse("f", changed, strlen(changed), &s),
        LAC_ERR_CORRUPT, message);
    assert_null(s.object);
}

static void a_wrong_value_is_named_with_what_was_expected(void **state)
{
    (void)state;
    refuses(
        "\"version\"", "\"x\"", "f: \"version\" is missing, expected a text");
    refuses("\"P\"", "7", "f: \"processor\" is 7, expected a text");
    refuses("true", "null", "f: \"prefetch\" is null, expected true or false");
    refuses(
        "100", "0.5",
        "f: \"values\" is 0.5, expected a whole number from 1 to 1073741824");
    refuses(
        "100", "1e400",
        "f: \"values\" is inf, expected a whole number from 1 to 1073741824");
    refuses(
        "100", "[]",
        "f: \"values\" is a list, expected a whole number from 1 to "
        "1073741824");
    refuses(
        "\"threads\": 2", "\"threads\": 0",
        "f: \"threads\" is 0, expected a whole number from 1 to 256");
    refuses(
        "\"runs\": 7", "\"runs\": 10001",
        "f: \"runs\" is 10001, expected a whole number from 1 to 10000");
    refuses(
        "0.25", "null",
        "f: \"decode_add_memcpys\" of compressor 1 is null, expected a number "
        "above 0");
    refuses(
        "0.75", "-1",
        "f: \"encode_add_memcpys\" of compressor 1 is -1, expected a number "
        "above 0");
    refuses(
        "3.5", "\"\\u001b[31m\"",
        "f: \"memcpy_ratio\" of algorithm 2 is \"?[31m\", expected a number "
        "above 0");
    refuses(
        "255", "256",
        "f: \"degree\" of algorithm 2 is 256, expected a whole number from 0 "
        "to 255");
    refuses(
        "\"compressor\": \"sign\"", "\"compressor\": {}",
        "f: \"compressor\" of algorithm 1 is an object, expected a text or "
        "null");
    refuses(
        "[{\"spec\": \"sign\"", "[true, {\"spec\": \"sign\"",
        "f: \"spec\" of compressor 1 is missing, expected a text");
    refuses(
        "\"algorithms\": [", "\"algorithms\": {}, \"x\": [",
        "f: \"algorithms\" is an object, expected a list");
}

static void a_file_without_rows_is_refused(void **state)
{
    (void)state;
    char text[TEXT_SIZE];
    cli_bench_saved s;
    (void)snprintf(
        text, sizeof(text), "%s\"compressors\": [], \"algorithms\": []}", head);
    assert_fails(
        cli_bench_saved_parse("f", text, strlen(text), &s), LAC_ERR_CORRUPT,
        "f: has no compressor and no algorithm, expected some to compare with");
}

static void a_file_with_more_rows_than_a_run_can_have_is_refused(void **state)
{
    (void)state;
    char text[TEXT_SIZE];
    cli_bench_saved s;
    int len = snprintf(text, sizeof(text), "%s\"compressors\": [0", head);
    for (int i = 0; i < CLI_BENCH_MAX; i++) {
        len += snprintf(text + len, sizeof(text) - (size_t)len, ", 0");
    }
    len += snprintf(text + len, sizeof(text) - (size_t)len, "]}");
    assert_fails(
        cli_bench_saved_parse("f", text, (size_t)len, &s), LAC_ERR_CORRUPT,
        "f: \"compressors\" has 65 rows, expected at most 64");
}

// Returns how many rows of a good file are chosen.
static size_t chosen(const cli_bench_choice *choice)
{
    cli_bench_saved s;
    parse_good(&s);
    assert_ok(cli_bench_saved_choose(&s, choice));
    const size_t count = s.count;
    cli_bench_saved_free(&s);
    return count;
}

static void specs_and_options_choose_rows(void **state)
{
    (void)state;
    char spec[] = "choco";
    char *const specs[] = {spec};
    cli_bench_choice c = {NULL, 0, "", "", "", 0};
    assert_int_equal(chosen(&c), 3);
    c.compressor = "sign"; // the row of the compressor has no such option
    assert_int_equal(chosen(&c), 2);
    c.specs = specs;
    c.count = 1;
    assert_int_equal(chosen(&c), 1);
    c.compressor = "";
    assert_int_equal(chosen(&c), 2);
    c.layout = "x.txt";
    assert_int_equal(chosen(&c), 1);
    c.degree = 255;
    assert_int_equal(chosen(&c), 1);
}

static void a_choice_without_rows_is_refused(void **state)
{
    (void)state;
    char first[] = "sign", second[] = "choco";
    char *const specs[] = {first, second};
    const cli_bench_choice choice = {specs, 2, "", "", "lenet", 0};
    cli_bench_saved s;
    parse_good(&s);
    assert_fails( // lenet is a model there, and no file
        cli_bench_saved_choose(&s, &choice), LAC_ERR_INVALID,
        "f: has no row of \"choco\" with these options, expected a SPEC that "
        "it has");
    cli_bench_saved_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_figures_and_settings_are_read),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(a_wrong_value_is_named_with_what_was_expected),
        cmocka_unit_test(a_file_without_rows_is_refused),
        cmocka_unit_test(a_file_with_more_rows_than_a_run_can_have_is_refused),
        cmocka_unit_test(specs_and_options_choose_rows),
        cmocka_unit_test(a_choice_without_rows_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
