// SPDX-License-Identifier: MIT
// Workers, for tests of what they do together: every body runs in a thread of
// its own that has joined one local group. A test that is compiled with
// LACI_TEST_MPI is run by several processes of an MPI job instead, see
// workers_mpi.h; it then asserts in all of them, on the same values.
#ifndef LACONIC_TESTS_WORKERS_H
#define LACONIC_TESTS_WORKERS_H

#include "lac_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct test_worker {
    uint32_t rank;
    uint32_t world;
    lac_transport *transport;
    void *context;      // the same for all
    lac_status status;  // what the body returned
    char sentence[512]; // and had to say
    lac_status (*body)(struct test_worker *w);
    lac_hub *hub;
    pthread_t thread;
} test_worker;

static inline void join_and_run(test_worker *w, const char *transport)
{
    w->status =
        lac_transport_join(&w->transport, transport, w->hub, w->rank, w->world);
    if (w->status == LAC_OK) {
        w->status = w->body(w);
    }
    (void)snprintf(
        w->sentence, sizeof(w->sentence), "%s",
        w->status == LAC_OK ? "" : lac_error_message());
    lac_transport_leave(w->transport);
}

#ifdef LACI_TEST_MPI
#include "workers_mpi.h"
#else

// What does not depend on how messages travel is left to threads: processes
// take long to meet.
enum { WORKERS_ARE_THREADS = true };

static inline void *run_test_worker(void *argument)
{
    join_and_run(argument, "local");
    return NULL;
}

// Runs `body` in `world` threads and waits for all of them. cmocka's asserts
// do not work in other threads: bodies return a status, the caller looks at
// workers_out[0..world).
static inline void run_workers(
    uint32_t world, lac_status (*body)(test_worker *w), void *context,
    test_worker *workers_out)
{
    lac_hub *hub;
    assert_ok(lac_hub_open(&hub, world));
    for (uint32_t rank = 0; rank < world; rank++) {
        workers_out[rank] = (test_worker){
            .rank = rank,
            .world = world,
            .context = context,
            .body = body,
            .hub = hub,
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
}

// Makes rows[0..world), of which each worker wrote its own, known to all.
// Threads have one memory.
static inline void share_rows(void *rows, size_t size, uint32_t world)
{
    (void)rows;
    (void)size;
    (void)world;
}

// Waits in a body until all workers are there.
static inline void meet_workers(uint32_t world)
{
    static _Atomic uint32_t arrived;
    const uint32_t before = arrived++;
    while (arrived < before - before % world + world) {
        (void)sched_yield();
    }
}

// Before and after all tests.
static inline int muster_workers(void **state)
{
    (void)state;
    return 0;
}

static inline int dismiss_workers(void **state)
{
    (void)state;
    return 0;
}

#endif

static inline void assert_all_ok(const test_worker *workers, uint32_t world)
{
    for (uint32_t rank = 0; rank < world; rank++) {
        if (workers[rank].status != LAC_OK) {
            print_error("worker %u: %s\n", rank, workers[rank].sentence);
            fail();
        }
    }
}

#endif
