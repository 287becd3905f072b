// SPDX-License-Identifier: MIT
// A signal that ends the program removes unfinished files.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/output.h"
#include "folder.h"
#include "lac_test.h"

static volatile sig_atomic_t signals_counted;

static void pass_on(int number)
{
    (void)number;
    (void)raise(SIGTERM);
}

// Writes a file in a separate process, where the limit on the file size raises
// SIGTERM in the middle of it. Returns the wait status of that process.
static int end_of_interrupted_write(bool ignored)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit limit = {4, 4};
        (void)signal(SIGXFSZ, pass_on);
        (void)signal(SIGTERM, ignored ? SIG_IGN : SIG_DFL);
        (void)setrlimit(RLIMIT_FSIZE, &limit);
        _exit(write_text("a", "longer than that") == LAC_OK);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    return how;
}

static void a_signal_leaves_nothing_behind(void **state)
{
    (void)state;
    const int how = end_of_interrupted_write(false);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), SIGTERM);
    assert_int_equal(empty_folder(), 0);
}

static void a_signal_takes_every_unfinished_file_away(void **state)
{
    (void)state;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        data_output o[3];
        const char *const paths[3] = {"a", "b", "c"};
        lac_status status = LAC_OK;
        for (int i = 0; i < 3 && status == LAC_OK; i++) {
            status = data_output_begin(&o[i], paths[i]);
        }
        if (status == LAC_OK) {
            status = data_output_commit(&o[1]);
        }
        (void)raise(status == LAC_OK ? SIGHUP : SIGTERM);
        _exit(0);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), SIGHUP);
    assert_holds("b", "");
    assert_int_equal(empty_folder(), 1);
}

static void a_signal_that_is_ignored_stays_so(void **state)
{
    (void)state;
    const int how = end_of_interrupted_write(true);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    assert_int_equal(empty_folder(), 0);
}

static void a_signal_after_the_write_finds_the_file(void **state)
{
    (void)state;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const lac_status status = write_text("a", "whole");
        (void)raise(status == LAC_OK ? SIGINT : SIGTERM);
        _exit(0);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), SIGINT);
    assert_holds("a", "whole");
    assert_int_equal(empty_folder(), 1);
}

static void count(int number)
{
    (void)number;
    signals_counted++;
}

// The handler of `laconic train`: the first signal asks for a checkpoint, the
// second has the default action and ends the program.
static void a_handler_that_resets_itself_stays_reset(void **state)
{
    (void)state;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        data_output o;
        struct sigaction once = {.sa_handler = count};
        once.sa_flags = (int)SA_RESETHAND;
        (void)sigaction(SIGINT, &once, NULL);
        if (data_output_begin(&o, "a") != LAC_OK) {
            _exit(1);
        }
        (void)raise(SIGINT);
        if (signals_counted != 1 || data_output_commit(&o) != LAC_OK) {
            _exit(2);
        }
        (void)raise(SIGINT);
        _exit(3);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), SIGINT);
    assert_int_equal(empty_folder(), 1);
}

static void a_handler_that_is_set_during_the_write_stays(void **state)
{
    (void)state;
    struct sigaction before, after;
    data_output o;
    assert_int_equal(sigaction(SIGHUP, NULL, &before), 0);
    assert_ok(data_output_begin(&o, "a"));
    assert_true(signal(SIGHUP, count) != SIG_ERR);
    assert_ok(data_output_commit(&o));
    assert_int_equal(sigaction(SIGHUP, &before, &after), 0);
    assert_true(after.sa_handler == count);
    assert_int_equal(empty_folder(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_leaves_nothing_behind),
        cmocka_unit_test(a_signal_takes_every_unfinished_file_away),
        cmocka_unit_test(a_signal_that_is_ignored_stays_so),
        cmocka_unit_test(a_signal_after_the_write_finds_the_file),
        cmocka_unit_test(a_handler_that_resets_itself_stays_reset),
        cmocka_unit_test(a_handler_that_is_set_during_the_write_stays),
    };
    (void)signal(SIGHUP, SIG_DFL); // ignored below nohup
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
