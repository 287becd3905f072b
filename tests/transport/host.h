// SPDX-License-Identifier: MIT
// Shared parts of the programs that use MPI themselves, as those that the
// library is written for.
#ifndef LACONIC_TESTS_HOST_H
#define LACONIC_TESTS_HOST_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include <laconic/laconic.h>

// The objects of the library are linked with --wrap=calloc.
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

// Prints the failed condition and ends the job.
#define REQUIRE(condition)                                                     \
    do {                                                                       \
        if (!(condition)) {                                                    \
            (void)fprintf(                                                     \
                stderr, "FAILED line %d: %s (%s)\n", __LINE__, #condition,     \
                lac_error_message());                                          \
            (void)MPI_Abort(MPI_COMM_WORLD, 1);                                \
        }                                                                      \
    } while (0)

// host_join joins over `comm`. The spec names no MPI library: the transport
// takes the one that the program has loaded.
static inline lac_status host_join(lac_transport **out, MPI_Comm comm)
{
    char spec[64];
    (void)snprintf(spec, sizeof(spec), "mpi:comm=%d", (int)MPI_Comm_c2f(comm));
    return lac_transport_join(out, spec, NULL, LAC_RANK_ANY, LAC_RANK_ANY);
}

// host_pass_ranks sends the rank to the right neighbour of a ring.
static inline lac_status host_pass_ranks(lac_transport *t)
{
    const uint32_t rank = lac_transport_rank(t);
    const uint32_t world = lac_transport_world(t);
    const uint32_t left = (rank + world - 1) % world;
    const lac_send send = {
        .peer = (rank + 1) % world, .data = &rank, .len = sizeof(rank)};
    uint32_t found = 0;
    lac_receive receive = {
        .peer = left, .buffer = &found, .cap = sizeof(found)};
    const size_t count = world > 1;
    LAC_TRY(lac_transport_exchange(
        t, &send, count, &receive, count, lac_transport_now(t) + 600));
    REQUIRE(count == 0 || found == left);
    return lac_transport_exchange(
        t, NULL, 0, NULL, 0, lac_transport_now(t) + 600);
}

// host_report prints the line that run_duty.py expects of every worker.
static inline void host_report(void)
{
    int rank = 0, size = 1;
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    (void)MPI_Comm_size(MPI_COMM_WORLD, &size);
    (void)printf("worker %d of %d: good\n", rank, size);
    (void)fflush(stdout);
}

#endif
