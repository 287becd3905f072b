// SPDX-License-Identifier: MIT
// A thread that cannot be created leaves nothing behind.
#include "train/compute.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "lac_test.h"

// The call that fails: of pthread_mutex_init, pthread_cond_init,
// pthread_attr_init and pthread_create, in this order; -1 for none.
static int failing = -1;
static int mutexes, conditions, attributes;

int __real_pthread_mutex_init(pthread_mutex_t *, const pthread_mutexattr_t *);
int __wrap_pthread_mutex_init(pthread_mutex_t *, const pthread_mutexattr_t *);
int __real_pthread_mutex_destroy(pthread_mutex_t *);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *);
int __real_pthread_cond_init(pthread_cond_t *, const pthread_condattr_t *);
int __wrap_pthread_cond_init(pthread_cond_t *, const pthread_condattr_t *);
int __real_pthread_cond_destroy(pthread_cond_t *);
int __wrap_pthread_cond_destroy(pthread_cond_t *);
int __real_pthread_attr_init(pthread_attr_t *);
int __wrap_pthread_attr_init(pthread_attr_t *);
int __real_pthread_attr_destroy(pthread_attr_t *);
int __wrap_pthread_attr_destroy(pthread_attr_t *);
int __real_pthread_create(
    pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(
    pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int __wrap_pthread_mutex_init(
    pthread_mutex_t *lock, const pthread_mutexattr_t *attr)
{
    if (failing == 0) {
        return ENOMEM;
    }
    mutexes++;
    return __real_pthread_mutex_init(lock, attr);
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *lock)
{
    mutexes--;
    return __real_pthread_mutex_destroy(lock);
}

int __wrap_pthread_cond_init(
    pthread_cond_t *condition, const pthread_condattr_t *attr)
{
    if (failing == 1) {
        return ENOMEM;
    }
    conditions++;
    return __real_pthread_cond_init(condition, attr);
}

int __wrap_pthread_cond_destroy(pthread_cond_t *condition)
{
    conditions--;
    return __real_pthread_cond_destroy(condition);
}

int __wrap_pthread_attr_init(pthread_attr_t *attr)
{
    if (failing == 2) {
        return ENOMEM;
    }
    attributes++;
    return __real_pthread_attr_init(attr);
}

int __wrap_pthread_attr_destroy(pthread_attr_t *attr)
{
    attributes--;
    return __real_pthread_attr_destroy(attr);
}

int __wrap_pthread_create(
    pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
    void *argument)
{
    return failing == 3 ? EAGAIN
                        : __real_pthread_create(thread, attr, run, argument);
}

static train_compute_options options_for(const char *model)
{
    const nn_options one = {
        .model = model, .sample = {1, 2, 2, 2}, .batch = 1, .training = true};
    train_compute_options options = {one, one, .own_thread = true};
    options.testing.training = false;
    return options;
}

static void assert_nothing_is_left(void)
{
    assert_int_equal(mutexes, 0);
    assert_int_equal(conditions, 0);
    assert_int_equal(attributes, 0);
}

static void a_thread_that_cannot_be_created_leaves_nothing(void **state)
{
    (void)state;
    const train_compute_options options = options_for("logistic");
    for (failing = 0; failing < 4; failing++) {
        train_compute *c = NULL;
        assert_fails(
            train_compute_open(&c, &options), LAC_ERR_NOMEM,
            "cannot create a thread that computes gradients; run with fewer "
            "workers or without --overlap");
        assert_null(c);
        assert_nothing_is_left();
    }
    failing = -1;
}

static void a_network_that_cannot_be_opened_ends_the_thread(void **state)
{
    (void)state;
    train_compute *c = NULL;
    const train_compute_options options = options_for("resnet8");
    assert_fails(
        train_compute_open(&c, &options), LAC_ERR_INVALID,
        "resnet8: examples are 1 x 2 x 2, expected images of at least 8 x 8");
    assert_null(c);
    assert_nothing_is_left();
}

static void a_thread_is_closed_with_its_networks(void **state)
{
    (void)state;
    train_compute *c = NULL;
    const train_compute_options options = options_for("logistic");
    assert_ok(train_compute_open(&c, &options));
    assert_int_equal(mutexes, 1);
    assert_int_equal(conditions, 1);
    assert_true(train_compute_memory(c) > 0);
    train_compute_close(c);
    assert_nothing_is_left();
}

// A barrier of a worker and a task: neither passes it before the other.
typedef struct test_barrier {
    sem_t worker, task;
    lac_status status;
} test_barrier;

static lac_status pass_barrier(void *context)
{
    test_barrier *const m = context;
    (void)sem_post(&m->task);
    (void)sem_wait(&m->worker);
    return m->status == LAC_OK ? LAC_OK
                               : lac_fail(m->status, "test: not this step");
}

// A task that ran before or after the caller would wait for ever.
static void a_task_runs_beside_the_worker(void **state)
{
    (void)state;
    static const lac_status results[] = {LAC_OK, LAC_ERR_INVALID, LAC_OK};
    train_compute *c = NULL;
    const train_compute_options options = options_for("logistic");
    test_barrier m;
    assert_int_equal(sem_init(&m.worker, 0, 0), 0);
    assert_int_equal(sem_init(&m.task, 0, 0), 0);
    assert_ok(train_compute_open(&c, &options));
    for (size_t i = 0; i < 3; i++) {
        m.status = results[i];
        train_compute_start_task(c, pass_barrier, &m);
        assert_int_equal(sem_wait(&m.task), 0);
        assert_int_equal(sem_post(&m.worker), 0);
        if (results[i] == LAC_OK) {
            assert_ok(train_compute_finish_task(c));
        } else {
            assert_fails(
                train_compute_finish_task(c), results[i],
                "test: not this step");
        }
    }
    train_compute_close(c);
    (void)sem_destroy(&m.task);
    (void)sem_destroy(&m.worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_cannot_be_created_leaves_nothing),
        cmocka_unit_test(a_network_that_cannot_be_opened_ends_the_thread),
        cmocka_unit_test(a_thread_is_closed_with_its_networks),
        cmocka_unit_test(a_task_runs_beside_the_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
