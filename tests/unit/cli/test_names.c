// SPDX-License-Identifier: MIT
// The names of a peers file in messages.
#include <stdio.h>
#include <string.h>

#include "cli/launch/names.h"
#include "folder.h"
#include "lac_test.h"

static void names_are_the_first_words_of_lines_that_count(void **state)
{
    (void)state;
    cli_names names;
    static const char *const specs[] = {
        "tcp:peers=peers.txt", "tcp:peers.txt,key=k",
        "tcp:key=k,peers=(peers.txt),timeout=3"};
    put_text(
        "peers.txt", "# a comment\n\n \t\nanna a:1 key\r\n"
                     "  # another\n\tb\xc3\xa4rta b:1 key\nclara");
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        cli_names_read(&names, specs[i]);
        assert_int_equal(names.count, 3);
        assert_string_equal(cli_names_of(&names, 0), "anna");
        assert_string_equal(cli_names_of(&names, 1), "b??rta");
        assert_string_equal(cli_names_of(&names, 2), "clara");
        assert_null(cli_names_of(&names, 3));
        cli_names_clear(&names);
    }
}

static void a_spec_without_a_peers_file_has_no_names(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "local",          "mpi",         "tcp",          "tcp:token=peers.txt",
        "tcp:peers=none", "tcp:peers=.", "mpi:peers.txt"};
    put_text("peers.txt", "anna a:1 key\n");
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        cli_names names;
        cli_names_read(&names, specs[i]);
        assert_null(cli_names_of(&names, 0));
        cli_names_clear(&names);
    }
}

static void workers_of_a_message_get_their_names(void **state)
{
    (void)state;
    cli_names names;
    char text[128];
    static const char *const cases[][2] = {
        {"worker 1 was lost: its connection to worker 0 ended",
         "worker 1 (berta) was lost: its connection to worker 0 (anna) ended"},
        {"worker 2, worker 10, worker 1234567890123, worker x, a coworker 1",
         "worker 2, worker 10, worker 1234567890123, worker x, a coworker 1"},
        {"workers 0 to 1", "workers 0 to 1"},
        {"(worker 1)", "(worker 1 (berta))"},
        {"worker ", "worker "},
        {"", ""},
    };
    put_text("peers.txt", "anna a:1 key\nberta b:1 key\n");
    cli_names_read(&names, "tcp:peers=peers.txt");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cli_names_insert(&names, cases[i][0], text, sizeof(text));
        assert_string_equal(text, cases[i][1]);
    }
    cli_names_clear(&names);
}

static void a_long_message_is_cut(void **state)
{
    (void)state;
    cli_names names;
    put_text("peers.txt", "anna a:1 key\n");
    cli_names_read(&names, "tcp:peers=peers.txt");
    for (size_t cap = 1; cap < 24; cap++) {
        static const char whole[] = "worker 0 (anna) aborted";
        char text[sizeof(whole)];
        memset(text, 'x', sizeof(text));
        cli_names_insert(&names, "worker 0 aborted", text, cap);
        assert_int_equal(strlen(text), cap - 1);
        assert_memory_equal(text, whole, cap - 1);
        assert_int_equal(text[cap], 'x');
    }
    cli_names_clear(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(names_are_the_first_words_of_lines_that_count),
        IN_FOLDER(a_spec_without_a_peers_file_has_no_names),
        IN_FOLDER(workers_of_a_message_get_their_names),
        IN_FOLDER(a_long_message_is_cut),
    };
    return cmocka_run_group_tests_name("cli.names", tests, NULL, NULL);
}
