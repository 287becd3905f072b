// SPDX-License-Identifier: MIT
// Single settings of a spec are found where the library would find them.
#include <string.h>

#include "cli/options/spec.h"
#include "lac_test.h"

static void assert_value(const char *spec, const char *key, const char *value)
{
    cli_spec_item item;
    assert_true(cli_spec_find(spec, key, &item));
    assert_int_equal(item.value_len, strlen(value));
    assert_memory_equal(item.value, value, item.value_len);
}

static void names_are_whole(void **state)
{
    (void)state;
    assert_true(cli_spec_names("tcp", "tcp"));
    assert_true(cli_spec_names("tcp:peers=x", "tcp"));
    assert_false(cli_spec_names("tcpx", "tcp"));
    assert_false(cli_spec_names("tc", "tcp"));
    assert_false(cli_spec_names("", "tcp"));
}

static void settings_are_found(void **state)
{
    (void)state;
    const char *const spec = "tcp:token=/a=b,timeout=3,encryption=no";
    assert_value(spec, "token", "/a=b");
    assert_value(spec, "timeout", "3");
    assert_value(spec, "encryption", "no");
    assert_value("tcp:timeout=", "timeout", "");
}

static void parts_of_values_are_no_settings(void **state)
{
    (void)state;
    cli_spec_item item;
    assert_false(cli_spec_find("tcp:peers=/timeout=3", "timeout", &item));
    assert_false(cli_spec_find("tcp:(a,timeout=3)", "timeout", &item));
    assert_false(cli_spec_find("tcp:peers=(a,timeout=3)", "timeout", &item));
    assert_false(cli_spec_find("tcp:mytimeout=3", "timeout", &item));
    assert_false(cli_spec_find("tcp:timeouts=3", "timeout", &item));
    assert_false(cli_spec_find("timeout=3", "timeout", &item));
    assert_value("tcp:peers=(a,timeout=3),timeout=4", "timeout", "4");
}

static void the_first_may_have_no_key(void **state)
{
    (void)state;
    size_t at = 0;
    cli_spec_item item;
    assert_true(cli_spec_next("tcp:file,port=1", &at, &item));
    assert_int_equal(item.key_len, 0);
    assert_memory_equal(item.value, "file", 4);
    assert_int_equal(item.value_len, 4);
    assert_true(cli_spec_next("tcp:file,port=1", &at, &item));
    assert_int_equal(item.key_len, 4);
    assert_false(cli_spec_next("tcp:file,port=1", &at, &item));
}

static void parts_end_outside_parentheses(void **state)
{
    (void)state;
    assert_int_equal(cli_spec_part("a:1+b", '+'), 3);
    assert_int_equal(cli_spec_part("a:(b+c)+d", '+'), 7);
    assert_int_equal(cli_spec_part("a:1+b", '\0'), 5);
    assert_int_equal(cli_spec_part("+b", '+'), 0);
    assert_int_equal(cli_spec_part("a(+b", '+'), 4);
}

static void broken_specs_end(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "", ":", "tcp:", "tcp:,", "tcp:,,=", "tcp:((,", "tcp:)),x", "tcp:="};
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        size_t at = 0, count = 0;
        cli_spec_item item;
        while (cli_spec_next(specs[i], &at, &item)) {
            assert_true(++count < 9);
            assert_true(at <= strlen(specs[i]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_whole),
        cmocka_unit_test(settings_are_found),
        cmocka_unit_test(parts_of_values_are_no_settings),
        cmocka_unit_test(the_first_may_have_no_key),
        cmocka_unit_test(parts_end_outside_parentheses),
        cmocka_unit_test(broken_specs_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
