// SPDX-License-Identifier: MIT
// Texts of the help become mdoc that shows the same characters.
#include <stdio.h>
#include <stdlib.h>

#include "cli/manual/mdoc.h"
#include "lac_test.h"

static void assert_written(
    void (*write)(FILE *, const char *), const char *text, const char *expected)
{
    char *written = NULL;
    size_t len = 0;
    FILE *const f = open_memstream(&written, &len);
    assert_non_null(f);
    write(f, text);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(written, expected);
    free(written);
}

static void no_text_becomes_a_macro(void **state)
{
    (void)state;
    assert_written(mdoc_text, ".npy\n'a'", "\\&.npy\n\\&'a'\n");
    assert_written(mdoc_text, "an end. .npy", "an end.\n\\&.npy\n");
    assert_written(mdoc_text, "\\n --x", "\\en \\-\\-x\n");
    assert_written(mdoc_words, "Op .x a \"b", " \\&Op \\&.x a \\&\\(dqb");
}

static void paragraphs_are_filled(void **state)
{
    (void)state;
    assert_written(
        mdoc_text, "One. Two\nthree 0.5.\n\nFour",
        "One.\nTwo\nthree 0.5.\n.Pp\nFour\n");
}

static void backticks_are_bold_over_the_end_of_a_line(void **state)
{
    (void)state;
    assert_written(mdoc_text, "`a b\nc`, `d`", "\\fBa b\nc\\fR, \\fBd\\fR\n");
}

static void indented_lines_stay_as_they_are(void **state)
{
    (void)state;
    assert_written(
        mdoc_text, "a:\n\n    .b `c`. d \\\n        e\n\nf",
        "a:\n.Bd -literal -offset indent\n\\&.b `c`. d \\e\n    e\n.Ed\n"
        ".Pp\nf\n");
    assert_written(mdoc_text, "    a", ".Bd -literal -offset indent\na\n.Ed\n");
    assert_written(
        mdoc_literal, "  a\n    b. c\n", ".Bd -literal\na\n  b. c\n.Ed\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_text_becomes_a_macro),
        cmocka_unit_test(paragraphs_are_filled),
        cmocka_unit_test(backticks_are_bold_over_the_end_of_a_line),
        cmocka_unit_test(indented_lines_stay_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
