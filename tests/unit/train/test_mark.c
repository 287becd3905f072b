// SPDX-License-Identifier: MIT
// Workers find those with which they share a folder.
#include "train/mark.h"

#include <signal.h>
#include <sys/wait.h>

#include "folder.h"
#include "lac_test.h"

// The upper bit is set.
static const uint32_t start_number = 0x89abcdef;

static uint32_t first_of(const train_mark *m)
{
    uint32_t first = UINT32_MAX;
    assert_ok(train_mark_first(m, &first));
    return first;
}

static void a_folder_is_the_same_under_every_path(void **state)
{
    (void)state;
    train_mark marks[4] = {0};
    assert_int_equal(mkdir("one", 0777), 0);
    assert_int_equal(symlink("one", "link"), 0);
    assert_ok(train_mark_create(&marks[0], "one", start_number, 1));
    assert_ok(train_mark_create(&marks[1], "other/one", start_number, 2));
    assert_ok(train_mark_create(&marks[2], "./link", start_number, 3));
    assert_ok(train_mark_create(&marks[3], "other//one/", start_number, 4));
    assert_int_equal(first_of(&marks[0]), 1);
    assert_int_equal(first_of(&marks[1]), 2);
    assert_int_equal(first_of(&marks[2]), 1);
    assert_int_equal(first_of(&marks[3]), 2);
    for (int i = 0; i < 4; i++) {
        train_mark_remove(&marks[i]);
        train_mark_remove(&marks[i]);
    }
    assert_int_equal(remove_all("one"), 1);
    assert_int_equal(remove_all("other"), 2);
}

static void marks_of_other_starts_do_not_count(void **state)
{
    (void)state;
    train_mark own = {0}, other = {0};
    put_text(".laconic-1-x", "");
    put_text(".laconic-notes", "");
    put_text("laconic-1-9920249030613172224-host", "");
    assert_ok(train_mark_create(&other, ".", start_number + 1, 0));
    assert_ok(train_mark_create(&own, ".", start_number, UINT32_MAX - 1));
    assert_int_equal(first_of(&own), UINT32_MAX - 1);
    assert_int_equal(first_of(&other), 0);
    train_mark_remove(&own);
    train_mark_remove(&other);
}

// Another process, which has other marks open, sweeps the folder as every write
// does.
static void only_marks_of_killed_processes_are_swept(void **state)
{
    (void)state;
    train_mark own = {0}, left = {0};
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const lac_status status =
            train_mark_create(&left, ".", start_number, 0);
        (void)raise(status == LAC_OK ? SIGKILL : SIGTERM);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    assert_ok(train_mark_create(&own, ".", start_number, 1));
    assert_int_equal(first_of(&own), 0);
    assert_ok(write_text("file", "text"));
    assert_int_equal(first_of(&own), 1);
    train_mark_remove(&own);
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    train_mark own = {0};
    uint32_t first = 77;
    put_text("file", "");
    assert_fails(
        train_mark_create(&own, "file", start_number, 1), LAC_ERR_INVALID,
        "file: is not a folder");
    assert_ok(train_mark_create(&own, "out", start_number, 5));
    assert_fails(
        train_mark_create(&(train_mark){0}, "out", start_number, 5),
        LAC_ERR_INVALID, "out: cannot create a file in it: File exists");
    assert_int_equal(unlink(own.path), 0);
    assert_fails(
        train_mark_first(&own, &first), LAC_ERR_INVALID,
        "out: the file that worker 5 created in it is missing");
    assert_int_equal(rmdir("out"), 0);
    assert_fails(
        train_mark_first(&own, &first), LAC_ERR_INVALID,
        "out: cannot be listed: No such file or directory");
    assert_int_equal(first, 77);
    train_mark_remove(&own);
}

static void random_numbers_differ(void **state)
{
    (void)state;
    assert_true(train_random_number() != train_random_number());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_folder_is_the_same_under_every_path),
        IN_FOLDER(marks_of_other_starts_do_not_count),
        IN_FOLDER(only_marks_of_killed_processes_are_swept),
        IN_FOLDER(what_is_missing_is_named),
        IN_FOLDER(random_numbers_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
