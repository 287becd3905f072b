// SPDX-License-Identifier: MIT
// Lines end at spaces, long words at their joints, and none is too long.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/wrap.h"
#include "lac_test.h"

static void lines_end_before_a_space(void **state)
{
    (void)state;
    assert_int_equal(cli_line("one two", 7), 7);
    assert_int_equal(cli_line("one two", 6), 3);
    assert_int_equal(cli_line("one two", 3), 3);
    assert_int_equal(cli_line("one  two", 5), 3);
    assert_int_equal(cli_line("one", 80), 3);
    assert_int_equal(cli_line("", 80), 0);
}

static void long_words_end_at_a_joint(void **state)
{
    (void)state;
    assert_int_equal(cli_line("a=1,b=2,c=3", 10), 8);
    assert_int_equal(cli_line("top-k+sign", 7), 6);
    assert_int_equal(cli_line("/usr/share", 6), 5);
    assert_int_equal(cli_line("0123456789", 4), 4);
    assert_int_equal(cli_line("it a,b", 4), 2);
}

static void columns_are_characters(void **state)
{
    (void)state;
    assert_int_equal(cli_columns("\xc3\xa9t\xc3\xa9"), 3);
    assert_int_equal(cli_line("\xc3\xa9\xc3\xa9\xc3\xa9", 2), 4);
    assert_int_equal(cli_line("\xc3\xa9t\xc3\xa9 a", 3), 5);
}

// Otherwise a text that does not fit would never end.
static void a_line_is_never_empty(void **state)
{
    (void)state;
    assert_int_equal(cli_line("ab", 0), 1);
    assert_int_equal(cli_line("\xc3\xa9t", 0), 2);
    assert_int_equal(cli_line("\xa9\xa9\xa9", 0), 3);
    assert_int_equal(cli_line("a b", 0), 1);
}

static void lines_of_a_text_are_indented(void **state)
{
    (void)state;
    char words[200] = "", *text = NULL;
    size_t len = 0, used = 0;
    for (size_t i = 0; i < 30; i++) {
        const char *const word = i == 29 ? "end" : "word ";
        used +=
            (size_t)snprintf(words + used, sizeof(words) - used, "%s", word);
    }
    FILE *const stream = open_memstream(&text, &len);
    assert_non_null(stream);
    cli_wrap(words, 60, stream);
    cli_wrap("", 60, stream);
    cli_wrap("last ", 200, stream);
    assert_int_equal(fclose(stream), 0);
    const char *const second = strchr(text, '\n') + 1;
    assert_int_equal(second - text, 20);
    assert_memory_equal(second, "          ", 10);
    assert_int_equal(strspn(second, " "), 60);
    assert_int_equal(strcspn(second, "\n"), 79);
    assert_non_null(strstr(text, " end\n\nl\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_end_before_a_space),
        cmocka_unit_test(long_words_end_at_a_joint),
        cmocka_unit_test(columns_are_characters),
        cmocka_unit_test(a_line_is_never_empty),
        cmocka_unit_test(lines_of_a_text_are_indented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
