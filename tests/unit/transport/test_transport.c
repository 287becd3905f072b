// SPDX-License-Identifier: MIT
// Transports by name, arguments that join rejects, when memory that was lent is
// released, and lack of memory.
#include "lac_test.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "transport/transport.h"

enum { BLOCKS = 3 };

static laci_deferred_block *watched[BLOCKS];
static int release_count;

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

static void transports_can_be_listed(void **state)
{
    (void)state;
    size_t count = 0;
    const lac_plugin *const *const plugins = lac_transports(&count);
    assert_int_equal(count, 3);
    assert_string_equal(plugins[0]->name, "local");
    assert_string_equal(plugins[1]->name, "mpi");
    assert_string_equal(plugins[1]->params[0].name, "library");
    assert_string_equal(plugins[2]->name, "tcp");
}

static void unknown_names_and_settings_are_rejected(void **state)
{
    (void)state;
    lac_transport *t = (void *)&t;
    assert_fails(
        lac_transport_join(&t, "pigeon", NULL, 0, 1), LAC_ERR_NOTFOUND,
        "no transport is named \"pigeon\"; `laconic list` shows those there "
        "are");
    assert_null(t);
    assert_status(
        lac_transport_join(&t, "mpi:library=lam", NULL, 0, 1), LAC_ERR_INVALID);
    assert_status(
        lac_transport_join(&t, "mpi:timeout=0", NULL, 0, 1), LAC_ERR_INVALID);
    assert_status(
        lac_transport_join(&t, "mpi:comm=here", NULL, 0, 1), LAC_ERR_INVALID);
}

static void the_library_of_a_transport_has_a_name(void **state)
{
    (void)state;
    char text[LAC_LIBRARY_SIZE] = "as before";
    assert_fails(
        lac_transport_library("pigeon", text, sizeof(text)), LAC_ERR_NOTFOUND,
        "no transport is named \"pigeon\"; `laconic list` shows those there "
        "are");
    assert_status(
        lac_transport_library("mpi:library=lam", text, sizeof(text)),
        LAC_ERR_INVALID);
    assert_fails(
        lac_transport_library("local", text, 0), LAC_ERR_SPACE,
        "local: the name of its library has 1 bytes, but there is room for 0");
    assert_string_equal(text, "as before");
    assert_ok(lac_transport_library("local", text, sizeof(text)));
    assert_string_equal(text, "");
}

static void join_checks_its_place(void **state)
{
    (void)state;
    lac_hub *hub;
    lac_transport *t, *u;
    assert_fails(
        lac_hub_open(&hub, 0), LAC_ERR_INVALID,
        "local: a hub of 0 workers, expected 1 or more");
    assert_ok(lac_hub_open(&hub, 2));
    assert_fails(
        lac_transport_join(&t, "local", NULL, 0, 2), LAC_ERR_INVALID,
        "local: no hub, expected one");
    assert_fails(
        lac_transport_join(&t, "local", hub, 0, 3), LAC_ERR_INVALID,
        "local: a world of 3, expected the hub's 2");
    assert_fails(
        lac_transport_join(&t, "local", hub, 2, 2), LAC_ERR_INVALID,
        "local: rank 2, expected one below 2");
    assert_ok(lac_transport_join(&t, "local", hub, 1, LAC_RANK_ANY));
    assert_int_equal(lac_transport_rank(t), 1);
    assert_int_equal(lac_transport_world(t), 2);
    assert_fails(
        lac_transport_join(&u, "local", hub, 1, 2), LAC_ERR_INVALID,
        "local: worker 1 has joined this hub already");
    assert_null(u);
    lac_transport_leave(t);
    lac_hub_close(hub);
}

static void a_worker_alone_needs_nobody(void **state)
{
    (void)state;
    lac_hub *hub;
    lac_transport *t;
    assert_ok(lac_hub_open(&hub, 1));
    assert_ok(lac_transport_join(&t, "local", hub, 0, 1));
    assert_ok(lac_transport_exchange(t, NULL, 0, NULL, 0, 0));
    assert_false(lac_transport_failed(t));
    lac_transport_kill_job(t, 1); // threads have no job to kill
    lac_transport_leave(t);
    lac_hub_close(hub);
}

