// SPDX-License-Identifier: MIT
// A program that uses MPI itself, as those the library is made for: it starts
// MPI, joins twice over communicators of its own, and ends MPI. With "bench"
// it compares a sum of 1 KiB with MPI's own, by turns in one run.
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <laconic/laconic.h>

#include "transport/transport.h"

enum { FLOATS = 256, BATCHES = 41, CALLS = 500 };

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    return __real_calloc(count, size);
}

#define REQUIRE(condition)                                                     \
    do {                                                                       \
        if (!(condition)) {                                                    \
            (void)fprintf(                                                     \
                stderr, "FAILED line %d: %s (%s)\n", __LINE__, #condition,     \
                lac_error_message());                                          \
            (void)MPI_Abort(MPI_COMM_WORLD, 1);                                \
        }                                                                      \
    } while (0)

// Joins over `comm` without saying which MPI: it is the one already there.
static lac_transport *join(MPI_Comm comm)
{
    char spec[64];
    lac_transport *t = NULL;
    (void)snprintf(spec, sizeof(spec), "mpi:comm=%d", (int)MPI_Comm_c2f(comm));
    REQUIRE(
        lac_transport_join(&t, spec, NULL, LAC_RANK_ANY, LAC_RANK_ANY) ==
        LAC_OK);
    return t;
}

static void pass_ranks(lac_transport *t)
{
    const uint32_t rank = lac_transport_rank(t);
    const uint32_t world = lac_transport_world(t);
    const lac_send send = {(rank + 1) % world, 0, &rank, sizeof(rank)};
    uint32_t left = 0;
    lac_receive wish = {
        .peer = (rank + world - 1) % world,
        .buffer = &left,
        .cap = sizeof(left)};
    const size_t count = world > 1;
    REQUIRE(
        lac_transport_exchange(
            t, &send, count, &wish, count, lac_transport_now(t) + 60) ==
        LAC_OK);
    REQUIRE(count == 0 || left == wish.peer);
    REQUIRE(
        lac_transport_exchange(
            t, NULL, 0, NULL, 0, lac_transport_now(t) + 60) == LAC_OK);
}

// Two communicators at once, with ranks in the opposite order; then again.
static void be_a_guest(int rank, int size)
{
    for (int i = 0; i < 2; i++) {
        MPI_Comm half, all;
        int finalised = 1;
        (void)MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
        (void)MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &all);
        lac_transport *const t = join(half);
        lac_transport *const u = join(all);
        REQUIRE(lac_transport_rank(u) == (uint32_t)(size - 1 - rank));
        REQUIRE(lac_transport_world(u) == (uint32_t)size);
        pass_ranks(t);
        pass_ranks(u);
        pass_ranks(t);
        lac_transport_leave(t);
        lac_transport_leave(u);
        REQUIRE(MPI_Finalized(&finalised) == MPI_SUCCESS && finalised == 0);
        (void)MPI_Comm_free(&half);
        (void)MPI_Comm_free(&all);
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x)
{
    qsort(x, BATCHES, sizeof(*x), compare);
    return x[BATCHES / 2];
}

typedef struct contestant {
    const char *name;
    void (*call)(struct contestant *c);
    lac_transport *transport;
    lac_algorithm *algorithm;
    uint64_t round;
    float x[FLOATS];
    double batches[BATCHES]; // microseconds
} contestant;

static void call_mpi(contestant *c)
{
    (void)MPI_Allreduce(
        MPI_IN_PLACE, c->x, FLOATS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void call_transport(contestant *c)
{
    REQUIRE(
        laci_transport_allreduce(
            c->transport, c->x, FLOATS, lac_transport_now(c->transport) + 60) ==
        LAC_OK);
}

static void call_algorithm(contestant *c)
{
    const lac_slice slice = {0, LAC_F32, c->x, c->x};
    REQUIRE(
        lac_algorithm_reduce(c->algorithm, c->round++, &slice, 1) == LAC_OK);
}

static void bench(int rank)
{
    static const lac_tensor tensor = {.name = "x", .shape = {FLOATS, 1}};
    static contestant all[] = {
        {.name = "MPI_Allreduce", .call = call_mpi},
        {.name = "the transport", .call = call_transport},
        {.name = "lac_algorithm_reduce", .call = call_algorithm},
    };
    enum { COUNT = sizeof(all) / sizeof(*all) };
    lac_transport *const t = join(MPI_COMM_WORLD);
    lac_algorithm_options o = lac_algorithm_options_default();
    lac_layout *layout = NULL;
    REQUIRE(lac_layout_open(&layout, &tensor, 1) == LAC_OK);
    o.layout = layout;
    o.transport = t;
    all[1].transport = t;
    REQUIRE(lac_algorithm_open(&all[2].algorithm, &o) == LAC_OK);
    for (int i = 0; i < BATCHES * COUNT; i++) {
        contestant *const c = &all[i % COUNT];
        (void)MPI_Barrier(MPI_COMM_WORLD);
        const double begun = MPI_Wtime();
        for (int k = 0; k < CALLS; k++) {
            c->call(c);
        }
        c->batches[i / COUNT] = (MPI_Wtime() - begun) / CALLS * 1e6;
    }
    lac_transport_leave(t);
    lac_algorithm_close(all[2].algorithm);
    lac_layout_close(layout);
    for (int i = 0; rank == 0 && i < COUNT; i++) {
        const double time = median(all[i].batches);
        (void)printf(
            "1 KiB by %s: %.2f us, %.2f x MPI's\n", all[i].name, time,
            time / median(all[0].batches));
    }
}

int main(int argc, char **argv)
{
    int rank = 0, size = 1;
    (void)MPI_Init(&argc, &argv);
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    (void)MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && strcmp(argv[1], "bench") == 0) {
        bench(rank);
    } else {
        be_a_guest(rank, size);
        (void)printf("worker %d of %d: good\n", rank, size);
        (void)fflush(stdout);
    }
    return MPI_Finalize() == MPI_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}
