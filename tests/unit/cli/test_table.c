// SPDX-License-Identifier: MIT
// Tables are aligned, digits are grouped, bytes have units, and JSON has null
// for numbers that are not finite.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/command.h"
#include "cli/report/table.h"
#include "lac_test.h"

static char *text;
static size_t text_len;

static FILE *open_text(void)
{
    FILE *const stream = open_memstream(&text, &text_len);
    assert_non_null(stream);
    return stream;
}

static void assert_printed(FILE *stream, const char *expected)
{
    assert_int_equal(fclose(stream), 0);
    assert_string_equal(text, expected);
    free(text);
}

static void columns_are_aligned_without_trailing_spaces(void **state)
{
    (void)state;
    FILE *const stream = open_text();
    cli_table t = cli_table_make("lrl", "> ");
    cli_table_add(&t, "a");
    cli_table_add(&t, "%d", 1);
    cli_table_add(&t, "x");
    cli_table_add(&t, "long");
    cli_table_add(&t, "%d", 1000);
    cli_table_add(&t, "%s", "");
    cli_table_add(&t, "b");
    cli_table_add(&t, "%s", "");
    cli_table_add(&t, "y");
    cli_table_print(&t, stream);
    assert_printed(
        stream, "> a        1  x\n"
                "> long  1000\n"
                "> b           y\n");
}

static void tables_grow(void **state)
{
    (void)state;
    FILE *const stream = open_text();
    cli_table t = cli_table_make("l", NULL);
    for (int i = 0; i < 1000; i++) {
        cli_table_add(&t, "%03d", i);
    }
    cli_table_print(&t, stream);
    assert_int_equal(fclose(stream), 0);
    assert_int_equal(text_len, 4000);
    assert_memory_equal(text + 3996, "999\n", 4);
    free(text);
}

static void long_numbers_are_grouped(void **state)
{
    (void)state;
    char grouped[CLI_GROUPED_SIZE];
    assert_string_equal(cli_grouped(0, grouped), "0");
    assert_string_equal(cli_grouped(999, grouped), "999");
    assert_string_equal(cli_grouped(1000, grouped), "1,000");
    assert_string_equal(cli_grouped(25557032, grouped), "25,557,032");
    assert_string_equal(
        cli_grouped(UINT64_MAX, grouped), "18,446,744,073,709,551,615");
}

static void bytes_have_units_of_powers_of_1000(void **state)
{
    (void)state;
    char bytes[CLI_BYTES_SIZE];
    assert_string_equal(cli_bytes(0, bytes), "0 bytes");
    assert_string_equal(cli_bytes(999, bytes), "999 bytes");
    assert_string_equal(cli_bytes(1000, bytes), "1.0 kB");
    assert_string_equal(cli_bytes(102228128, bytes), "102.2 MB");
    assert_string_equal(cli_bytes(1e18, bytes), "1000.0 PB");
    // Never "1000.0 kB" because of rounding.
    assert_string_equal(cli_bytes(999949, bytes), "999.9 kB");
    assert_string_equal(cli_bytes(999950, bytes), "1.0 MB");
}

static void numbers_that_are_not_finite_are_null(void **state)
{
    (void)state;
    FILE *const stream = open_text();
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "a", (double)NAN);
    cJSON_AddNumberToObject(o, "b", (double)INFINITY);
    cJSON_AddNumberToObject(o, "c", 2);
    assert_int_equal(cli_json_print(o, stream), CLI_GOOD);
    assert_printed(
        stream, "{\n\t\"a\":\tnull,\n\t\"b\":\tnull,\n\t\"c\":\t2\n}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_aligned_without_trailing_spaces),
        cmocka_unit_test(tables_grow),
        cmocka_unit_test(long_numbers_are_grouped),
        cmocka_unit_test(bytes_have_units_of_powers_of_1000),
        cmocka_unit_test(numbers_that_are_not_finite_are_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
