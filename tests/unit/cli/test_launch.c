// SPDX-License-Identifier: MIT
// Workers as threads: each works once, and a failure is reported with the
// message of the worker that failed, without waiting for the timeout.
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "cli/launch/threads.h"
#include "cli/options/command.h"
#include "lac_test.h"

enum { WORLD = 6 };

typedef struct record {
    _Atomic(uint32_t) worked, released;
    uint32_t failing; // the rank that fails, or WORLD for none
    bool last;        // it fails after all others have failed because of it
} record;

static int prepare(void *context, uint32_t world)
{
    (void)context;
    return world == WORLD ? CLI_GOOD : CLI_USAGE;
}

// Worker 0 receives from all others, which receive nothing. The message
// outlives the call: the transport borrows it until the worker has left.
static lac_status work(void *context, lac_transport *t)
{
    static const char hello[] = "hello";
    record *const r = context;
    const uint32_t rank = lac_transport_rank(t);
    const double deadline = lac_transport_now(t) + 60;
    (void)atomic_fetch_add(&r->worked, 1);
    if (rank == r->failing) {
        if (r->last) {
            lac_transport_abort(t, "something happened");
            while (atomic_load(&r->released) < WORLD - 1) {
                (void)sched_yield();
            }
        }
        return lac_fail(LAC_ERR_INVALID, "worker %u stumbled", rank);
    }
    if (rank > 0) {
        const lac_send send = {.peer = 0, .data = hello, .len = sizeof(hello)};
        return lac_transport_exchange(t, &send, 1, NULL, 0, deadline);
    }
    lac_receive receives[WORLD - 1] = {{0}};
    for (uint32_t i = 0; i < WORLD - 1; i++) {
        receives[i].peer = i + 1;
    }
    return lac_transport_exchange(t, NULL, 0, receives, WORLD - 1, deadline);
}

static void release(void *context, uint32_t rank)
{
    record *const r = context;
    (void)rank;
    (void)atomic_fetch_add(&r->released, 1);
}

static const cli_workers workers = {
    .prepare = prepare, .work = work, .release = release};

static void every_worker_works_and_is_released_once(void **state)
{
    (void)state;
    record r = {.failing = WORLD};
    assert_ok(cli_run_threads(&workers, &r, "local", WORLD));
    assert_int_equal(r.worked, WORLD);
    assert_int_equal(r.released, WORLD);
}

static void the_message_is_that_of_the_worker_that_failed(void **state)
{
    (void)state;
    for (uint32_t failing = 0; failing < WORLD; failing++) {
        char expected[64];
        record r = {.failing = failing};
        (void)snprintf(
            expected, sizeof(expected), "worker %u stumbled", failing);
        assert_int_equal(
            cli_run_threads(&workers, &r, "local", WORLD), LAC_ERR_INVALID);
        assert_string_equal(lac_error_message(), expected);
        assert_int_equal(r.released, WORLD);
    }
}

static void a_worker_that_only_waited_is_not_reported(void **state)
{
    (void)state;
    record r = {.failing = WORLD - 1, .last = true};
    assert_int_equal(
        cli_run_threads(&workers, &r, "local", WORLD), LAC_ERR_INVALID);
    assert_string_equal(lac_error_message(), "worker 5 stumbled");
}

static void a_transport_that_does_not_exist_fails(void **state)
{
    (void)state;
    record r = {.failing = WORLD};
    assert_int_equal(
        cli_run_threads(&workers, &r, "smoke", WORLD), LAC_ERR_NOTFOUND);
    assert_int_equal(r.worked, 0);
    assert_int_equal(r.released, 0);
}

static void workers_that_are_not_prepared_do_not_start(void **state)
{
    (void)state;
    record r = {.failing = WORLD};
    const cli_launch_options options = {
        .workers = WORLD + 1, .transport = "local", .timeout = 60};
    assert_int_equal(cli_launch("try", &options, &workers, &r), CLI_USAGE);
    assert_int_equal(r.worked, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_worker_works_and_is_released_once),
        cmocka_unit_test(the_message_is_that_of_the_worker_that_failed),
        cmocka_unit_test(a_worker_that_only_waited_is_not_reported),
        cmocka_unit_test(a_transport_that_does_not_exist_fails),
        cmocka_unit_test(workers_that_are_not_prepared_do_not_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
