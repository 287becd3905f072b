// SPDX-License-Identifier: MIT
// A plot has its marks in their places, labels at its ends, and no trailing
// spaces.
#include <stdlib.h>
#include <string.h>

#include "cli/report/plot.h"
#include "lac_test.h"

static void marks_are_in_their_places(void **state)
{
    (void)state;
    char *text = NULL;
    size_t len = 0;
    cli_plot plot = cli_plot_make();
    cli_plot_put(&plot, 0, 0, 'a');
    cli_plot_put(&plot, 1, 0, 'b');
    cli_plot_put(&plot, 1, 1, 'c');
    cli_plot_put(&plot, 1, 1, 'd');
    FILE *const stream = open_memstream(&text, &len);
    assert_non_null(stream);
    cli_plot_print(&plot, &(cli_plot_labels){"9.5", "-1", "0", "50 s"}, stream);
    assert_int_equal(fclose(stream), 0);
    size_t lines = 0;
    for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
        const size_t width = (size_t)(end - at);
        assert_true(width <= 79 && at[width - 1] != ' ');
        lines++;
    }
    assert_int_equal(lines, CLI_PLOT_ROWS + 2);
    char row[128];
    (void)snprintf(row, sizeof(row), "      9.5 |%68s\n", "d");
    assert_memory_equal(text, row, strlen(row));
    (void)snprintf(row, sizeof(row), "\n       -1 |a%67s\n", "b");
    assert_non_null(strstr(text, row));
    (void)snprintf(row, sizeof(row), "\n          0%68s\n", "50 s");
    assert_string_equal(text + len - strlen(row), row);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_are_in_their_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
