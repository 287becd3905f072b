// SPDX-License-Identifier: MIT
// Workers compute one at a time, exchange messages nevertheless, and all end if
// one of them fails.
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "cli/bench/turns.h"
#include "cli/launch/threads.h"
#include "lac_test.h"

enum { WORLD = 5, ROUNDS = 20, COMPUTATION = 50 };

typedef struct record {
    pthread_mutex_t lock;
    atomic_int computing;
    atomic_int most; // workers that computed at the same time
    cli_turn turns[WORLD];
    uint32_t messages[WORLD][ROUNDS];
    uint32_t failing; // or WORLD for none
} record;

// Gives the other workers many occasions to compute too.
static void compute(record *r)
{
    for (int i = 0; i < COMPUTATION; i++) {
        const int now = atomic_fetch_add(&r->computing, 1) + 1;
        if (now > atomic_load(&r->most)) {
            atomic_store(&r->most, now);
        }
        (void)sched_yield();
        (void)atomic_fetch_sub(&r->computing, 1);
    }
}

// Every worker sends its rank and the round to the next one.
static lac_status swap(record *r, lac_transport *t, uint32_t round)
{
    const uint32_t rank = lac_transport_rank(t);
    const uint32_t before = (rank + WORLD - 1) % WORLD;
    uint32_t *const message = &r->messages[rank][round];
    *message = rank * ROUNDS + round;
    const lac_send send = {
        .peer = (rank + 1) % WORLD, .data = message, .len = sizeof(*message)};
    lac_receive receive = {.peer = before};
    uint32_t found;
    LAC_TRY(lac_transport_exchange(
        t, &send, 1, &receive, 1, lac_transport_now(t) + 60));
    assert_int_equal(receive.len, sizeof(found));
    memcpy(&found, receive.data, sizeof(found));
    assert_int_equal(found, before * ROUNDS + round);
    return LAC_OK;
}

static lac_status rounds(record *r, lac_transport *t)
{
    for (uint32_t round = 0; round < ROUNDS; round++) {
        compute(r);
        if (lac_transport_rank(t) == r->failing && round == ROUNDS / 2) {
            return lac_fail(LAC_ERR_INVALID, "worker %u stumbled", r->failing);
        }
        LAC_TRY(swap(r, t, round));
    }
    return LAC_OK;
}

static lac_status work(void *context, lac_transport *t)
{
    record *const r = context;
    cli_turn *const turn = &r->turns[lac_transport_rank(t)];
    LAC_TRY(cli_turn_join(turn, &r->lock, t));
    const lac_status status = rounds(r, turn->outer);
    cli_turn_end(turn);
    return status;
}

static void release(void *context, uint32_t rank)
{
    record *const r = context;
    cli_turn_leave(&r->turns[rank]);
}

static const cli_workers workers = {.work = work, .release = release};

static void one_worker_computes_at_a_time(void **state)
{
    (void)state;
    static record r = {.lock = PTHREAD_MUTEX_INITIALIZER, .failing = WORLD};
    assert_ok(cli_run_threads(&workers, &r, "local", WORLD));
    assert_int_equal(r.most, 1);
}

static void a_failure_ends_all_workers(void **state)
{
    (void)state;
    static record r = {.lock = PTHREAD_MUTEX_INITIALIZER, .failing = 3};
    assert_int_equal(
        cli_run_threads(&workers, &r, "local", WORLD), LAC_ERR_INVALID);
    assert_string_equal(lac_error_message(), "worker 3 stumbled");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_worker_computes_at_a_time),
        cmocka_unit_test(a_failure_ends_all_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
