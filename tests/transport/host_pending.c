// SPDX-License-Identifier: MIT
// An MPI program that goes on after a native sum has timed out. MPI may then
// still write to the memory of that sum: while the program calls MPI, the
// library must neither release that memory nor have lent MPI any of its stack.
//
// The last worker enters the sum first and gives up. Only then do the others
// enter it, so that MPI moves the data when the sum is over for the last one.
#define _GNU_SOURCE // MAP_ANONYMOUS
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "host.h"
#include "transport/transport.h"

enum { FLOATS = 5000, BLOCKS = 3, STACK = 1 << 20, PATTERN = 0xab };

#define SHORT_SECONDS 0.2

// A block that the transport takes over.
typedef struct block {
    laci_deferred_block head; // must be first
    float x[FLOATS];
} block;

typedef struct call {
    lac_transport *t;
    float *x;
    double seconds;
    lac_status status;
} call;

static void *watched[BLOCKS];
static int release_count;

void *__wrap_calloc(size_t count, size_t size)
{
    return __real_calloc(count, size);
}

void __real_laci_free_aligned(void *aligned);
void __wrap_laci_free_aligned(void *aligned);

void __wrap_laci_free_aligned(void *aligned)
{
    for (int i = 0; i < BLOCKS; i++) {
        if (aligned != NULL && aligned == watched[i]) {
            release_count++;
            watched[i] = NULL; // the address may be used again
        }
    }
    __real_laci_free_aligned(aligned);
}

static void *sum(void *raw)
{
    call *const c = raw;
    c->status = laci_transport_allreduce(
        c->t, c->x, FLOATS, lac_transport_now(c->t) + c->seconds);
    return NULL;
}

// Runs the sum on a stack of our own and fills that stack afterwards.
static uint8_t *sum_on_own_stack(call *c)
{
    pthread_attr_t attributes;
    pthread_t thread;
    uint8_t *const stack = mmap(
        NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
        0);
    REQUIRE(stack != MAP_FAILED);
    REQUIRE(pthread_attr_init(&attributes) == 0);
    REQUIRE(pthread_attr_setstack(&attributes, stack, STACK) == 0);
    REQUIRE(pthread_create(&thread, &attributes, sum, c) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    (void)pthread_attr_destroy(&attributes);
    memset(stack, PATTERN, STACK);
    return stack;
}

// Lets MPI move what is pending.
static void progress(void)
{
    for (int i = 0; i < 10; i++) {
        (void)MPI_Barrier(MPI_COMM_WORLD);
    }
}

static block *open_block(lac_transport *t, int i)
{
    block *const b = laci_zalloc_aligned(sizeof(*b));
    REQUIRE(b != NULL);
    watched[i] = b;
    laci_transport_expect_block(t);
    return b;
}

// Sends b->x to the right neighbour of a ring.
static lac_status pass_block(lac_transport *t, block *b)
{
    const uint32_t rank = lac_transport_rank(t);
    const uint32_t world = lac_transport_world(t);
    const lac_send send = {
        .peer = (rank + 1) % world, .data = b->x, .len = sizeof(b->x)};
    lac_receive receive = {.peer = (rank + world - 1) % world};
    laci_transport_lend(t, &b->head);
    return lac_transport_exchange(
        t, &send, 1, &receive, 1, lac_transport_now(t) + 600);
}

// A native sum that has succeeded uses no memory any more, but does not wait
// for what was sent before it.
static void blocks_are_released_when_they_are_not_lent(void)
{
    lac_transport *t = NULL;
    block *blocks[BLOCKS];
    REQUIRE(host_join(&t, MPI_COMM_WORLD) == LAC_OK);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = open_block(t, i);
    }
    call c = {.t = t, .x = blocks[0]->x, .seconds = 600};
    (void)sum(&c);
    REQUIRE(c.status == LAC_OK);
    laci_transport_release(t, &blocks[0]->head);
    REQUIRE(release_count == 1);
    REQUIRE(pass_block(t, blocks[1]) == LAC_OK);
    laci_transport_release(t, &blocks[1]->head);
    c.x = blocks[2]->x;
    (void)sum(&c);
    REQUIRE(c.status == LAC_OK && release_count == 1);
    REQUIRE(pass_block(t, blocks[2]) == LAC_OK && release_count == 2);
    lac_transport_leave(t);
    laci_transport_release(t, &blocks[2]->head);
    REQUIRE(release_count == BLOCKS);
}

static void memory_of_a_failed_sum_is_never_released(bool first)
{
    lac_transport *t = NULL;
    uint8_t *stack = NULL;
    memset(watched, 0, sizeof(watched));
    REQUIRE(host_join(&t, MPI_COMM_WORLD) == LAC_OK);
    block *const b = open_block(t, 0);
    block *const late = open_block(t, 1);
    call c = {.t = t, .x = b->x, .seconds = SHORT_SECONDS};
    release_count = 0;
    if (first) {
        stack = sum_on_own_stack(&c);
        REQUIRE(c.status == LAC_ERR_PEER);
    }
    (void)MPI_Barrier(MPI_COMM_WORLD);
    if (!first) {
        (void)sum(&c);
    }
    progress();
    for (size_t i = 0; stack != NULL && i < STACK; i++) {
        REQUIRE(stack[i] == PATTERN);
    }
    laci_transport_release(t, &b->head);
    if (first) {
        lac_transport_leave(t);
        laci_transport_release(t, &late->head);
        REQUIRE(release_count == 0);
    }
    (void)MPI_Barrier(MPI_COMM_WORLD);
    progress();
}

int main(int argc, char **argv)
{
    int rank = 0, size = 1, provided = 0;
    REQUIRE(
        MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided) ==
        MPI_SUCCESS);
    REQUIRE(provided >= MPI_THREAD_SERIALIZED);
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    (void)MPI_Comm_size(MPI_COMM_WORLD, &size);
    blocks_are_released_when_they_are_not_lent();
    memory_of_a_failed_sum_is_never_released(rank == size - 1);
    host_report();
    // MPI_Finalize may wait for the sum that never ends.
    (void)MPI_Barrier(MPI_COMM_WORLD);
    _exit(EXIT_SUCCESS);
}
