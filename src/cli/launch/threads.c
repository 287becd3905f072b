// SPDX-License-Identifier: MIT
// Workers as threads of this process. Threads wait at a gate until all of them
// exist: if one cannot be created, no worker starts.
#include "cli/launch/threads.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "cli/options/command.h"

// A worker needs a few pages; a thousand workers should not need gigabytes.
enum { STACK_SIZE = 512 * 1024, MESSAGE_SIZE = 512 };

// From Linux 6.16; older headers do not have them.
#ifndef PR_FUTEX_HASH
#define PR_FUTEX_HASH           78
#define PR_FUTEX_HASH_SET_SLOTS 1
#endif

// The most buckets that a request names: 2^16 of 64 bytes.
enum { BUCKETS_MAX = 1 << 16 };

typedef enum gate { CLOSED, OPEN, CANCELLED } gate;

typedef struct thread_run {
    const cli_workers *workers;
    void *context;
    const char *spec;
    lac_hub *hub;
    uint32_t world;
    pthread_mutex_t lock; // protects all members below
    pthread_cond_t moved;
    gate gate;
    lac_status status; // of the worker that failed first
    char message[MESSAGE_SIZE];
} thread_run;

// One thread, which runs one worker.
typedef struct worker_thread {
    thread_run *run;
    uint32_t rank;
    pthread_t thread;
} worker_thread;

static bool wait_at_gate(thread_run *run)
{
    (void)pthread_mutex_lock(&run->lock);
    while (run->gate == CLOSED) {
        (void)pthread_cond_wait(&run->moved, &run->lock);
    }
    const bool open = run->gate == OPEN;
    (void)pthread_mutex_unlock(&run->lock);
    return open;
}

static void move_gate(thread_run *run, gate to)
{
    (void)pthread_mutex_lock(&run->lock);
    run->gate = to;
    (void)pthread_cond_broadcast(&run->moved);
    (void)pthread_mutex_unlock(&run->lock);
}

// A worker that failed on its own replaces one that failed waiting for it.
static void record_failure(thread_run *run, lac_status status)
{
    (void)pthread_mutex_lock(&run->lock);
    if (run->status == LAC_OK ||
        (run->status == LAC_ERR_PEER && status != LAC_ERR_PEER)) {
        run->status = status;
        (void)snprintf(
            run->message, sizeof(run->message), "%s", lac_error_message());
    }
    (void)pthread_mutex_unlock(&run->lock);
}

static void *run_worker_thread(void *argument)
{
    const worker_thread *const w = argument;
    thread_run *const run = w->run;
    lac_transport *t = NULL;
    if (!wait_at_gate(run)) {
        return NULL;
    }
    lac_status status =
        lac_transport_join(&t, run->spec, run->hub, w->rank, run->world);
    if (status != LAC_OK) {
        record_failure(run, status);
        return NULL;
    }
    status = run->workers->work(run->context, t);
    if (status != LAC_OK) {
        record_failure(run, status);
        lac_transport_abort(t, lac_error_message());
    }
    lac_transport_leave(t);
    run->workers->release(run->context, w->rank);
    return NULL;
}

// Linux keeps the sleeping threads of a process in a hash table whose default
// size depends on the number of processors: sixteen buckets on two cores.
// Waking one of 10,000 threads then takes a walk over hundreds of others. A
// kernel that does not know the request has one large table for all processes.
static void request_buckets(uint32_t world)
{
    unsigned long buckets = 1;
    while (buckets < world && buckets < BUCKETS_MAX) {
        buckets *= 2;
    }
    if (buckets > 64) {
        (void)prctl(PR_FUTEX_HASH, PR_FUTEX_HASH_SET_SLOTS, buckets, 0UL, 0UL);
    }
}

// Starts the threads and returns how many exist.
static uint32_t start_threads(thread_run *run, worker_thread *threads)
{
    pthread_attr_t attributes;
    uint32_t count = 0;
    int problem = pthread_attr_init(&attributes);
    if (problem == 0) {
        const size_t stack = run->workers->stack_size;
        problem = pthread_attr_setstacksize(
            &attributes, stack == 0 ? STACK_SIZE : stack);
        while (problem == 0 && count < run->world) {
            threads[count] = (worker_thread){.run = run, .rank = count};
            problem = pthread_create(
                &threads[count].thread, &attributes, run_worker_thread,
                &threads[count]);
            count += problem == 0;
        }
        (void)pthread_attr_destroy(&attributes);
    }
    if (problem != 0) {
        (void)snprintf(
            run->message, sizeof(run->message),
            "cannot create a thread for worker %u of %u: %s", count, run->world,
            strerror(problem));
        run->status = LAC_ERR_NOMEM;
    }
    return count;
}

static void run_worker_threads(thread_run *run, worker_thread *threads)
{
    request_buckets(run->world);
    const uint32_t count = start_threads(run, threads);
    move_gate(run, count == run->world ? OPEN : CANCELLED);
    for (uint32_t i = 0; i < count; i++) {
        (void)pthread_join(threads[i].thread, NULL);
    }
}

lac_status cli_run_threads(
    const cli_workers *workers, void *context, const char *spec, uint32_t world)
{
    thread_run run = {
        .workers = workers,
        .context = context,
        .spec = spec,
        .world = world,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .moved = PTHREAD_COND_INITIALIZER,
    };
    lac_status status = lac_hub_open(&run.hub, world);
    if (status != LAC_OK) {
        return status;
    }
    worker_thread *const threads = calloc(world, sizeof(*threads));
    if (threads == NULL) {
        status = lac_fail(LAC_ERR_NOMEM, "no memory for %u workers", world);
    } else {
        run_worker_threads(&run, threads);
    }
    if (run.status != LAC_OK) {
        status = lac_fail(run.status, "%s", run.message);
    }
    free(threads);
    lac_hub_close(run.hub);
    return status;
}
