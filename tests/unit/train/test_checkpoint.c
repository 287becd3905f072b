// SPDX-License-Identifier: MIT
// The latest set is always complete, and only sets are removed.
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "lac_test.h"
#include "sets.h"
#include "tensors.h"
#include "train/checkpoint.h"

static void assert_latest_is(uint64_t expected)
{
    uint64_t step = UINT64_MAX;
    assert_ok(train_checkpoint_latest("out", &step));
    assert_int_equal(step, expected);
}

static void the_latest_set_is_read(void **state)
{
    (void)state;
    assert_ok(write_set(5));
    assert_int_equal(assert_latest_is_complete(), 5);
    assert_holds("out/latest", "step-5");
    assert_ok(write_set(UINT64_MAX));
    assert_int_equal(assert_latest_is_complete(), UINT64_MAX);
    assert_holds("out/latest", "step-18446744073709551615");
}

static void a_set_counts_when_it_is_committed(void **state)
{
    (void)state;
    uint64_t step = 77, previous = 0;
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        assert_ok(write_worker(5, rank));
    }
    assert_fails(
        train_checkpoint_latest("out", &step), LAC_ERR_NOTFOUND,
        "out/latest: does not exist, expected a checkpoint");
    assert_int_equal(step, 77);
    assert_ok(train_checkpoint_commit("out", 5, &previous));
    assert_int_equal(previous, 5);
    assert_latest_is(5);
}

static void the_last_two_sets_are_kept(void **state)
{
    (void)state;
    for (uint64_t step = 8; step <= 12; step++) {
        assert_ok(write_set(step));
    }
    assert_int_equal(assert_latest_is_complete(), 12);
    assert_true(data_is_file("out/step-11/worker-2.safetensors"));
    assert_int_equal(remove_all("out"), 1 + 1 + 2 * (1 + WORLD));
}

// In gossip a worker may write the next set before the last one is pruned.
static void a_later_set_that_is_being_written_stays(void **state)
{
    (void)state;
    uint64_t previous = 0;
    for (uint64_t step = 10; step <= 20; step += 10) {
        for (uint32_t rank = 0; rank < WORLD; rank++) {
            assert_ok(write_worker(step, rank));
        }
        assert_ok(train_checkpoint_commit("out", step, &previous));
    }
    assert_ok(write_worker(30, WORLD - 1));
    train_checkpoint_prune("out", 20, previous);
    for (uint32_t rank = 0; rank + 1 < WORLD; rank++) {
        assert_ok(write_worker(30, rank));
    }
    assert_ok(train_checkpoint_commit("out", 30, &previous));
    assert_int_equal(assert_latest_is_complete(), 30);
}

// An incomplete set between the two does not count as the previous one.
static void sets_that_were_begun_are_removed(void **state)
{
    (void)state;
    assert_ok(write_set(10));
    assert_ok(write_worker(12, 1));
    put_file("out/step-12/.laconic-1-0", "half", 4);
    assert_ok(write_set(14));
    assert_int_equal(assert_latest_is_complete(), 14);
    assert_true(data_is_folder("out/step-10"));
    assert_int_equal(remove_all("out"), 1 + 1 + 2 * (1 + WORLD));
}

static void a_set_may_be_committed_again(void **state)
{
    (void)state;
    assert_ok(write_set(10));
    assert_ok(write_set(11));
    assert_ok(write_set(11));
    assert_true(data_is_folder("out/step-10"));
    assert_int_equal(assert_latest_is_complete(), 11);
    assert_ok(write_set(10));
    assert_int_equal(assert_latest_is_complete(), 10);
    assert_int_equal(remove_all("out"), 1 + 1 + 2 * (1 + WORLD));
}

