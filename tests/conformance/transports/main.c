// SPDX-License-Identifier: MIT
// Runs the duties of transports:
//
//     test_conformance_transports              threads, worlds of 1 to 8
//     test_conformance_transports tcp SETTINGS the same over tcp; SETTINGS is
//                                              empty or begins with a comma
//     test_conformance_transports tcp SETTINGS long
//                                              a message of 5 GiB
//     test_conformance_transports user         the same over a user-defined one
//     test_conformance_transports SPEC         this process is a worker: the
//                                              duties that end well
//     test_conformance_transports SPEC DUTY    one duty that ends the group
// Under smpirun the ranks are in one process: no static variable is a worker's.
#define _GNU_SOURCE // _SC_AVPHYS_PAGES
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tcp_group.h"
#include "user_group.h"
#include "worker.h"

static _Atomic size_t allocation_count;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    allocation_count++;
    return __real_calloc(count, size);
}

size_t allocations(void)
{
    return allocation_count;
}

// The transport of a run in threads.
typedef enum carrier { LOCAL, TCP, USER } carrier;

typedef struct job {
    worker w;
    carrier over;
    lac_hub *hub;
    const tcp_group *tcp;
    user_group *user;
    const duty *duty;
} job;

static lac_status join_thread(job *j)
{
    worker *const w = &j->w;
    switch (j->over) {
    case TCP:
        return tcp_group_join(j->tcp, w->rank, &w->t);
    case USER:
        return user_group_join(j->user, w->rank, &w->t);
    case LOCAL:
        break;
    }
    return lac_transport_join(&w->t, "local", j->hub, w->rank, w->world);
}

static void *run_thread(void *raw)
{
    job *const j = raw;
    worker *const w = &j->w;
    if (join_thread(j) != LAC_OK) {
        (void)snprintf(
            w->failure, sizeof(w->failure), "join: %s", lac_error_message());
        return NULL;
    }
    j->duty->run(w);
    if (w->failure[0] != '\0') {
        lac_transport_abort(w->t, "the test failed");
    }
    lac_transport_leave(w->t);
    free(w->pending);
    return NULL;
}

static int report(const duty *d, const worker *w)
{
    const bool good = w->failure[0] == '\0';
    if (!good) {
        (void)fprintf(
            stderr, "FAILED %s, worker %u of %u: %s\n", d->name, w->rank,
            w->world, w->failure);
    }
    return good ? 0 : 1;
}

// `settings` are those of tcp.
static int run_threads(
    const duty *d, uint32_t world, carrier over, const char *settings)
{
    static user_group user;
    static job jobs[WORLD_MAX];
    pthread_t threads[WORLD_MAX];
    pthread_barrier_t barrier;
    lac_hub *hub = NULL;
    tcp_group group;
    int failures = 0;
    if (lac_hub_open(&hub, world) != LAC_OK ||
        (over == TCP && tcp_group_open(&group, world, settings) != LAC_OK)) {
        (void)fprintf(stderr, "FAILED: %s\n", lac_error_message());
        return 1;
    }
    user_group_open(&user, world, false);
    (void)pthread_barrier_init(&barrier, NULL, world);
    for (uint32_t i = 0; i < world; i++) {
        jobs[i] = (job){
            .w = {.rank = i, .world = world, .barrier = &barrier},
            .over = over,
            .hub = hub,
            .tcp = &group,
            .user = &user,
            .duty = d,
        };
        if (pthread_create(&threads[i], NULL, run_thread, &jobs[i]) != 0) {
            abort();
        }
    }
    for (uint32_t i = 0; i < world; i++) {
        (void)pthread_join(threads[i], NULL);
        failures += report(d, &jobs[i].w);
    }
    lac_hub_close(hub);
    user_group_close(&user);
    (void)pthread_barrier_destroy(&barrier);
    return failures;
}

static int run_all(carrier over, const char *settings)
{
    static const uint32_t worlds[] = {1, 2, 3, 5, 8};
    int failures = 0;
    for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
        for (const duty *d = steady_duties; d->name != NULL; d++) {
            failures += run_threads(d, worlds[i], over, settings);
        }
        for (const duty *d = fatal_duties; d->name != NULL; d++) {
            failures += run_threads(d, worlds[i], over, settings);
        }
    }
    return failures;
}

// Prints one line for run_duty.py if all duties succeed.
static int run_process(const char *spec, const char *name)
{
    worker w = {0};
    int failures = 0;
    if (lac_transport_join(&w.t, spec, NULL, LAC_RANK_ANY, LAC_RANK_ANY) !=
        LAC_OK) {
        (void)fprintf(stderr, "FAILED to join: %s\n", lac_error_message());
        return 1;
    }
    w.rank = lac_transport_rank(w.t);
    w.world = lac_transport_world(w.t);
    const duty *d = name == NULL ? steady_duties : fatal_duties;
    for (; d->name != NULL && failures == 0; d++) {
        if (name == NULL || strcmp(name, d->name) == 0) {
            d->run(&w);
            failures += report(d, &w);
        }
    }
    if (failures == 0) {
        (void)printf("worker %u of %u: good\n", w.rank, w.world);
        (void)fflush(stdout);
    }
    lac_transport_leave(w.t);
    return failures;
}

int main(int argc, char **argv)
{
    int failures = 0;
    if (argc < 2) {
        failures = run_all(LOCAL, NULL);
    } else if (argc == 2 && strcmp(argv[1], "user") == 0) {
        failures = run_all(USER, NULL);
    } else if (argc == 3 && strcmp(argv[1], "tcp") == 0) {
        failures = run_all(TCP, argv[2]);
    } else if (argc == 4 && strcmp(argv[3], "long") == 0) {
        const double pages = (double)sysconf(_SC_AVPHYS_PAGES);
        if (pages * (double)sysconf(_SC_PAGESIZE) < 6e9) {
            (void)printf("skipped: less than 6 GB of memory are free\n");
            return 77;
        }
        failures = run_threads(&long_message, 2, TCP, argv[2]);
    } else {
        failures = run_process(argv[1], argc < 3 ? NULL : argv[2]);
    }
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
