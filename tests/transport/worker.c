// SPDX-License-Identifier: MIT
// A worker on a ring that exchanges messages until an exchange fails, for tests
// that stop or kill one. The number is the timeout of an exchange in seconds:
//
//     transport_worker mpi:library=openmpi 2.5
//     transport_worker local 2.5               four threads, one falls silent
//
// Prints its process after some rounds and the error, to stderr, at the end.
// Exits with 3 when an exchange failed, as it should.
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <laconic/laconic.h>

// The first rounds must succeed, however busy the machine is.
#define WARM_UP_SECONDS 500.0

enum { WORKERS = 4, WARM_UP = 100, LEN = 10000, FAILED = 3 };

typedef struct job {
    const char *spec;
    double timeout;
    lac_hub *hub;
    uint32_t rank;
    uint32_t world;
    pthread_barrier_t *end; // where a thread that falls silent waits
    int result;
} job;

static int run_ring(const job *j, lac_transport *t)
{
    static const char bytes[LEN];
    const uint32_t rank = lac_transport_rank(t);
    const uint32_t world = lac_transport_world(t);
    const uint32_t right = (rank + 1) % world;
    const uint32_t left = (rank + world - 1) % world;
    const lac_send sends[] = {
        {.peer = right, .tag = 1, .data = bytes, .len = LEN},
        {.peer = left, .tag = 2, .data = bytes, .len = LEN}};
    for (int round = 0;; round++) {
        lac_receive receives[] = {
            {.peer = left, .tag = 1}, {.peer = right, .tag = 2}};
        if (round == WARM_UP) {
            (void)printf("worker %u is process %ld\n", rank, (long)getpid());
            (void)fflush(stdout);
            if (j->end != NULL && rank == 2) {
                (void)pthread_barrier_wait(j->end);
                return FAILED;
            }
        }
        const double seconds = round < WARM_UP ? WARM_UP_SECONDS : j->timeout;
        if (lac_transport_exchange(
                t, sends, 2, receives, 2, lac_transport_now(t) + seconds) !=
            LAC_OK) {
            (void)fprintf(
                stderr, "worker %u: error: %s\n", rank, lac_error_message());
            return FAILED;
        }
    }
}

static void *run_worker(void *raw)
{
    job *const j = raw;
    lac_transport *t = NULL;
    if (lac_transport_join(&t, j->spec, j->hub, j->rank, j->world) != LAC_OK) {
        (void)fprintf(stderr, "cannot join: %s\n", lac_error_message());
        j->result = EXIT_FAILURE;
        return NULL;
    }
    j->result = run_ring(j, t);
    if (j->end != NULL && j->rank != 2) {
        (void)pthread_barrier_wait(j->end);
    }
    lac_transport_leave(t);
    return NULL;
}

static int run_threads(double timeout)
{
    pthread_t threads[WORKERS];
    job jobs[WORKERS];
    lac_hub *hub = NULL;
    pthread_barrier_t end;
    int result = FAILED;
    if (lac_hub_open(&hub, WORKERS) != LAC_OK ||
        pthread_barrier_init(&end, NULL, WORKERS) != 0) {
        return EXIT_FAILURE;
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        jobs[i] = (job){"local", timeout, hub, i, WORKERS, &end, 0};
        if (pthread_create(&threads[i], NULL, run_worker, &jobs[i]) != 0) {
            return EXIT_FAILURE;
        }
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        (void)pthread_join(threads[i], NULL);
        result = jobs[i].result == FAILED ? result : EXIT_FAILURE;
    }
    lac_hub_close(hub);
    return result;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        return 2;
    }
    const double timeout = strtod(argv[2], NULL);
    if (strcmp(argv[1], "local") == 0) {
        return run_threads(timeout);
    }
    job j = {argv[1], timeout, NULL, LAC_RANK_ANY, LAC_RANK_ANY, NULL, 0};
    (void)run_worker(&j);
    (void)printf("the status is %d\n", j.result);
    (void)fflush(stdout);
    return j.result;
}
