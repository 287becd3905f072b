// SPDX-License-Identifier: MIT
// Files are written whole or not at all, also by many threads at once.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/file.h"
#include "data/output.h"
#include "folder.h"
#include "lac_test.h"

// The calls that make a file durable, in order: 'f' a file flushed, 'd' a
// folder flushed, 'r' a file renamed.
static _Thread_local char calls[64];

// If set, a rename notes whether this file is locked.
static const char *temporary;
static bool was_locked;

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

static void note(char call)
{
    const size_t len = strlen(calls);
    if (len + 1 < sizeof(calls)) {
        calls[len] = call;
    }
}

int __wrap_fsync(int fd)
{
    struct stat info;
    note(fstat(fd, &info) == 0 && S_ISDIR(info.st_mode) ? 'd' : 'f');
    return __real_fsync(fd);
}

int __wrap_rename(const char *from, const char *to)
{
    note('r');
    if (temporary != NULL) {
        FILE *const file = fopen(temporary, "r");
        was_locked =
            file != NULL && flock(fileno(file), LOCK_EX | LOCK_NB) != 0;
        (void)(file != NULL && fclose(file));
    }
    return __real_rename(from, to);
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

static void what_is_written_lasts(void **state)
{
    (void)state;
    memset(calls, 0, sizeof(calls));
    assert_ok(write_text("a", "first"));
    assert_string_equal(calls, "frd");
    assert_int_equal(empty_folder(), 1);
}

static void pieces_are_put_together(void **state)
{
    (void)state;
    data_output o;
    assert_ok(write_text("a", "old"));
    assert_ok(data_output_begin(&o, "a"));
    assert_ok(data_output_append(&o, "one, ", 5));
    assert_ok(data_output_append(&o, "", 0));
    assert_ok(data_output_append(&o, "two", 3));
    assert_holds("a", "old");
    assert_ok(data_output_commit(&o));
    assert_holds("a", "one, two");
    assert_int_equal(empty_folder(), 1);
}

static void what_is_abandoned_was_never_there(void **state)
{
    (void)state;
    data_output o;
    assert_ok(write_text("a", "old"));
    assert_ok(data_output_begin(&o, "a"));
    assert_ok(data_output_append(&o, "new", 3));
    data_output_abandon(&o);
    assert_holds("a", "old");
    assert_int_equal(empty_folder(), 1);
}

// The name of a temporary file of a process on this machine.
static void temporary_name(char *name, size_t size, long pid, int number)
{
    char host[65] = "";
    assert_int_equal(gethostname(host, sizeof(host)), 0);
    (void)snprintf(name, size, ".laconic-%ld-%d-%s", pid, number, host);
}

static void names_that_others_have_are_left_alone(void **state)
{
    (void)state;
    char name[160];
    for (int i = 0; i < 3; i++) {
        temporary_name(name, sizeof(name), (long)getpid(), i);
        FILE *const file = fopen(name, "w");
        assert_non_null(file);
        assert_int_equal(fclose(file), 0);
    }
    assert_ok(write_text("a", "x"));
    assert_holds("a", "x");
    assert_int_equal(empty_folder(), 4);
}

// Leaves a temporary file behind, as a killed program does.
static void be_killed_while_writing(const char *path)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        data_output o;
        if (data_output_begin(&o, path) == LAC_OK &&
            data_output_append(&o, "half", 4) == LAC_OK) {
            (void)raise(SIGKILL);
        }
        _exit(1);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), SIGKILL);
}

static void the_next_write_removes_what_a_killed_program_left(void **state)
{
    (void)state;
    assert_int_equal(mkdir("low", 0777), 0);
    be_killed_while_writing("a");
    be_killed_while_writing("low/a");
    assert_ok(write_text("b", "x"));
    assert_holds("b", "x");
    assert_int_equal(remove_all("low"), 2); // another folder, not swept
    assert_int_equal(empty_folder(), 1);
}

// Locks of another machine are not seen on every file system.
static void a_file_of_another_machine_is_left_alone(void **state)
{
    (void)state;
    static const char name[] = ".laconic-999999999-0-elsewhere.invalid";
    put_text(name, "half");
    assert_ok(write_text("b", "x"));
    assert_holds(name, "half");
    assert_int_equal(empty_folder(), 2);
}

// A program in another PID namespace of this machine: its PID is not known
// here, its lock is.
static void a_write_that_is_locked_is_not_disturbed(void **state)
{
    (void)state;
    char name[160];
    temporary_name(name, sizeof(name), 999999999, 0);
    put_text(name, "half");
    FILE *const file = fopen(name, "r");
    assert_non_null(file);
    assert_int_equal(flock(fileno(file), LOCK_EX | LOCK_NB), 0);
    assert_ok(write_text("b", "x"));
    assert_holds(name, "half");
    assert_int_equal(fclose(file), 0);
    assert_ok(write_text("b", "y"));
    assert_int_equal(empty_folder(), 1);
}

// The lock covers all of a write, the rename included.
static void a_write_is_locked_until_it_is_renamed(void **state)
{
    (void)state;
    data_output o;
    assert_ok(data_output_begin(&o, "a"));
    temporary = o.temporary;
    assert_ok(data_output_commit(&o));
    temporary = NULL;
    assert_true(was_locked);
    assert_holds("a", "");
    assert_int_equal(empty_folder(), 1);
}

enum { THREADS = 8, WRITES = 20 };

