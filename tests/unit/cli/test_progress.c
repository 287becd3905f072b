// SPDX-License-Identifier: MIT
// Progress: a bar on a terminal, few lines in a log, nothing for a short run.
#include <stdio.h>
#include <string.h>

#include "cli/report/progress.h"
#include "lac_test.h"

// Runs all steps and compares the output. The run began `age` seconds ago.
static void assert_shown(
    size_t total, bool terminal, double age, const char *expected)
{
    char text[4096];
    cli_progress p = cli_progress_begin(total);
    p.stream = tmpfile();
    assert_non_null(p.stream);
    p.terminal = terminal;
    p.start -= age;
    for (size_t i = 0; i < total; i++) {
        cli_progress_step(&p, i, "thing");
    }
    cli_progress_end(&p);
    rewind(p.stream);
    text[fread(text, 1, sizeof(text) - 1, p.stream)] = '\0';
    (void)fclose(p.stream);
    assert_string_equal(text, expected);
}

// A bar on a terminal, whose text goes to a file.
static cli_progress begin_on_terminal(size_t total)
{
    cli_progress p = cli_progress_begin(total);
    p.stream = tmpfile();
    assert_non_null(p.stream);
    p.terminal = true;
    return p;
}

static void a_terminal_shows_a_bar_that_is_removed(void **state)
{
    (void)state;
    assert_shown(
        2, true, 0,
        "\r\033[K[                    ] 1/2 thing"
        "\r\033[K[##########          ] 2/2 thing\r\033[K");
    assert_shown(0, true, 0, "");
}

// The run is one second old, and lines begin after two.
static void a_short_run_has_no_lines(void **state)
{
    (void)state;
    assert_shown(3, false, 1, "");
}

static void a_long_run_has_a_line_for_each_step(void **state)
{
    (void)state;
    assert_shown(3, false, 3, "1/3 thing\n2/3 thing\n3/3 thing\n");
}

static void many_steps_have_few_lines(void **state)
{
    (void)state;
    char expected[4096] = "";
    for (int i = 1; i < 500; i += 25) {
        const size_t len = strlen(expected);
        (void)snprintf(
            expected + len, sizeof(expected) - len, "%d/500 thing\n", i);
    }
    assert_shown(500, false, 3, expected);
}

// Other output between the steps does not cause more lines.
static void other_output_adds_no_lines(void **state)
{
    (void)state;
    char text[512];
    cli_progress p = cli_progress_begin(500);
    p.stream = tmpfile();
    assert_non_null(p.stream);
    p.terminal = false;
    p.start -= 3;
    for (size_t i = 0; i < 30; i++) {
        cli_progress_step(&p, i, "thing");
        cli_progress_end(&p);
    }
    rewind(p.stream);
    text[fread(text, 1, sizeof(text) - 1, p.stream)] = '\0';
    (void)fclose(p.stream);
    assert_string_equal(text, "1/500 thing\n26/500 thing\n");
}

// Ten seconds for two of five steps: fifteen for the other three. A resumed run
// begins with a step that is not its own.
static void a_terminal_shows_the_time_that_is_left(void **state)
{
    (void)state;
    const struct {
        size_t first, done, total;
        double age;
        const char *expected;
    } cases[] = {
        {0, 2, 5, 10, "3/5 thing  ETA 0:15"},
        {4, 6, 9, 10, "7/9 thing  ETA 0:15"},
        {0, 1, 361, 10, "2/361 thing  ETA 1:00:00"},
        {0, 1, 5, 1, "2/5 thing"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        cli_progress p = begin_on_terminal(cases[i].total);
        cli_progress_step(&p, cases[i].first, "thing");
        p.start -= cases[i].age;
        cli_progress_step(&p, cases[i].done, "thing");
        rewind(p.stream);
        text[fread(text, 1, sizeof(text) - 1, p.stream)] = '\0';
        (void)fclose(p.stream);
        assert_string_equal(strrchr(text, ']') + 2, cases[i].expected);
    }
}

static void the_bar_of_a_complete_run_is_full(void **state)
{
    (void)state;
    char text[512];
    cli_progress p = cli_progress_begin(5000);
    p.stream = tmpfile();
    assert_non_null(p.stream);
    p.terminal = true;
    cli_progress_done(&p, 2500, "thing");
    cli_progress_done(&p, 4998, "thing");
    cli_progress_done(&p, 4999, "thing"); // too little to draw it again
    cli_progress_done(&p, 5000, "thing");
    rewind(p.stream);
    text[fread(text, 1, sizeof(text) - 1, p.stream)] = '\0';
    (void)fclose(p.stream);
    assert_string_equal(
        text, "\r\033[K[##########          ] 2500/5000 thing"
              "\r\033[K[################### ] 4998/5000 thing"
              "\r\033[K[####################] 5000/5000 thing");
}

static void a_long_name_does_not_wrap(void **state)
{
    (void)state;
    char name[200], text[512];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    cli_progress p = cli_progress_begin(9);
    p.stream = tmpfile();
    assert_non_null(p.stream);
    p.terminal = true;
    cli_progress_step(&p, 0, name);
    rewind(p.stream);
    const size_t len = fread(text, 1, sizeof(text), p.stream);
    (void)fclose(p.stream);
    assert_true(len < 80 + strlen("\r\033[K"));
}

// A line of train, in a short and in a long run.
static void parts_that_do_not_fit_are_left_out(void **state)
{
    (void)state;
    static const char what[] =
        "epoch 2/5  loss 0.512  12345 images/s  512.3 MB";
    const struct {
        size_t done, total;
        const char *expected;
    } cases[] = {
        {3, 9,
         "\r\033[K[######              ] 3/9 epoch 2/5  loss 0.512  "
         "12345 images/s  512.3 MB"},
        {1200, 9380,
         "\r\033[K[#       ] 1200/9380 epoch 2/5  loss 0.512  "
         "12345 images/s  512.3 MB"},
        {500000000000, 1000000000000,
         "\r\033[K[####    ] 500000000000/1000000000000 epoch 2/5  loss 0.512  "
         "12345 images/s"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        cli_progress p = begin_on_terminal(cases[i].total);
        cli_progress_done(&p, cases[i].done, what);
        rewind(p.stream);
        text[fread(text, 1, sizeof(text) - 1, p.stream)] = '\0';
        (void)fclose(p.stream);
        assert_string_equal(text, cases[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_terminal_shows_a_bar_that_is_removed),
        cmocka_unit_test(a_short_run_has_no_lines),
        cmocka_unit_test(a_long_run_has_a_line_for_each_step),
        cmocka_unit_test(many_steps_have_few_lines),
        cmocka_unit_test(other_output_adds_no_lines),
        cmocka_unit_test(a_terminal_shows_the_time_that_is_left),
        cmocka_unit_test(the_bar_of_a_complete_run_is_full),
        cmocka_unit_test(a_long_name_does_not_wrap),
        cmocka_unit_test(parts_that_do_not_fit_are_left_out),
    };
    return cmocka_run_group_tests_name("cli.progress", tests, NULL, NULL);
}
