// SPDX-License-Identifier: MIT
// An MPI program that joins twice over communicators of its own. With "bench"
// it compares a sum of 1 KiB of two workers with MPI's own, taking turns.
#include <stdlib.h>
#include <string.h>

#include "host.h"

enum { FLOATS = 256, BATCHES = 41, CALLS = 500 };

void *__wrap_calloc(size_t count, size_t size)
{
    return __real_calloc(count, size);
}

static lac_transport *join(MPI_Comm comm)
{
    lac_transport *t = NULL;
    REQUIRE(host_join(&t, comm) == LAC_OK);
    return t;
}

// Uses two communicators at once, with ranks in the opposite order, twice.
static void use_own_communicators(int rank, int size)
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
        REQUIRE(host_pass_ranks(t) == LAC_OK);
        REQUIRE(host_pass_ranks(u) == LAC_OK);
        REQUIRE(host_pass_ranks(t) == LAC_OK);
        lac_transport_leave(t);
        lac_transport_leave(u);
        REQUIRE(MPI_Finalized(&finalised) == MPI_SUCCESS && finalised == 0);
        (void)MPI_Comm_free(&half);
        (void)MPI_Comm_free(&all);
    }
}

static void refuse_a_message_above_64_gib(int rank, int size)
{
    lac_transport *const t = join(MPI_COMM_WORLD);
    const lac_send send = {
        .peer = (uint32_t)((rank + 1) % size),
        .data = "",
        .len = ((size_t)64 << 30) + 1};
    REQUIRE(
        lac_transport_exchange(
            t, &send, 1, NULL, 0, lac_transport_now(t) + 600) ==
        LAC_ERR_INVALID);
    REQUIRE(strstr(lac_error_message(), "at most 64 GiB fit") != NULL);
    lac_transport_leave(t);
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
    float out[2][FLOATS]; // sent by turns: a peer may still read the last one
    double batches[BATCHES]; // microseconds
} contestant;

static void call_mpi(contestant *c)
{
    (void)MPI_Allreduce(
        MPI_IN_PLACE, c->x, FLOATS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

// Swaps the vectors and adds, as the first step of recursive doubling.
static void call_transport(contestant *c)
{
    lac_transport *const t = c->transport;
    float *const out = c->out[c->round++ % 2];
    const uint32_t peer = lac_transport_rank(t) ^ 1;
    const lac_send send = {.peer = peer, .data = out, .len = sizeof(c->x)};
    lac_receive receive = {.peer = peer};
    memcpy(out, c->x, sizeof(c->x));
    REQUIRE(
        lac_transport_exchange(
            t, &send, 1, &receive, 1, lac_transport_now(t) + 60) == LAC_OK);
    const float *const in = receive.data;
    for (int i = 0; i < FLOATS; i++) {
        c->x[i] += in[i];
    }
}

static void call_algorithm(contestant *c)
{
    const lac_slice slice = {.dtype = LAC_F32, .in = c->x, .out = c->x};
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

// A program may finalise MPI before it leaves: a later call fails, and so does
// joining again. No function of MPI is called, which would end the job.
static bool leave_late(void)
{
    lac_transport *const t = join(MPI_COMM_WORLD);
    REQUIRE(host_pass_ranks(t) == LAC_OK);
    const bool finalised = MPI_Finalize() == MPI_SUCCESS;
    const lac_status status =
        lac_transport_exchange(t, NULL, 0, NULL, 0, lac_transport_now(t));
    const bool refused =
        status == LAC_ERR_UNSUPPORTED &&
        strstr(lac_error_message(), "was called after MPI_Finalize") != NULL;
    lac_transport_leave(t);
    lac_transport *again = NULL;
    return finalised && refused &&
           lac_transport_join(&again, "mpi", NULL, 0, LAC_RANK_ANY) ==
               LAC_ERR_UNSUPPORTED &&
           strstr(lac_error_message(), "it cannot start again") != NULL;
}

int main(int argc, char **argv)
{
    int rank = 0, size = 1;
    (void)MPI_Init(&argc, &argv);
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    (void)MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && strcmp(argv[1], "bench") == 0) {
        REQUIRE(size == 2);
        bench(rank);
        return MPI_Finalize() == MPI_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    use_own_communicators(rank, size);
    refuse_a_message_above_64_gib(rank, size);
    host_report();
    return leave_late() ? EXIT_SUCCESS : EXIT_FAILURE;
}
