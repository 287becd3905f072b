// SPDX-License-Identifier: MIT
// Texts of any bytes become valid content of HTML and SVG.
#include <stdio.h>
#include <stdlib.h>

#include "cli/report/markup.h"
#include "lac_test.h"

static void assert_markup(const char *text, const char *expected)
{
    char *printed = NULL;
    size_t len = 0;
    FILE *const f = open_memstream(&printed, &len);
    assert_non_null(f);
    cli_markup_text(f, text);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(printed, expected);
    free(printed);
}

static void marks_are_escaped(void **state)
{
    (void)state;
    assert_markup("a", "a");
    assert_markup(
        "<a b=\"c\" d='e'>&lt;", "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;"
                                 "&amp;lt;");
}

static void control_characters_are_left_out(void **state)
{
    (void)state;
    assert_markup("a\n\t\x1b[31mb\x7f", "a[31mb");
}

static void utf8_stays(void **state)
{
    (void)state;
    const char *const text = "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 "
                             "\xef\xbf\xbd \xed\x9f\xbf \xf4\x8f\xbf\xbf";
    assert_markup(text, text);
}

static void other_bytes_become_a_replacement(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "\x80",             // continues nothing
        "\xff",             // no first byte
        "\xc3",             // is cut
        "\xe2\x82",         // likewise, two bytes
        "\xc0\xaf",         // '/', overlong
        "\xe0\x80\xaf",     // likewise
        "\xf0\x80\x80\xaf", // likewise
        "\xed\xa0\x80",     // a surrogate
        "\xf4\x90\x80\x80", // above 10FFFF
    };
    static const char mark[] = "\xef\xbf\xbd";
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char expected[32] = "";
        size_t used = 0;
        for (const char *at = wrong[i]; *at != '\0'; at++) {
            used += (size_t)snprintf(
                expected + used, sizeof(expected) - used, "%s", mark);
        }
        assert_markup(wrong[i], expected);
    }
    assert_markup("a\xc3<", "a\xef\xbf\xbd&lt;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_are_escaped),
        cmocka_unit_test(control_characters_are_left_out),
        cmocka_unit_test(utf8_stays),
        cmocka_unit_test(other_bytes_become_a_replacement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