static void bad_arguments_fail_every_later_call(void **state)
{
    (void)state;
    lac_hub *hub;
    lac_transport *t;
    const lac_send nothing = {.peer = 1, .data = NULL, .len = 5};
    assert_ok(lac_hub_open(&hub, 2));
    assert_ok(lac_transport_join(&t, "local", hub, 0, 2));
    assert_fails(
        lac_transport_exchange(t, &nothing, 1, NULL, 0, 1), LAC_ERR_INVALID,
        "local: a send of 5 bytes to worker 1 has no data");
    assert_fails(
        lac_transport_exchange(t, NULL, 0, NULL, 0, (double)NAN),
        LAC_ERR_INVALID, "local: a send of 5 bytes to worker 1 has no data");
    lac_transport_leave(t);
    lac_hub_close(hub);
    assert_ok(lac_hub_open(&hub, 1));
    assert_ok(lac_transport_join(&t, "local", hub, 0, 1));
    assert_fails(
        lac_transport_exchange(t, NULL, 0, NULL, 0, (double)NAN),
        LAC_ERR_INVALID, "local: the deadline is not a number");
    lac_transport_leave(t);
    lac_hub_close(hub);
}

static void reserved_members_must_be_zero(void **state)
{
    (void)state;
    lac_hub *hub;
    lac_transport *t, *u;
    const lac_send send = {.peer = 1, .reserved = {0, 1}};
    lac_receive receive = {.peer = 0, .reserved = {1, 0}};
    assert_ok(lac_hub_open(&hub, 2));
    assert_ok(lac_transport_join(&t, "local", hub, 0, 2));
    assert_ok(lac_transport_join(&u, "local", hub, 1, 2));
    assert_fails(
        lac_transport_exchange(t, &send, 1, NULL, 0, HUGE_VAL), LAC_ERR_INVALID,
        "local: a send sets reserved members, expected 0");
    assert_fails(
        lac_transport_exchange(u, NULL, 0, &receive, 1, HUGE_VAL),
        LAC_ERR_INVALID, "local: a receive sets reserved members, expected 0");
    lac_transport_leave(t);
    lac_transport_leave(u);
    lac_hub_close(hub);
}

static void watch_blocks(lac_transport *t)
{
    release_count = 0;
    for (int i = 0; i < BLOCKS; i++) {
        watched[i] = laci_zalloc_aligned(1000);
        assert_non_null(watched[i]);
        laci_transport_expect_block(t);
    }
}

static lac_status exchange_nothing(lac_transport *t)
{
    return lac_transport_exchange(t, NULL, 0, NULL, 0, HUGE_VAL);
}

// Lends a block to an exchange that sends nothing.
static lac_status lend_watched(lac_transport *t, int i)
{
    laci_transport_lend(t, watched[i]);
    return exchange_nothing(t);
}

static lac_transport *join_alone(lac_hub **hub_out)
{
    lac_transport *t = NULL;
    assert_ok(lac_hub_open(hub_out, 1));
    assert_ok(lac_transport_join(&t, "local", *hub_out, 0, 1));
    return t;
}

static void leave_alone(lac_transport *t, lac_hub *hub)
{
    lac_transport_leave(t);
    lac_hub_close(hub);
}

static void blocks_that_are_not_lent_are_released_at_once(void **state)
{
    (void)state;
    lac_hub *hub;
    lac_transport *const t = join_alone(&hub);
    watch_blocks(t);
    laci_transport_release(t, watched[0]);
    assert_int_equal(release_count, 1);
    assert_ok(lend_watched(t, 1));
    assert_ok(lend_watched(t, 2));
    laci_transport_release(t, watched[1]); // an exchange came after
    assert_int_equal(release_count, 2);
    laci_transport_release(t, watched[2]);
    assert_int_equal(release_count, 2);
    leave_alone(t, hub);
    assert_int_equal(release_count, 3);
}

static void the_next_exchange_releases_lent_blocks(void **state)
{
    (void)state;
    lac_hub *hub;
    lac_transport *const t = join_alone(&hub);
    watch_blocks(t);
    laci_transport_lend(t, watched[0]);
    assert_ok(lend_watched(t, 1));
    laci_transport_release(t, watched[0]);
    laci_transport_release(t, watched[1]);
    assert_int_equal(release_count, 0);
    assert_ok(exchange_nothing(t));
    assert_int_equal(release_count, 2);
    assert_ok(exchange_nothing(t));
    assert_int_equal(release_count, 2);
    laci_transport_release(t, watched[2]);
    leave_alone(t, hub);
}

