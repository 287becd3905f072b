// SPDX-License-Identifier: MIT
// An MPI program whose threads share one handle, one at a time. The argument
// is the level of thread support that it requests:
//
//     serialized       any thread may use the handle
//     funneled|single  only the thread that initialised MPI may; a call from
//                      another one fails with a message
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <string.h>

#include "host.h"

typedef struct task {
    lac_status (*run)(lac_transport **t);
    lac_transport **t;
    lac_status status;
    char error[512];
} task;

void *__wrap_calloc(size_t count, size_t size)
{
    return __real_calloc(count, size);
}

static lac_status join(lac_transport **t)
{
    return host_join(t, MPI_COMM_WORLD);
}

static lac_status pass_ranks(lac_transport **t)
{
    return host_pass_ranks(*t);
}

static lac_status leave(lac_transport **t)
{
    lac_transport_leave(*t);
    return LAC_OK;
}

// The error message belongs to the thread that failed, so it is copied there.
static void *run_task(void *raw)
{
    task *const job = raw;
    job->status = job->run(job->t);
    (void)snprintf(
        job->error, sizeof(job->error), "%s",
        job->status == LAC_OK ? "" : lac_error_message());
    return NULL;
}

static task run_in_thread(
    lac_status (*run)(lac_transport **t), lac_transport **t)
{
    task job = {.run = run, .t = t};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, run_task, &job) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    return job;
}

// Each call runs in a thread of its own, between calls of the main thread.
static void move_between_threads(void)
{
    lac_transport *t = NULL;
    REQUIRE(run_in_thread(join, &t).status == LAC_OK);
    REQUIRE(pass_ranks(&t) == LAC_OK);
    REQUIRE(run_in_thread(pass_ranks, &t).status == LAC_OK);
    REQUIRE(run_in_thread(pass_ranks, &t).status == LAC_OK);
    REQUIRE(pass_ranks(&t) == LAC_OK);
    REQUIRE(run_in_thread(leave, &t).status == LAC_OK);
}

static void require_refusal(const task *job)
{
    REQUIRE(job->status == LAC_ERR_UNSUPPORTED);
    REQUIRE(strstr(job->error, "MPI_THREAD_SERIALIZED") != NULL);
}

static void refuse_other_threads(void)
{
    lac_transport *t = NULL;
    task job = run_in_thread(join, &t);
    require_refusal(&job);
    REQUIRE(t == NULL);
    REQUIRE(join(&t) == LAC_OK);
    REQUIRE(pass_ranks(&t) == LAC_OK);
    // All workers have received, so none is waiting when the call fails.
    (void)MPI_Barrier(MPI_COMM_WORLD);
    job = run_in_thread(pass_ranks, &t);
    require_refusal(&job);
    REQUIRE(lac_transport_failed(t));
    REQUIRE(pass_ranks(&t) == LAC_ERR_UNSUPPORTED);
    lac_transport_leave(t);
    // Another thread may leave, which then only releases memory.
    REQUIRE(join(&t) == LAC_OK);
    REQUIRE(run_in_thread(leave, &t).status == LAC_OK);
}

int main(int argc, char **argv)
{
    const bool funneled = argc > 1 && strcmp(argv[1], "funneled") == 0;
    const bool single = argc > 1 && strcmp(argv[1], "single") == 0;
    const int level = single     ? MPI_THREAD_SINGLE
                      : funneled ? MPI_THREAD_FUNNELED
                                 : MPI_THREAD_SERIALIZED;
    int provided = 0;
    REQUIRE(MPI_Init_thread(&argc, &argv, level, &provided) == MPI_SUCCESS);
    REQUIRE(provided == level);
    if (provided >= MPI_THREAD_SERIALIZED) {
        move_between_threads();
    } else {
        refuse_other_threads();
    }
    host_report();
    return MPI_Finalize() == MPI_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}
