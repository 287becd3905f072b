// SPDX-License-Identifier: MIT
// The worker harness of all tests: runs a function as every worker of a group.
// Workers are threads that join one local hub, or a group over tcp in a test
// that is compiled with LACI_TEST_TCP, or over a user-defined transport with
// LACI_TEST_USER, which is 1 for a rendezvous. One that is compiled with
// LACI_TEST_MPI is run by the processes of an MPI job instead, see
// workers_mpi.h; it then asserts in all of them, on the same values.
//
// cmocka's asserts do not work outside the main thread. A body returns a status
// and uses LAC_TRY and EXPECT; the caller of run_workers asserts.
#ifndef LACONIC_TESTS_WORKERS_H
#define LACONIC_TESTS_WORKERS_H

#include "lac_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef LACI_TEST_TCP
#include "tcp_group.h"
#endif
#ifdef LACI_TEST_USER
#include "user_group.h"
#endif

typedef struct test_worker {
    uint32_t rank;
    uint32_t world;
    lac_transport *transport;
    void *context;            // the same for all
    lac_status status;        // the result of the body
    char message[512];        // its error message, empty after success
    struct laci_group *group; // in tests that use groups.h
    lac_status (*body)(struct test_worker *w);
    lac_hub *hub;
    const struct tcp_group *tcp; // in tests over tcp
    struct user_group *user;     // in tests over a user-defined transport
    pthread_t thread;
} test_worker;

typedef lac_status worker_body(test_worker *w);

