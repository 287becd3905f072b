// SPDX-License-Identifier: MIT
// A plot has its marks in their places, labels at its ends, and no trailing
// spaces.
#include <math.h>
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

// A run from elsewhere may have values that no axis fits.
static void what_is_outside_the_axes_is_left_out(void **state)
{
    (void)state;
    static const double outside[] = {
        (double)NAN, (double)INFINITY, -(double)INFINITY, -0.1, 1.1};
    const cli_plot empty = cli_plot_make();
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
        cli_plot plot = cli_plot_make();
        cli_plot_put(&plot, outside[i], 0.5, 'a');
        cli_plot_put(&plot, 0.5, outside[i], 'a');
        assert_memory_equal(&plot, &empty, sizeof(plot));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_are_in_their_places),
        cmocka_unit_test(what_is_outside_the_axes_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