static void what_is_not_ours_stays(void **state)
{
    (void)state;
    static const char *const folders[] = {
        "out/step-01", "out/step-",   "out/step-1x",
        "out/Step-1",  "out/step--1", "out/step-99999999999999999999"};
    static const char *const files[] = {
        "out/notes",
        "out/step-2",
        "out/step-01/worker-0.safetensors",
        "out/step-3/notes",
        "out/step-3/worker-0.safetensors.old",
        "out/step-3/worker-.safetensors",
        "out/step-3/worker-00.safetensors",
        "out/step-3/model.safetensors",
        "elsewhere/worker-0.safetensors"};
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        assert_int_equal(mkdir(folders[i], 0777), 0);
    }
    assert_ok(write_worker(3, 0));
    assert_int_equal(mkdir("elsewhere", 0777), 0);
    assert_int_equal(symlink("../elsewhere", "out/step-4"), 0);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        put_file(files[i], "mine", 4);
    }
    assert_ok(write_set(10));
    assert_ok(write_set(11));
    train_checkpoint_discard("out", 4);
    train_checkpoint_discard("out", 2);
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        assert_true(data_is_folder(folders[i]));
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        assert_holds(files[i], "mine");
    }
    assert_false(data_is_file("out/step-3/worker-0.safetensors"));
}

static void a_set_is_discarded_unless_it_is_the_latest(void **state)
{
    (void)state;
    assert_ok(write_set(1));
    assert_ok(write_worker(2, 0));
    train_checkpoint_discard("out", 2);
    train_checkpoint_discard("out", 3);
    train_checkpoint_discard("out", 1);
    assert_false(data_is_folder("out/step-2"));
    assert_int_equal(assert_latest_is_complete(), 1);
}

static uint32_t list_of(uint32_t rank, uint64_t steps[TRAIN_SETS_MAX])
{
    return train_checkpoint_list(&(train_place){"out", 0, rank, WORLD}, steps);
}

static void the_sets_of_a_worker_are_listed_newest_first(void **state)
{
    (void)state;
    uint64_t steps[TRAIN_SETS_MAX];
    assert_int_equal(list_of(0, steps), 0);
    assert_ok(write_worker(100, 0));
    assert_ok(write_worker(9, 0));
    assert_ok(write_worker(0, 0));
    assert_ok(write_worker(20, 1));
    assert_int_equal(mkdir("out/step-30", 0777), 0);
    assert_int_equal(list_of(0, steps), 3);
    assert_int_equal(steps[0], 100);
    assert_int_equal(steps[1], 9);
    assert_int_equal(steps[2], 0);
    assert_int_equal(list_of(1, steps), 1);
    assert_int_equal(steps[0], 20);
    for (uint64_t step = 200; step < 200 + TRAIN_SETS_MAX; step++) {
        assert_ok(write_worker(step, 0));
    }
    assert_int_equal(list_of(0, steps), TRAIN_SETS_MAX);
    for (uint64_t i = 0; i < TRAIN_SETS_MAX; i++) {
        assert_int_equal(steps[i], 199 + TRAIN_SETS_MAX - i);
    }
}

static void a_rewind_removes_later_sets_only(void **state)
{
    (void)state;
    assert_ok(write_set(10));
    assert_ok(write_set(20));
    assert_ok(write_worker(30, 1));
    assert_ok(train_checkpoint_rewind("out", 20));
    assert_int_equal(assert_latest_is_complete(), 20);
    assert_false(data_is_folder("out/step-30"));
    assert_ok(train_checkpoint_rewind("out", 10));
    assert_int_equal(assert_latest_is_complete(), 10);
    assert_int_equal(remove_all("out"), 1 + 1 + (1 + WORLD));
}

static void only_sets_that_were_never_committed_are_cleared(void **state)
{
    (void)state;
    assert_ok(write_set(10));
    train_checkpoint_clear("out");
    assert_int_equal(assert_latest_is_complete(), 10);
    assert_int_equal(unlink("out/latest"), 0);
    put_text("out/notes", "mine");
    train_checkpoint_clear("out");
    assert_int_equal(remove_all("out"), 1 + 1);
}

static void a_latest_that_names_no_set_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "step-",
        "step-1\n",
        "step-01",
        "step-1/../..",
        "../x",
        "step-1 ",
        " step-1",
        "step-18446744073709551616",
        "step--1",
        "step-000000000000000000000000000000000000000000000000001"};
    uint64_t step = 77;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        put_file("out/latest", texts[i], strlen(texts[i]));
        assert_fails(
            train_checkpoint_latest("out", &step), LAC_ERR_CORRUPT,
            "out/latest: does not name a set, expected step-N");
    }
    put_file("out/latest", "step-1\0", 7);
    assert_status(train_checkpoint_latest("out", &step), LAC_ERR_CORRUPT);
    assert_int_equal(remove("out/latest"), 0);
    assert_int_equal(mkdir("out/latest", 0777), 0);
    assert_fails(
        train_checkpoint_latest("out", &step), LAC_ERR_INVALID,
        "out/latest: cannot read: Is a directory");
    assert_int_equal(step, 77);
}

