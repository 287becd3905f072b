// SPDX-License-Identifier: MIT
// However a run ends, by a full disk or by a kill during any call that changes
// the disk, the latest set is complete.
#include <string.h>
#include <sys/resource.h>

#include "folder.h"
#include "kills.h"
#include "sets.h"
#include "train/checkpoint.h"

ssize_t __real_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len);

// Writes only half, so that the other half can be missing.
ssize_t __wrap_write(int fd, const void *data, size_t len)
{
    count_call();
    return __real_write(fd, data, calls_left < 0 ? len : (len + 1) / 2);
}

static void be_killed(void)
{
    (void)raise(SIGKILL);
}

// Runs in a separate process, where files can have `limit` bytes at most, and
// returns COMPLETE if it fails with this message.
static int end_of_full_disk(rlim_t limit, const char *message)
{
    const pid_t child = fork();
    if (child == 0) {
        (void)signal(SIGXFSZ, SIG_IGN);
        (void)setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, RLIM_INFINITY});
        uint64_t previous = 0;
        const lac_status status =
            limit > 100 ? write_set(2)
                        : train_checkpoint_commit("out", 2, &previous);
        _exit(
            status != LAC_ERR_INVALID ||
            strcmp(lac_error_message(), message) != 0);
    }
    return end_of(child);
}

static void a_disk_that_is_full_leaves_the_latest(void **state)
{
    (void)state;
    assert_ok(write_set(1));
    assert_int_equal(
        end_of_full_disk(
            200, "out/step-2/worker-0.safetensors: cannot write: File too "
                 "large"),
        COMPLETE);
    assert_int_equal(remove_all("out/step-2"), 1);
    assert_int_equal(assert_latest_is_complete(), 1);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        assert_ok(write_worker(2, rank));
    }
    assert_int_equal(
        end_of_full_disk(3, "out/latest: cannot write: File too large"),
        COMPLETE);
    assert_int_equal(assert_latest_is_complete(), 1);
    assert_int_equal(remove_all("out"), 1 + 1 + 2 * (1 + WORLD));
}

// Writes the sets 2 and 3, which removes the first, and is killed at call `k`.
// Returns whether it was.
static bool killed_at(long k)
{
    const pid_t child = fork();
    if (child == 0) {
        lac_status status = LAC_OK;
        calls_left = k;
        for (uint64_t step = 2; status == LAC_OK && step <= 3; step++) {
            status = write_set(step);
        }
        _exit(status != LAC_OK);
    }
    const int end = end_of(child);
    assert_true(end == COMPLETE || end == KILLED);
    return end == KILLED;
}

// Each time the next run continues from there and removes the remains.
static void a_run_that_is_killed_anywhere_has_a_complete_set(void **state)
{
    (void)state;
    long k = 0;
    uint64_t reached = 1;
    for (bool killed = true; killed; k++) {
        assert_ok(write_set(1));
        killed = killed_at(k);
        const uint64_t step = assert_latest_is_complete();
        assert_true(step >= reached && step <= 3);
        reached = step;
        assert_ok(write_set(step + 1));
        assert_int_equal(assert_latest_is_complete(), step + 1);
        assert_true(remove_all("out") <= 1 + 1 + 2 * (1 + WORLD) + 1);
        assert_int_equal(mkdir("out", 0777), 0);
    }
    assert_int_equal(reached, 3);
    assert_true(k > 2 * (WORLD + 1) * 4);
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, make_out, empty_out)
    const struct CMUnitTest tests[] = {
        test(a_disk_that_is_full_leaves_the_latest),
        test(a_run_that_is_killed_anywhere_has_a_complete_set),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
