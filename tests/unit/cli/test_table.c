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

static void columns_of_utf8_are_characters(void **state)
{
    (void)state;
    FILE *const stream = open_text();
    cli_table t = cli_table_make("lr", NULL);
    cli_table_add(&t, "\xc3\xa9t\xc3\xa9");
    cli_table_add(&t, "1");
    cli_table_add(&t, "ete2");
    cli_table_add(&t, "22");
    assert_int_equal(cli_table_width(&t), 8);
    cli_table_print(&t, stream);
    assert_printed(stream, "\xc3\xa9t\xc3\xa9    1\nete2  22\n");
}

// 30 words of 5 columns and a space each.
static void add_words(cli_table *t)
{
    char words[181];
    for (size_t i = 0; i < sizeof(words); i++) {
        words[i] = i % 6 == 5 ? ' ' : 'x';
    }
    words[sizeof(words) - 1] = '\0';
    cli_table_add(t, "%.95s", words);
}

static void long_texts_in_the_last_column_are_wrapped(void **state)
{
    (void)state;
    FILE *const stream = open_text();
    cli_table t = cli_table_make("lrl", "> ");
    cli_table_add(&t, "name");
    cli_table_add(&t, "1234567890123456789012345678901234567890");
    add_words(&t);
    cli_table_add(&t, "b");
    cli_table_add(&t, "1");
    cli_table_add(&t, "short");
    cli_table_print(&t, stream);
    assert_printed(
        stream, "> name  1234567890123456789012345678901234567890"
                "  xxxxx xxxxx xxxxx xxxxx xxxxx\n"
                "                                                "
                "  xxxxx xxxxx xxxxx xxxxx xxxxx\n"
                "                                                "
                "  xxxxx xxxxx xxxxx xxxxx xxxxx\n"
                "                                                "
                "  xxxxx\n"
                "> b                                            1"
                "  short\n");
}

// Settings in `laconic list` are indented below their plug-in.
static void wrapped_texts_keep_their_own_indent(void **state)
{
    (void)state;
    FILE *const stream = open_text();
    cli_table t = cli_table_make("ll", NULL);
    cli_table_add(&t, "0123456789012345678901234567890123456789");
    cli_table_add(&t, "  one two three four five six seven eight nine ten");
    cli_table_print(&t, stream);
    assert_printed(
        stream, "0123456789012345678901234567890123456789    one two three "
                "four five six seven\n"
                "                                            eight nine ten\n");
}

static void long_names_before_numbers_have_their_own_line(void **state)
{
    (void)state;
    FILE *const stream = open_text();
    cli_table t = cli_table_make("lrr", NULL);
    cli_table_add(&t, "top-k");
    cli_table_add(&t, "12345678901234567890");
    cli_table_add(&t, "123456789012345678901234567890");
    cli_table_add(&t, "dithering:bucket=512,norm=inf");
    cli_table_add(&t, "1");
    cli_table_add(&t, "2");
    cli_table_print(&t, stream);
    assert_printed(
        stream, "top-k                       12345678901234567890  "
                "123456789012345678901234567890\n"
                "dithering:bucket=512,norm=inf\n"
                "                                               1  "
                "                             2\n");
}

static void a_long_value_stands_before_its_note(void **state)
{
    (void)state;
    FILE *const stream = open_text();
    cli_table t = cli_table_make("lrl", NULL);
    cli_table_row(&t, "short", "1234567890123456789012345678", "note");
    cli_table_row(&t, "long", "12345678901234567890123456789", "note");
    cli_table_row(&t, "alone", "12345678901234567890123456789", "");
    cli_table_print(&t, stream);
    assert_printed(
        stream, "short  1234567890123456789012345678  note\n"
                "long                                 "
                "12345678901234567890123456789 note\n"
                "alone                                "
                "12345678901234567890123456789\n");
}

static void long_texts_lose_their_middle(void **state)
{
    (void)state;
    char out[CLI_CELL_SIZE];
    assert_string_equal(cli_fitted("0123456789", 10, out), "0123456789");
    assert_string_equal(cli_fitted("0123456789", 9, out), "01..56789");
    assert_string_equal(cli_fitted("0123456789", 4, out), "..89");
    assert_string_equal(
        cli_fitted("\xc3\xa9x\xc3\xa9x\xc3\xa9x", 5, out),
        "\xc3\xa9..\xc3\xa9x");
    assert_string_equal(cli_fitted("", 4, out), "");
}

static void control_characters_are_not_printed(void **state)
{
    (void)state;
    char out[CLI_CELL_SIZE];
    assert_string_equal(cli_fitted("a\n\x1b[b\x7f", 80, out), "a??[b?");
}

// Whatever the bytes are, they stay within a cell.
static void texts_of_any_bytes_fit_a_cell(void **state)
{
    (void)state;
    char filled[2000], out[CLI_CELL_SIZE];
    for (int byte = 1; byte < 256; byte++) {
        memset(filled, byte, sizeof(filled));
        filled[sizeof(filled) - 1] = '\0';
        assert_between(strlen(cli_fitted(filled, 500, out)), 0, 159);
        assert_between(strlen(cli_fitted(filled, 4, out)), 0, 159);
    }
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
        cmocka_unit_test(columns_of_utf8_are_characters),
        cmocka_unit_test(long_texts_in_the_last_column_are_wrapped),
        cmocka_unit_test(wrapped_texts_keep_their_own_indent),
        cmocka_unit_test(long_names_before_numbers_have_their_own_line),
        cmocka_unit_test(a_long_value_stands_before_its_note),
        cmocka_unit_test(long_texts_lose_their_middle),
        cmocka_unit_test(control_characters_are_not_printed),
        cmocka_unit_test(texts_of_any_bytes_fit_a_cell),
        cmocka_unit_test(tables_grow),
        cmocka_unit_test(long_numbers_are_grouped),
        cmocka_unit_test(bytes_have_units_of_powers_of_1000),
        cmocka_unit_test(numbers_that_are_not_finite_are_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
