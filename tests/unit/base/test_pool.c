// SPDX-License-Identifier: MIT
// Pools of threads: every index is visited once, in ranges of whole units, by
// at least as many calls as laci_pool_shares promises.
#define _POSIX_C_SOURCE 200809L // pthread_sigmask
#include "lac_test.h"

#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pool.h"

enum { MOST = 300000, LOOPS = 300 };

typedef struct visits {
    size_t unit;
    atomic_size_t calls;
    atomic_size_t misplaced; // ranges that do not begin at a unit
    unsigned char count[MOST];
} visits;

static void visit(void *context, size_t first, size_t n)
{
    visits *const v = context;
    atomic_fetch_add(&v->calls, 1);
    if (first % v->unit != 0) {
        atomic_fetch_add(&v->misplaced, 1);
    }
    for (size_t i = first; i < first + n; i++) {
        v->count[i]++;
    }
}

static void assert_visited(laci_pool *p, size_t n, size_t unit)
{
    static visits v;
    memset(v.count, 0, sizeof(v.count));
    v.unit = unit;
    atomic_store(&v.calls, 0);
    atomic_store(&v.misplaced, 0);
    laci_pool_run(p, n, unit, visit, &v);
    assert_int_equal(atomic_load(&v.misplaced), 0);
    const size_t shares = n == 0 ? 1 : laci_pool_shares(p, n, unit);
    assert_true(atomic_load(&v.calls) >= shares);
    assert_true(shares > 1 || atomic_load(&v.calls) == 1);
    for (size_t i = 0; i < MOST; i++) {
        assert_int_equal(v.count[i], i < n);
    }
}

static void every_index_is_visited_once(void **state)
{
    (void)state;
    static const size_t lengths[] = {0,     1,      5,      65535,
                                     65536, 100000, 262144, MOST};
    static const size_t units[] = {1, 1024, 65536, MOST};
    for (uint32_t threads = 1; threads <= 5; threads++) {
        laci_pool *p = NULL;
        assert_ok(laci_pool_open(&p, threads));
        assert_true((p == NULL) == (threads == 1));
        for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
            for (size_t k = 0; k < sizeof(units) / sizeof(*units); k++) {
                assert_visited(p, lengths[i], units[k]);
            }
        }
        laci_pool_close(p);
    }
}

static void long_loops_are_shared_by_all(void **state)
{
    (void)state;
    laci_pool *p = NULL;
    assert_ok(laci_pool_open(&p, 3));
    assert_int_equal(laci_pool_shares(p, MOST, 1), 3);
    assert_int_equal(laci_pool_shares(p, MOST, MOST / 2), 2);
    assert_int_equal(laci_pool_shares(p, 1000, 1), 1);
    assert_int_equal(laci_pool_shares(NULL, MOST, 1), 1);
    laci_pool_close(p);
}

// Calls of a loop, which wait until there are two.
typedef struct pair_of_calls {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    size_t calls;
} pair_of_calls;

// The first call waits for a second one, which only another thread can make.
static void wait_for_two(void *context, size_t first, size_t n)
{
    pair_of_calls *const m = context;
    (void)first;
    (void)n;
    (void)pthread_mutex_lock(&m->lock);
    m->calls++;
    (void)pthread_cond_broadcast(&m->arrived);
    while (m->calls < 2) {
        (void)pthread_cond_wait(&m->arrived, &m->lock);
    }
    (void)pthread_mutex_unlock(&m->lock);
}

static void other_threads_take_part(void **state)
{
    (void)state;
    laci_pool *p = NULL;
    assert_ok(laci_pool_open(&p, 2));
    for (size_t i = 0; i < LOOPS; i++) {
        pair_of_calls m = {
            PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, .calls = 0};
        laci_pool_run(p, MOST, 1, wait_for_two, &m);
        assert_true(m.calls >= 2);
    }
    laci_pool_close(p);
}

