// SPDX-License-Identifier: MIT
// Kills a process, or a thread, at a chosen call that changes the names in a
// folder. Tests that include this are linked with --wrap=fsync, rename, mkdir,
// unlink and rmdir.
#ifndef LACONIC_TESTS_KILLS_H
#define LACONIC_TESTS_KILLS_H

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lac_test.h"

// Calls of this thread until be_killed is called; -1: it never is.
static _Thread_local long calls_left = -1;

// Defined by the test. Does not return.
static void be_killed(void);

static inline void count_call(void)
{
    if (calls_left == 0) {
        calls_left = -1;
        be_killed();
    }
    calls_left -= calls_left > 0;
}

int __wrap_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __real_rmdir(const char *path);
int __wrap_rmdir(const char *path);

// A killed process does not lose what it gave to the system, so a flush would
// only take time.
int __wrap_fsync(int fd)
{
    (void)fd;
    return 0;
}

int __wrap_rename(const char *from, const char *to)
{
    count_call();
    return __real_rename(from, to);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    count_call();
    return __real_mkdir(path, mode);
}

int __wrap_unlink(const char *path)
{
    count_call();
    return __real_unlink(path);
}

int __wrap_rmdir(const char *path)
{
    count_call();
    return __real_rmdir(path);
}

// How a child process ended: two exit codes, or by SIGKILL.
enum { COMPLETE, FAILED, KILLED };

static inline int end_of(pid_t child)
{
    int how = 0;
    assert_true(child >= 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    if (WIFSIGNALED(how)) {
        assert_int_equal(WTERMSIG(how), SIGKILL);
        return KILLED;
    }
    return WEXITSTATUS(how);
}

#endif