static void a_file_of_another_place_is_refused(void **state)
{
    (void)state;
    sample out;
    sample_clear(&out);
    assert_ok(write_set(5));
    assert_fails(
        train_checkpoint_read(&(train_place){"out", 5, 1, 4}, &out.record),
        LAC_ERR_INVALID,
        "out/step-5/worker-1.safetensors: was written by 3 workers, "
        "expected 4");
    assert_fails(
        train_checkpoint_read(&(train_place){"out", 5, 3, 4}, &out.record),
        LAC_ERR_INVALID,
        "out/step-5/worker-3.safetensors: does not exist, expected the file "
        "of worker 3 of 4");
    assert_int_equal(
        rename(
            "out/step-5/worker-0.safetensors",
            "out/step-5/worker-1.safetensors"),
        0);
    assert_fails(
        train_checkpoint_read(&(train_place){"out", 5, 1, 3}, &out.record),
        LAC_ERR_INVALID,
        "out/step-5/worker-1.safetensors: was written by worker 0, expected 1");
    assert_int_equal(rename("out/step-5", "out/step-6"), 0);
    assert_fails(
        train_checkpoint_read(&(train_place){"out", 6, 2, 3}, &out.record),
        LAC_ERR_INVALID,
        "out/step-6/worker-2.safetensors: was written at step 5, expected 6");
    out.record.number_count--;
    assert_int_equal(rename("out/step-6", "out/step-5"), 0);
    assert_fails(
        train_checkpoint_read(&(train_place){"out", 5, 2, 3}, &out.record),
        LAC_ERR_INVALID,
        "out/step-5/worker-2.safetensors: has 8 metadata entries, "
        "expected 7");
    assert_untouched(&out);
}

static void what_cannot_be_made_is_named(void **state)
{
    (void)state;
    sample in;
    uint64_t previous = 77;
    sample_fill(&in, 1);
    assert_int_equal(symlink("nothing", "dangling"), 0);
    assert_fails(
        train_checkpoint_write(&(train_place){"dangling", 5, 0, 1}, &in.record),
        LAC_ERR_INVALID,
        "dangling: the folder of the run is missing, expected one that exists "
        "until the run ends");
    assert_fails(
        train_checkpoint_write(&(train_place){"", 5, 0, 1}, &in.record),
        LAC_ERR_INVALID, "a path is empty, expected the name of a file");
    assert_fails(
        train_checkpoint_commit("out", 5, &previous), LAC_ERR_INVALID,
        "out/step-5: does not exist, expected a set");
}

static void a_folder_that_was_removed_is_not_made_again(void **state)
{
    (void)state;
    sample in;
    sample_fill(&in, 1);
    assert_int_equal(rmdir("out"), 0);
    assert_fails(
        train_checkpoint_write(&(train_place){"out", 5, 0, 1}, &in.record),
        LAC_ERR_INVALID,
        "out: the folder of the run is missing, expected one that exists "
        "until the run ends");
    assert_false(data_is_folder("out"));
    assert_int_equal(mkdir("out", 0777), 0);
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, make_out, empty_out)
    const struct CMUnitTest tests[] = {
        test(the_latest_set_is_read),
        test(a_set_counts_when_it_is_committed),
        test(the_last_two_sets_are_kept),
        test(a_later_set_that_is_being_written_stays),
        test(sets_that_were_begun_are_removed),
        test(a_set_may_be_committed_again),
        test(what_is_not_ours_stays),
        test(a_set_is_discarded_unless_it_is_the_latest),
        test(the_sets_of_a_worker_are_listed_newest_first),
        test(a_rewind_removes_later_sets_only),
        test(only_sets_that_were_never_committed_are_cleared),
        test(a_latest_that_names_no_set_is_refused),
        test(a_file_of_another_place_is_refused),
        test(what_cannot_be_made_is_named),
        test(a_folder_that_was_removed_is_not_made_again),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