static void add_one(void *context, size_t first, size_t n)
{
    int *const x = context;
    for (size_t i = first; i < first + n; i++) {
        x[i]++;
    }
}

// Each loop sees what the last one has written.
static void loops_follow_each_other(void **state)
{
    (void)state;
    static int x[100000];
    laci_pool *p = NULL;
    assert_ok(laci_pool_open(&p, 4));
    for (size_t i = 0; i < LOOPS; i++) {
        laci_pool_run(p, 100000, 1 + i, add_one, x);
    }
    for (size_t i = 0; i < 100000; i++) {
        assert_int_equal(x[i], LOOPS);
    }
    laci_pool_close(p);
}

// A fork of the process does without the threads, which it does not have.
static void a_fork_runs_alone(void **state)
{
    (void)state;
    laci_pool *p = NULL;
    assert_ok(laci_pool_open(&p, 3));
    assert_visited(p, MOST, 1);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static int x[MOST];
        laci_pool_run(p, MOST, 1, add_one, x);
        const bool right =
            laci_pool_shares(p, MOST, 1) == 1 && x[0] == 1 && x[MOST - 1] == 1;
        laci_pool_close(p);
        _exit(right ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_visited(p, MOST, 1);
    laci_pool_close(p);
}

typedef struct surroundings {
    pair_of_calls calls;
    pthread_t owner;
    atomic_int others;     // calls in another thread
    atomic_int open_mask;  // of these, with signals
    atomic_int other_mode; // calls that do not round upward
} surroundings;

static void look_around(void *context, size_t first, size_t n)
{
    surroundings *const s = context;
    sigset_t mask;
    wait_for_two(&s->calls, first, n);
    atomic_fetch_add(&s->other_mode, fegetround() != FE_UPWARD);
    if (pthread_equal(pthread_self(), s->owner) == 0) {
        const int code = pthread_sigmask(SIG_BLOCK, NULL, &mask);
        atomic_fetch_add(&s->others, 1);
        atomic_fetch_add(
            &s->open_mask, code != 0 || sigismember(&mask, SIGTERM) != 1 ||
                               sigismember(&mask, SIGINT) != 1 ||
                               sigismember(&mask, SIGSEGV) != 0);
    }
}

// A mode that the owner sets after it opened the pool, since results must not
// depend on threads. Signals are for the threads of the program, except those
// of a fault in the thread itself.
static void threads_have_the_mode_of_the_owner_and_no_signals(void **state)
{
    (void)state;
    laci_pool *p = NULL;
    surroundings s = {
        .calls = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0},
        .owner = pthread_self()};
    assert_ok(laci_pool_open(&p, 2));
    const int usual = fegetround();
    assert_int_equal(fesetround(FE_UPWARD), 0);
    laci_pool_run(p, MOST, 1, look_around, &s);
    assert_int_equal(fesetround(usual), 0);
    laci_pool_close(p);
    assert_true(atomic_load(&s.others) > 0);
    assert_int_equal(atomic_load(&s.open_mask), 0);
    assert_int_equal(atomic_load(&s.other_mode), 0);
}

static void other_numbers_of_threads_are_refused(void **state)
{
    (void)state;
    laci_pool *p = NULL;
    assert_fails(
        laci_pool_open(&p, 0), LAC_ERR_INVALID,
        "threads are 0, expected from 1 to 256");
    assert_fails(
        laci_pool_open(&p, 257), LAC_ERR_INVALID,
        "threads are 257, expected from 1 to 256");
    laci_pool_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_is_visited_once),
        cmocka_unit_test(long_loops_are_shared_by_all),
        cmocka_unit_test(other_threads_take_part),
        cmocka_unit_test(loops_follow_each_other),
        cmocka_unit_test(a_fork_runs_alone),
        cmocka_unit_test(threads_have_the_mode_of_the_owner_and_no_signals),
        cmocka_unit_test(other_numbers_of_threads_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
