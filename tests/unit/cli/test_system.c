// SPDX-License-Identifier: MIT
// The name of a distribution, as os-release files have it.
#include "cli/report/system.h"
#include "lac_test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void assert_name(const char *content, const char *expected)
{
    char path[] = "/tmp/lac_test_XXXXXX", text[CLI_SYSTEM_SIZE] = "as before";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    const size_t len = strlen(content);
    assert_int_equal(write(fd, content, len), len);
    assert_int_equal(close(fd), 0);
    cli_system_name_in(path, text);
    assert_int_equal(unlink(path), 0);
    assert_string_equal(text, expected);
}

static void the_name_has_no_quotes(void **state)
{
    (void)state;
    assert_name(
        "NAME=x\nPRETTY_NAME=\"Debian 13 (trixie)\"\nID=debian\n",
        "Debian 13 (trixie)");
    assert_name("PRETTY_NAME='Alpine Linux v3.20'\n", "Alpine Linux v3.20");
    assert_name("PRETTY_NAME=Arch", "Arch");
}

static void a_file_without_a_name_changes_nothing(void **state)
{
    (void)state;
    char text[CLI_SYSTEM_SIZE] = "as before";
    assert_name("", "as before");
    assert_name("PRETTY_NAME=\n", "as before");
    assert_name("PRETTY_NAME=\"\"\n", "as before");
    assert_name("# PRETTY_NAME=x\nMY_PRETTY_NAME=y\n", "as before");
    cli_system_name_in("/proc/none", text);
    assert_string_equal(text, "as before");
}

static void this_system_has_a_name_and_a_kernel(void **state)
{
    (void)state;
    char text[CLI_SYSTEM_SIZE] = "";
    cli_system_name(text);
    assert_true(strlen(text) > 0);
    cli_system_kernel(text);
    assert_memory_equal(text, "Linux ", 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_has_no_quotes),
        cmocka_unit_test(a_file_without_a_name_changes_nothing),
        cmocka_unit_test(this_system_has_a_name_and_a_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
