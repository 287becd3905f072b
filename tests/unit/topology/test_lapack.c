// SPDX-License-Identifier: MIT
// LAPACK is loaded by the first spectrum, by whichever thread asks first. The
// order of the tests matters: the first two are about a process without it.
#define _GNU_SOURCE // RTLD_NOLOAD
#include "topology/lapack.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>

#include "lac_test.h"

enum { THREADS = 4 };

static bool is_loaded(void)
{
    return dlopen(LACI_LAPACK, RTLD_LAZY | RTLD_NOLOAD) != NULL;
}

static void networks_load_nothing(void **state)
{
    (void)state;
    lac_topology *t;
    lac_spectrum s;
    assert_ok(lac_topology_open(&t, "ring", 8, 1));
    lac_topology_close(t);
    assert_ok(lac_topology_open(&t, "random-matching", 8, 1));
    assert_ok(lac_topology_spectrum(t, &s)); // known without LAPACK
    lac_topology_close(t);
    assert_false(is_loaded());
}

typedef struct question {
    const lac_topology *t;
    lac_status status;
    lac_spectrum answer;
} question;

static void *ask(void *argument)
{
    question *const q = argument;
    q->status = lac_topology_spectrum(q->t, &q->answer);
    return NULL;
}

static void threads_may_ask_first_at_once(void **state)
{
    (void)state;
    lac_topology *t;
    pthread_t threads[THREADS];
    question q[THREADS];
    assert_ok(lac_topology_open(&t, "ring", 64, 1));
    for (size_t i = 0; i < THREADS; i++) {
        q[i] = (question){.t = t};
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &q[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(q[i].status, LAC_OK);
        assert_true(fabs(q[i].answer.gap - 0.003210) < 5e-7);
        assert_true(q[i].answer.gap == q[0].answer.gap);
    }
    lac_topology_close(t);
    assert_true(is_loaded());
}

static void a_missing_library_is_named(void **state)
{
    (void)state;
    laci_lapack_function *function = NULL;
    assert_fails(
        laci_lapack_load("ring", "liblapack.so.0", "dsyev_", &function),
        LAC_ERR_UNSUPPORTED,
        "ring: no LAPACK for the spectrum: liblapack.so.0: cannot open shared "
        "object file: No such file or directory; on Debian, install liblapack3 "
        "or libopenblas0");
    assert_null(function);
}

static void a_library_without_the_function_is_refused(void **state)
{
    (void)state;
    laci_lapack_function *function = NULL;
    assert_fails(
        laci_lapack_load("ring", "libm.so.6", "dsyev_", &function),
        LAC_ERR_UNSUPPORTED,
        "ring: no LAPACK for the spectrum: libm.so.6 has no dsyev_");
    assert_null(function);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_load_nothing),
        cmocka_unit_test(threads_may_ask_first_at_once),
        cmocka_unit_test(a_missing_library_is_named),
        cmocka_unit_test(a_library_without_the_function_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
