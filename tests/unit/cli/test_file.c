// SPDX-License-Identifier: MIT
// Files are read whole and written whole or not at all.
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/file.h"
#include "lac_test.h"

static char folder[64];

static int enter_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof(folder), "/tmp/lac_test_XXXXXX");
    return mkdtemp(folder) == NULL || chdir(folder) != 0;
}

// Counts the files of the folder and removes them.
static size_t empty_folder(void)
{
    size_t count = 0;
    DIR *const list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *d = readdir(list); d != NULL; d = readdir(list)) {
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0) {
            assert_int_equal(remove(d->d_name), 0);
            count++;
        }
    }
    (void)closedir(list);
    return count;
}

static int leave_folder(void **state)
{
    (void)state;
    (void)empty_folder();
    return chdir("/") != 0 || rmdir(folder) != 0;
}

static lac_status write_text(const char *path, const char *text)
{
    return cli_file_write(path, (const uint8_t *)text, strlen(text));
}

static void assert_holds(const char *path, const char *text)
{
    uint8_t *data;
    size_t len;
    assert_ok(cli_file_read(path, &data, &len));
    assert_int_equal(len, strlen(text));
    assert_memory_equal(data, text, len);
    free(data);
}

static mode_t mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 0777;
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    assert_ok(write_text("a", "first"));
    assert_holds("a", "first");
    assert_ok(write_text("a", ""));
    assert_holds("a", "");
    assert_ok(write_text("./a", "third"));
    assert_holds("a", "third");
    assert_int_equal(empty_folder(), 1);
}

static void a_new_file_has_the_usual_mode_and_an_old_one_keeps_its(void **state)
{
    (void)state;
    const mode_t mask = umask(027);
    assert_ok(write_text("a", "x"));
    assert_int_equal(mode_of("a"), 0640);
    assert_int_equal(chmod("a", 0604), 0);
    assert_ok(write_text("a", "y"));
    assert_int_equal(mode_of("a"), 0604);
    (void)umask(mask);
    assert_int_equal(empty_folder(), 1);
}

static void a_link_stays_a_link(void **state)
{
    (void)state;
    struct stat info;
    assert_ok(write_text("a", "old"));
    assert_int_equal(symlink("a", "b"), 0);
    assert_ok(write_text("b", "new"));
    assert_holds("a", "new");
    assert_int_equal(lstat("b", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(empty_folder(), 2);
}

static void a_link_to_nothing_is_followed_as_well(void **state)
{
    (void)state;
    struct stat info;
    char absolute[80];
    (void)snprintf(absolute, sizeof(absolute), "%s/b", folder);
    assert_int_equal(symlink("a", "b"), 0);
    assert_int_equal(symlink(absolute, "c"), 0);
    assert_ok(write_text("./c", "new"));
    assert_holds("a", "new");
    assert_int_equal(lstat("c", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(lstat("b", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(empty_folder(), 3);
}

static void links_in_a_circle_are_told(void **state)
{
    (void)state;
    assert_int_equal(symlink("b", "a"), 0);
    assert_int_equal(symlink("a", "b"), 0);
    assert_fails(
        write_text("a", "x"), LAC_ERR_INVALID,
        "a: cannot resolve: Too many levels of symbolic links");
    assert_int_equal(empty_folder(), 2);
}

static void an_empty_path_is_refused(void **state)
{
    (void)state;
    uint8_t *data;
    size_t len;
    assert_fails(
        write_text("", "x"), LAC_ERR_INVALID,
        "a path is empty, expected the name of a file");
    assert_fails(
        cli_file_read("", &data, &len), LAC_ERR_INVALID,
        "a path is empty, expected the name of a file");
    assert_null(data);
    assert_int_equal(empty_folder(), 0);
}

static void pass_on(int number)
{
    (void)number;
    (void)raise(SIGTERM);
}

// Writes a file in a process of its own, where the limit on the size of files
// makes a SIGTERM in the middle of it. Returns how that process ended.
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

static void failures_leave_nothing_behind(void **state)
{
    (void)state;
    assert_fails(
        write_text("no/such", "x"), LAC_ERR_INVALID,
        "no/such: cannot create a file beside it: No such file or directory");
    assert_fails(
        write_text(".", "x"), LAC_ERR_INVALID,
        ".: cannot open for writing: Is a directory");
    assert_int_equal(empty_folder(), 0);
}

static void devices_are_written_directly(void **state)
{
    (void)state;
    assert_ok(write_text("/dev/null", "x"));
    assert_fails(
        write_text("/dev/full", "x"), LAC_ERR_INVALID,
        "/dev/full: cannot write: No space left on device");
}

// More than the first buffer has room for, several times over, and every byte
// in its place.
static void a_pipe_is_read_to_its_end(void **state)
{
    (void)state;
    uint8_t *data;
    size_t len;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    FILE *const writer = popen("seq 1 60000 > pipe", "w");
    assert_non_null(writer);
    assert_ok(cli_file_read("pipe", &data, &len));
    assert_int_equal(pclose(writer), 0);
    assert_true(len > 5 * 65536);
    const uint8_t *at = data;
    for (int i = 1; i <= 60000; i++) {
        char line[16];
        const size_t line_len = (size_t)snprintf(line, sizeof(line), "%d\n", i);
        assert_true(line_len <= len - (size_t)(at - data));
        assert_memory_equal(at, line, line_len);
        at += line_len;
    }
    assert_true(at == data + len);
    free(data);
    assert_int_equal(empty_folder(), 1);
}

static void what_cannot_be_read_is_named(void **state)
{
    (void)state;
    uint8_t *data;
    size_t len;
    assert_fails(
        cli_file_read("none", &data, &len), LAC_ERR_INVALID,
        "none: cannot open: No such file or directory");
    assert_null(data);
    assert_fails(
        cli_file_read("/", &data, &len), LAC_ERR_INVALID,
        "/: cannot read: Is a directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(
            a_new_file_has_the_usual_mode_and_an_old_one_keeps_its),
        cmocka_unit_test(a_link_stays_a_link),
        cmocka_unit_test(a_link_to_nothing_is_followed_as_well),
        cmocka_unit_test(links_in_a_circle_are_told),
        cmocka_unit_test(an_empty_path_is_refused),
        cmocka_unit_test(a_signal_leaves_nothing_behind),
        cmocka_unit_test(a_signal_that_is_ignored_stays_so),
        cmocka_unit_test(a_signal_after_the_write_finds_the_file),
        cmocka_unit_test(failures_leave_nothing_behind),
        cmocka_unit_test(devices_are_written_directly),
        cmocka_unit_test(a_pipe_is_read_to_its_end),
        cmocka_unit_test(what_cannot_be_read_is_named),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