static void *write_often(void *given)
{
    const char *const path = given;
    bool good = true;
    for (int i = 0; i < WRITES; i++) {
        good = good && write_text(path, path) == LAC_OK;
    }
    return good ? given : NULL;
}

// All in one folder, so that they compete for the temporary names.
static void threads_write_at_the_same_time(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    char paths[THREADS][8];
    const mode_t mask = umask(027);
    for (size_t i = 0; i < THREADS; i++) {
        (void)snprintf(paths[i], sizeof(paths[i]), "%zu", i);
        assert_int_equal(
            pthread_create(&threads[i], NULL, write_often, paths[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *good;
        assert_int_equal(pthread_join(threads[i], &good), 0);
        assert_non_null(good);
        assert_holds(paths[i], paths[i]);
        assert_int_equal(mode_of(paths[i]), 0640);
    }
    assert_int_equal(umask(mask), 027);
    assert_int_equal(empty_folder(), THREADS);
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

static void circular_links_are_reported(void **state)
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
    data_bytes file;
    assert_fails(
        write_text("", "x"), LAC_ERR_INVALID,
        "a path is empty, expected the name of a file");
    assert_fails(
        data_file_read("", &file), LAC_ERR_INVALID,
        "a path is empty, expected the name of a file");
    assert_null(file.data);
    assert_int_equal(empty_folder(), 0);
}

static void failures_leave_nothing_behind(void **state)
{
    (void)state;
    assert_fails(
        write_text("no/such", "x"), LAC_ERR_INVALID,
        "no/such: cannot create a file in its folder: No such file or "
        "directory");
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

// Several times the first buffer, and every byte is right.
static void a_pipe_is_read_to_its_end(void **state)
{
    (void)state;
    data_bytes file;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    FILE *const writer = popen("seq 1 60000 > pipe", "w");
    assert_non_null(writer);
    assert_ok(data_file_read("pipe", &file));
    assert_int_equal(pclose(writer), 0);
    assert_true(file.len > 5 * 65536);
    const uint8_t *at = file.data;
    for (int i = 1; i <= 60000; i++) {
        char line[16];
        const size_t line_len = (size_t)snprintf(line, sizeof(line), "%d\n", i);
        assert_true(line_len <= file.len - (size_t)(at - file.data));
        assert_memory_equal(at, line, line_len);
        at += line_len;
    }
    assert_true(at == file.data + file.len);
    data_bytes_free(&file);
    assert_int_equal(empty_folder(), 1);
}

static void what_cannot_be_read_is_named(void **state)
{
    (void)state;
    data_bytes file;
    assert_fails(
        data_file_read("none", &file), LAC_ERR_INVALID,
        "none: cannot open: No such file or directory");
    assert_null(file.data);
    assert_fails(
        data_file_read("/", &file), LAC_ERR_INVALID,
        "/: cannot read: Is a directory");
}

static void folders_are_made_with_those_above_them_and_last(void **state)
{
    (void)state;
    memset(calls, 0, sizeof(calls));
    assert_ok(data_folder_make("up/middle//low/"));
    assert_true(data_is_folder("up/middle/low"));
    assert_string_equal(calls, "ddd"); // one for each that is new
    assert_ok(data_folder_make("up/middle/low"));
    assert_string_equal(calls, "ddd");
    assert_ok(data_folder_make("/"));
}

static void what_is_in_the_way_of_a_folder_is_named(void **state)
{
    (void)state;
    char path[5000];
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_ok(write_text("file", "its own"));
    assert_fails(
        data_folder_make("file/low"), LAC_ERR_INVALID, "file: is not a folder");
    assert_holds("file", "its own");
    assert_fails(
        data_folder_make(""), LAC_ERR_INVALID,
        "the path of a folder has 0 bytes, expected 1 to 4095");
    assert_fails(
        data_folder_make(path), LAC_ERR_INVALID,
        "the path of a folder has 4999 bytes, expected 1 to 4095");
    path[300] = '\0';
    assert_int_equal(data_folder_make(path), LAC_ERR_INVALID);
    assert_non_null(strstr(lac_error_message(), "File name too long"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_is_written_lasts),
        cmocka_unit_test(pieces_are_put_together),
        cmocka_unit_test(what_is_abandoned_was_never_there),
        cmocka_unit_test(names_that_others_have_are_left_alone),
        cmocka_unit_test(the_next_write_removes_what_a_killed_program_left),
        cmocka_unit_test(a_file_of_another_machine_is_left_alone),
        cmocka_unit_test(a_write_that_is_locked_is_not_disturbed),
        cmocka_unit_test(a_write_is_locked_until_it_is_renamed),
        cmocka_unit_test(threads_write_at_the_same_time),
        cmocka_unit_test(
            a_new_file_has_the_usual_mode_and_an_old_one_keeps_its),
        cmocka_unit_test(a_link_stays_a_link),
        cmocka_unit_test(a_link_to_nothing_is_followed_as_well),
        cmocka_unit_test(circular_links_are_reported),
        cmocka_unit_test(an_empty_path_is_refused),
        cmocka_unit_test(failures_leave_nothing_behind),
        cmocka_unit_test(devices_are_written_directly),
        cmocka_unit_test(a_pipe_is_read_to_its_end),
        cmocka_unit_test(what_cannot_be_read_is_named),
        cmocka_unit_test(folders_are_made_with_those_above_them_and_last),
        cmocka_unit_test(what_is_in_the_way_of_a_folder_is_named),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
