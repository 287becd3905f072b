// SPDX-License-Identifier: MIT
// The conformance suite of transports: duties that every worker of a group
// carries out, over threads or as one process of an MPI job. They cannot use
// cmocka, which knows one thread; REQUIRE notes the first failure of a worker.
#ifndef LACONIC_TESTS_WORKER_H
#define LACONIC_TESTS_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <laconic/laconic.h>

enum { WORLD_MAX = 8 };

// No test waits this long unless it fails.
#define LONG_SECONDS 60.0

typedef struct worker {
    lac_transport *t;
    uint32_t rank;
    uint32_t world;
    pthread_barrier_t *barrier; // of threads; NULL between processes
    char failure[1024];         // empty: all is well
} worker;

typedef struct duty {
    const char *name;
    void (*run)(worker *w);
} duty;

// Duties that leave the group healthy, and those that end it.
extern const duty steady_duties[];
extern const duty fatal_duties[];

// Counts the requests for memory of the whole process.
size_t allocations(void);

#define REQUIRE(w, condition)                                                  \
    do {                                                                       \
        if (!(condition)) {                                                    \
            (void)snprintf(                                                    \
                (w)->failure, sizeof((w)->failure),                            \
                "%s:%d: %s (last error: %s)", __FILE__, __LINE__, #condition,  \
                lac_error_message());                                          \
            return;                                                            \
        }                                                                      \
    } while (0)

static inline double soon(const worker *w, double seconds)
{
    return lac_transport_now(w->t) + seconds;
}

// A small generator for contents; every byte depends on all of `seed`.
static inline uint64_t scramble(uint64_t seed)
{
    seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u;
    seed = (seed ^ seed >> 27) * 0x94d049bb133111ebu;
    return seed ^ seed >> 31;
}

void fill(uint8_t *out, size_t len, uint64_t seed);
bool is_filled(const uint8_t *in, size_t len, uint64_t seed);

#endif