// By an exchange that fails, or by an abort before the next one.
static void after_a_failure_blocks_are_released_after_leave(void **state)
{
    (void)state;
    for (int aborts = 0; aborts < 2; aborts++) {
        lac_hub *hub;
        lac_transport *const t = join_alone(&hub);
        watch_blocks(t);
        assert_ok(lend_watched(t, 0));
        laci_transport_release(t, watched[0]);
        if (aborts) {
            lac_transport_abort(t, "enough");
        } else {
            assert_status(
                lac_transport_exchange(t, NULL, 0, NULL, 0, (double)NAN),
                LAC_ERR_INVALID);
        }
        laci_transport_release(t, watched[1]); // never lent
        assert_int_not_equal(exchange_nothing(t), LAC_OK);
        assert_int_equal(release_count, 0);
        lac_transport_leave(t);
        assert_int_equal(release_count, 2);
        laci_transport_release(t, watched[2]);
        assert_int_equal(release_count, 3);
        lac_hub_close(hub);
    }
}

// Worker 1 still reads when worker 0 has waited for it as long as it may.
static void blocks_that_a_peer_reads_are_not_released(void **state)
{
    (void)state;
    lac_hub *hub;
    lac_transport *t, *u;
    lac_receive receive = {.peer = 0};
    assert_ok(lac_hub_open(&hub, 2));
    assert_ok(lac_transport_join(&t, "local", hub, 0, 2));
    assert_ok(lac_transport_join(&u, "local", hub, 1, 2));
    watch_blocks(t);
    const lac_send send = {.peer = 1, .data = watched[0], .len = 1000};
    for (int i = 0; i < BLOCKS; i++) {
        laci_transport_lend(t, watched[i]);
    }
    assert_ok(lac_transport_exchange(t, &send, 1, NULL, 0, 0));
    assert_ok(lac_transport_exchange(u, NULL, 0, &receive, 1, HUGE_VAL));
    laci_transport_release(t, watched[0]);
    laci_transport_release(t, watched[1]);
    lac_transport_leave(t);
    laci_transport_release(t, watched[2]);
    assert_int_equal(release_count, 0);
    lac_transport_leave(u);
    lac_hub_close(hub);
    for (int i = 0; i < BLOCKS; i++) {
        __real_laci_free_aligned(watched[i]);
        watched[i] = NULL;
    }
}

static lac_status send_once(lac_transport *from, lac_transport *to)
{
    const lac_send send = {.peer = 1, .data = "abc", .len = 3};
    lac_receive receive = {.peer = 0};
    const lac_status status =
        lac_transport_exchange(from, &send, 1, NULL, 0, HUGE_VAL);
    return status != LAC_OK
               ? status
               : lac_transport_exchange(to, NULL, 0, &receive, 1, HUGE_VAL);
}

// Opens a hub, joins twice and sends a message; allocation `allowed` fails.
static lac_status run_with(long allowed)
{
    lac_hub *hub = NULL;
    lac_transport *t = NULL, *u = NULL;
    test_allocations_left = allowed;
    lac_status status = lac_hub_open(&hub, 2);
    if (status == LAC_OK) {
        status = lac_transport_join(&t, "local", hub, 0, 2);
    }
    if (status == LAC_OK) {
        status = lac_transport_join(&u, "local", hub, 1, 2);
    }
    if (status == LAC_OK) {
        status = send_once(t, u);
    }
    test_allocations_left = -1;
    lac_transport_leave(u);
    lac_transport_leave(t);
    lac_hub_close(hub);
    return status;
}

static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    long allowed = 0;
    for (; run_with(allowed) != LAC_OK; allowed++) {
        assert_status(run_with(allowed), LAC_ERR_NOMEM);
        assert_between(allowed, 0, 100);
    }
    assert_true(allowed >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transports_can_be_listed),
        cmocka_unit_test(unknown_names_and_settings_are_rejected),
        cmocka_unit_test(the_library_of_a_transport_has_a_name),
        cmocka_unit_test(join_checks_its_place),
        cmocka_unit_test(a_worker_alone_needs_nobody),
        cmocka_unit_test(bad_arguments_fail_every_later_call),
        cmocka_unit_test(reserved_members_must_be_zero),
        cmocka_unit_test(blocks_that_are_not_lent_are_released_at_once),
        cmocka_unit_test(the_next_exchange_releases_lent_blocks),
        cmocka_unit_test(after_a_failure_blocks_are_released_after_leave),
        cmocka_unit_test(blocks_that_a_peer_reads_are_not_released),
        cmocka_unit_test(lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests_name("transport", tests, NULL, NULL);
}