// Returns from a body with a failure that names the condition and its line.
#define EXPECT(condition)                                                      \
    do {                                                                       \
        if (!(condition)) {                                                    \
            return lac_fail(                                                   \
                LAC_ERR_SPACE, "%s:%d: %s", __FILE__, __LINE__, #condition);   \
        }                                                                      \
    } while (0)

static inline void run_joined(test_worker *w, lac_status joined)
{
    w->status = joined;
    if (w->status == LAC_OK) {
        w->status = w->body(w);
    }
    (void)snprintf(
        w->message, sizeof(w->message), "%s",
        w->status == LAC_OK ? "" : lac_error_message());
    lac_transport_leave(w->transport);
}

// With LAC_TEST_SHORT in the environment a test runs its duties with a few
// cases and at most three workers: enough to see whether a transport works.
static inline bool is_short(void)
{
    return getenv("LAC_TEST_SHORT") != NULL;
}

// The most workers that a duty may start.
static inline uint32_t largest_world(void)
{
    return is_short() ? 3 : 8;
}

#ifdef LACI_TEST_MPI
#include "workers_mpi.h"
#else

// Duties that do not depend on the transport skip their work over other ones
// than local, where starting and synchronising workers takes most of the time.
#if defined(LACI_TEST_TCP) || defined(LACI_TEST_USER)
enum { WORKERS_ARE_LOCAL = false };
#else
enum { WORKERS_ARE_LOCAL = true };
#endif

static inline void *run_test_worker(void *argument)
{
    test_worker *const w = argument;
#ifdef LACI_TEST_TCP
    run_joined(w, tcp_group_join(w->tcp, w->rank, &w->transport));
#elif defined(LACI_TEST_USER)
    run_joined(w, user_group_join(w->user, w->rank, &w->transport));
#else
    run_joined(
        w,
        lac_transport_join(&w->transport, "local", w->hub, w->rank, w->world));
#endif
    return NULL;
}

// Runs `body` in `world` threads, waits for all of them and writes their
// results to workers_out[0..world).
static inline void run_workers(
    uint32_t world, worker_body *body, void *context, test_worker *workers_out)
{
    lac_hub *hub;
    assert_ok(lac_hub_open(&hub, world));
#ifdef LACI_TEST_TCP
    tcp_group group;
    assert_ok(tcp_group_open(&group, world, ""));
#endif
#ifdef LACI_TEST_USER
    user_group user;
    user_group_open(&user, world, LACI_TEST_USER);
#endif
    for (uint32_t rank = 0; rank < world; rank++) {
        workers_out[rank] = (test_worker){
            .rank = rank,
            .world = world,
            .context = context,
            .body = body,
            .hub = hub,
#ifdef LACI_TEST_TCP
            .tcp = &group,
#endif
#ifdef LACI_TEST_USER
            .user = &user,
#endif
        };
        assert_int_equal(
            pthread_create(
                &workers_out[rank].thread, NULL, run_test_worker,
                &workers_out[rank]),
            0);
    }
    for (uint32_t rank = 0; rank < world; rank++) {
        assert_int_equal(pthread_join(workers_out[rank].thread, NULL), 0);
    }
    lac_hub_close(hub);
#ifdef LACI_TEST_USER
    user_group_close(&user);
#endif
}

// Gives all workers rows[0..world), of which each has written its own. Threads
// share their memory.
static inline void share_rows(void *rows, size_t size, uint32_t world)
{
    (void)rows;
    (void)size;
    (void)world;
}

// A barrier for bodies.
static inline void workers_barrier(uint32_t world)
{
    static _Atomic uint32_t arrived;
    const uint32_t before = arrived++;
    while (arrived < before - before % world + world) {
        (void)sched_yield();
    }
}

// The setup and the teardown of a group of tests.
static inline int setup_workers(void **state)
{
    (void)state;
    return 0;
}

static inline int teardown_workers(void **state)
{
    (void)state;
    return 0;
}

#endif

// Prints the messages of all workers that failed: the first may only report
// that another one is gone.
static inline void assert_all_ok(const test_worker *workers, uint32_t world)
{
    bool ok = true;
    for (uint32_t rank = 0; rank < world; rank++) {
        if (workers[rank].status != LAC_OK) {
            print_error("worker %u: %s\n", rank, workers[rank].message);
            ok = false;
        }
    }
    assert_true(ok);
}

static inline lac_algorithm_options options_for(
    const char *spec, const char *compressor)
{
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = spec;
    o.compressor = compressor;
    return o;
}

// The handles of a worker.
typedef struct handles {
    lac_layout *layout;
    lac_topology *topology; // or NULL
    lac_algorithm *a;
    lac_algorithm *retired; // peers may still read its messages
} handles;

// Opens a layout, and a topology unless that is NULL, for these options.
static inline lac_status open_parts(
    handles *h, lac_algorithm_options *o, const char *topology, uint32_t world,
    const lac_tensor *tensors, size_t count)
{
    LAC_TRY(lac_layout_open(&h->layout, tensors, count));
    o->layout = h->layout;
    if (topology != NULL) {
        LAC_TRY(lac_topology_open(&h->topology, topology, world, o->seed));
        o->topology = h->topology;
    }
    return LAC_OK;
}

static inline void close_handles(handles *h)
{
    lac_algorithm_close(h->a);
    lac_algorithm_close(h->retired);
    lac_topology_close(h->topology);
    lac_layout_close(h->layout);
}

typedef lac_status algorithm_body(test_worker *w, lac_algorithm *a);

// Opens an algorithm for these tensors, on a topology unless that is NULL, runs
// `body` with it and closes it.
static inline lac_status with_algorithm(
    test_worker *w, lac_algorithm_options o, const char *topology,
    const lac_tensor *tensors, size_t count, algorithm_body *body)
{
    handles h = {0};
    lac_status status = open_parts(&h, &o, topology, w->world, tensors, count);
    o.transport = w->transport;
    if (status == LAC_OK) {
        status = lac_algorithm_open(&h.a, &o);
    }
    if (status == LAC_OK) {
        status = body(w, h.a);
    }
    lac_transport_leave(w->transport); // peers read messages until then
    w->transport = NULL;
    close_handles(&h);
    return status;
}

#endif
