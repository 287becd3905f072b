// SPDX-License-Identifier: MIT
// The workers of a test as the processes of an MPI job; part of workers.h.
// The job has as many processes as the largest world. Every process runs the
// whole test, and in a smaller world the last ones only wait. Results are
// shared, so that all processes assert the same.
#ifndef LACONIC_TESTS_WORKERS_MPI_H
#define LACONIC_TESTS_WORKERS_MPI_H

#include <mpi.h>
#include <time.h>

enum { WORKERS_ARE_LOCAL = false, TEST_PROCESSES = 8 };

// test_comms[n] holds the first n processes, and is MPI_COMM_NULL in the
// others.
static MPI_Comm test_comms[TEST_PROCESSES + 1];
static uint32_t test_rank;

// MPI_Wait polls without a pause, which starves the others when there are more
// processes than cores.
static inline void wait_for_request(MPI_Request *request)
{
    const struct timespec nap = {.tv_nsec = 50000};
    int done = 0;
    for (int polls = 0; done == 0; polls++) {
        assert_int_equal(
            MPI_Test(request, &done, MPI_STATUS_IGNORE), MPI_SUCCESS);
        if (done == 0 && polls > 64) {
            (void)nanosleep(&nap, NULL);
        }
    }
}

static inline void share_rows(void *rows, size_t size, uint32_t world)
{
    MPI_Request request;
    uint8_t *const own = calloc(TEST_PROCESSES + 1, size + 1);
    assert_non_null(own);
    uint8_t *const all = own + size;
    if (test_rank < world) {
        memcpy(own, (uint8_t *)rows + test_rank * size, size);
    }
    assert_int_equal(
        MPI_Iallgather(
            own, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, MPI_COMM_WORLD,
            &request),
        MPI_SUCCESS);
    wait_for_request(&request);
    memcpy(rows, all, world * size);
    free(own);
}

static inline void workers_barrier(uint32_t world)
{
    MPI_Request request;
    assert_int_equal(MPI_Ibarrier(test_comms[world], &request), MPI_SUCCESS);
    wait_for_request(&request);
}

static inline void run_workers(
    uint32_t world, worker_body *body, void *context, test_worker *workers_out)
{
    struct {
        lac_status status;
        char message[sizeof(workers_out->message)];
    } reports[TEST_PROCESSES] = {0};
    char spec[64];
    assert_true(world > 0 && world <= largest_world());
    if (test_rank < world) {
        test_worker w = {.rank = test_rank, .world = world, .context = context};
        w.body = body;
        (void)snprintf(
            spec, sizeof(spec), "mpi:comm=%d",
            (int)MPI_Comm_c2f(test_comms[world]));
        run_joined(
            &w, lac_transport_join(&w.transport, spec, NULL, w.rank, w.world));
        reports[test_rank].status = w.status;
        memcpy(reports[test_rank].message, w.message, sizeof(w.message));
    }
    share_rows(reports, sizeof(*reports), world);
    for (uint32_t rank = 0; rank < world; rank++) {
        test_worker *const w = &workers_out[rank];
        *w = (test_worker){.rank = rank, .world = world, .context = context};
        w->status = reports[rank].status;
        memcpy(w->message, reports[rank].message, sizeof(w->message));
    }
}

// Only process 0 prints.
static inline int setup_workers(void **state)
{
    int rank = 0, size = 0;
    (void)state;
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS ||
        MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS ||
        size != (int)largest_world()) {
        return -1;
    }
    test_rank = (uint32_t)rank;
    for (int world = 1; world <= size; world++) {
        if (MPI_Comm_split(
                MPI_COMM_WORLD, rank < world ? 0 : MPI_UNDEFINED, rank,
                &test_comms[world]) != MPI_SUCCESS) {
            return -1;
        }
    }
    return rank == 0 || freopen("/dev/null", "w", stdout) != NULL ? 0 : -1;
}

static inline int teardown_workers(void **state)
{
    (void)state;
    for (int world = 1; world <= (int)largest_world(); world++) {
        if (test_comms[world] != MPI_COMM_NULL) {
            (void)MPI_Comm_free(&test_comms[world]);
        }
    }
    return MPI_Finalize() == MPI_SUCCESS ? 0 : -1;
}

#endif
