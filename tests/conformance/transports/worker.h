// SPDX-License-Identifier: MIT
// The conformance suite of transports: duties that every worker of a group
// runs, as a thread or as one process of an MPI job. cmocka supports one thread
// only, so REQUIRE records the first failure of a worker.
#ifndef LACONIC_TESTS_WORKER_H
#define LACONIC_TESTS_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <laconic/laconic.h>

enum { WORLD_MAX = 8 };

// No test waits this long unless it hangs.
#define LONG_SECONDS 500.0

// The deadline of exchanges that must fail.
#define SHORT_SECONDS 0.3

typedef struct worker {
    lac_transport *t;
    uint32_t rank;
    uint32_t world;
    pthread_barrier_t *barrier; // of threads; NULL for processes
    float *pending;             // a failed sum may use it until leave
    char failure[1024];         // empty: none
} worker;

typedef struct duty {
    const char *name;
    void (*run)(worker *w);
} duty;

// Duties that leave the group healthy, and those that end it.
extern const duty steady_duties[];
extern const duty fatal_duties[];

// A duty that needs 5 GiB of memory.
extern const duty long_message;

// Returns the number of allocations of the whole process.
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

// A small random generator; every bit depends on all of `seed`.
static inline uint64_t scramble(uint64_t seed)
{
    seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u;
    seed = (seed ^ seed >> 27) * 0x94d049bb133111ebu;
    return seed ^ seed >> 31;
}

void fill(uint8_t *out, size_t len, uint64_t seed);
bool is_filled(const uint8_t *in, size_t len, uint64_t seed);

#endif
