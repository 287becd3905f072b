// SPDX-License-Identifier: MIT
// User-defined transports: which tables join accepts, which functions are
// called how often, and what becomes of functions that break their duties.
#include "lac_test.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "transport/transport.h"

enum { ROOM = 8 };

// A transport without peers, and what its functions do and have seen.
typedef struct fake {
    lac_status status;   // that exchange and sum return
    const char *message; // that they report; NULL: none
    bool fills;          // exchange sets the receive
    const void *data;
    size_t len;
    int exchanges;
    int aborts;
    int leaves;
    int sums;
    char why[64];
} fake;

static lac_status fake_result(const fake *f)
{
    return f->message == NULL ? f->status
                              : lac_fail_text(f->status, f->message);
}

static lac_status fake_exchange(
    void *context, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline)
{
    fake *const f = context;
    (void)sends;
    (void)send_count;
    (void)deadline;
    f->exchanges++;
    for (size_t i = 0; i < receive_count && f->fills; i++) {
        receives[i].data = f->data;
        receives[i].len = f->len;
    }
    return fake_result(f);
}

static void fake_abort(void *context, const char *why)
{
    fake *const f = context;
    f->aborts++;
    (void)snprintf(f->why, sizeof(f->why), "%s", why);
}

static void fake_leave(void *context)
{
    ((fake *)context)->leaves++;
}

static lac_status fake_sum(void *context, float *x, size_t n, double deadline)
{
    fake *const f = context;
    (void)deadline;
    f->sums++;
    for (size_t i = 0; i < n; i++) {
        x[i] *= 2;
    }
    return fake_result(f);
}

static const lac_transport_ops fake_ops = {
    .size = sizeof(lac_transport_ops),
    .exchange = fake_exchange,
    .abort = fake_abort,
    .leave = fake_leave,
    .allreduce_sum = fake_sum,
};

static lac_transport *join_fake(fake *f, const lac_transport_ops *ops)
{
    lac_transport *t = NULL;
    assert_ok(lac_transport_join_with(&t, ops, f, 0, 2));
    return t;
}

// Receives one message of worker 1; a buffer has ROOM bytes.
static lac_status receive_one(
    lac_transport *t, void *buffer, size_t cap, lac_receive *out)
{
    *out = (lac_receive){.peer = 1, .buffer = buffer, .cap = cap};
    return lac_transport_exchange(t, NULL, 0, out, 1, HUGE_VAL);
}

static void join_checks_its_arguments(void **state)
{
    (void)state;
    lac_transport *t = (void *)&t;
    lac_transport_ops ops = fake_ops;
    fake f = {0};
    assert_fails(
        lac_transport_join_with(&t, NULL, &f, 0, 2), LAC_ERR_INVALID,
        "user-defined transport: ops is NULL");
    assert_null(t);
    assert_fails(
        lac_transport_join_with(&t, &ops, &f, 2, 2), LAC_ERR_INVALID,
        "user-defined transport: rank 2, expected one below 2");
    assert_fails(
        lac_transport_join_with(&t, &ops, &f, 0, 0), LAC_ERR_INVALID,
        "user-defined transport: a world of 0 workers, expected from 1 to "
        "4294967294");
    assert_status(
        lac_transport_join_with(&t, &ops, &f, LAC_RANK_ANY, LAC_RANK_ANY),
        LAC_ERR_INVALID);
    ops.exchange = NULL;
    assert_fails(
        lac_transport_join_with(&t, &ops, &f, 0, 2), LAC_ERR_INVALID,
        "user-defined transport: ops has no exchange, which is required");
    ops = fake_ops;
    ops.size = 8;
    assert_fails(
        lac_transport_join_with(&t, &ops, &f, 0, 2), LAC_ERR_INVALID,
        "user-defined transport: ops has 8 bytes, expected at least 16");
    test_allocations_left = 0;
    assert_status(
        lac_transport_join_with(&t, &fake_ops, &f, 0, 2), LAC_ERR_NOMEM);
    test_allocations_left = -1;
    assert_null(t);
    assert_int_equal(f.leaves, 0);
}

static void every_function_is_called(void **state)
{
    (void)state;
    fake f = {.fills = true, .data = "abc", .len = 3};
    lac_transport *const t = join_fake(&f, &fake_ops);
    lac_receive receive;
    float x[2] = {1, 2};
    assert_int_equal(lac_transport_rank(t), 0);
    assert_int_equal(lac_transport_world(t), 2);
    assert_ok(receive_one(t, NULL, 0, &receive));
    assert_int_equal(receive.len, 3);
    assert_memory_equal(receive.data, "abc", 3);
    assert_true(laci_transport_has_allreduce(t));
    assert_ok(laci_transport_allreduce(t, x, 2, HUGE_VAL));
    assert_true(x[0] == 2 && x[1] == 4);
    lac_transport_kill_job(t, 1);
    assert_int_equal(f.aborts, 0);
    lac_transport_leave(t);
    assert_int_equal(f.leaves, 1);
    assert_int_equal(f.exchanges, 1);
    assert_int_equal(f.sums, 1);
}

// What a table does not hold is not called, even if memory follows it. A table
// that is cut in a member, or has members of a later version, is accepted.
static void a_table_of_another_version_is_accepted(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        offsetof(lac_transport_ops, abort),
        offsetof(lac_transport_ops, abort) + 1,
        offsetof(lac_transport_ops, allreduce_sum),
        sizeof(lac_transport_ops) + 64,
    };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct {
            lac_transport_ops ops;
            char later[64];
        } table = {.ops = fake_ops};
        fake f = {0};
        memset(table.later, 0xff, sizeof(table.later));
        table.ops.size = sizes[i];
        lac_transport *const t = join_fake(&f, &table.ops);
        memset(&table, 0xff, sizeof(table)); // it was copied
        assert_ok(lac_transport_exchange(t, NULL, 0, NULL, 0, HUGE_VAL));
        assert_int_equal(laci_transport_has_allreduce(t), i == 3);
        lac_transport_abort(t, "enough");
        lac_transport_leave(t);
        assert_int_equal(f.exchanges, 1);
        assert_int_equal(f.aborts, i >= 2);
        assert_int_equal(f.leaves, i >= 2);
    }
}

static void a_transport_may_be_intact(void **state)
{
    (void)state;
    lac_transport_ops ops = fake_ops;
    for (int intact = 0; intact < 2; intact++) {
        for (int sums = 0; sums < 2; sums++) {
            fake f = {0};
            ops.intact = (size_t)intact;
            ops.allreduce_sum = sums ? fake_ops.allreduce_sum : NULL;
            lac_transport *const t = join_fake(&f, &ops);
            assert_int_equal(laci_transport_is_intact(t), intact);
            assert_int_equal(laci_transport_has_allreduce(t), sums);
            lac_transport_leave(t);
        }
    }
    ops.size = offsetof(lac_transport_ops, intact);
    ops.intact = 1;
    fake f = {0};
    lac_transport *const t = join_fake(&f, &ops);
    assert_false(laci_transport_is_intact(t));
    lac_transport_leave(t);
}

static void an_abort_is_called_once_and_ends_exchanges(void **state)
{
    (void)state;
    for (int optional = 0; optional < 2; optional++) {
        fake f = {0};
        lac_transport_ops ops = fake_ops;
        ops.abort = optional ? NULL : fake_abort;
        lac_transport *const t = join_fake(&f, &ops);
        float x = 1;
        lac_transport_abort(t, "the disk is full");
        lac_transport_abort(t, "late");
        assert_fails(
            laci_transport_allreduce(t, &x, 1, HUGE_VAL), LAC_ERR_PEER,
            "the disk is full");
        assert_fails(
            lac_transport_exchange(t, NULL, 0, NULL, 0, HUGE_VAL), LAC_ERR_PEER,
            "the disk is full");
        assert_int_equal(f.exchanges + f.sums, 0);
        assert_int_equal(f.aborts, !optional);
        assert_string_equal(f.why, optional ? "" : "the disk is full");
        lac_transport_leave(t);
        assert_int_equal(f.leaves, 1);
    }
}

static void *abort_elsewhere(void *t)
{
    lac_transport_abort(t, "the user is tired");
    return NULL;
}

// Another thread aborts while the exchange runs, which then fails with an error
// of its own.
static lac_status exchange_during_abort(
    void *context, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline)
{
    pthread_t thread;
    (void)sends;
    (void)send_count;
    (void)receives;
    (void)receive_count;
    (void)deadline;
    if (pthread_create(&thread, NULL, abort_elsewhere, *(void **)context) !=
            0 ||
        pthread_join(thread, NULL) != 0) {
        return LAC_OK;
    }
    return lac_fail(LAC_ERR_SPACE, "interrupted");
}

static void a_running_exchange_reports_the_abort(void **state)
{
    (void)state;
    lac_transport *t = NULL;
    const lac_transport_ops ops = {
        .size = sizeof(ops), .exchange = exchange_during_abort};
    assert_ok(lac_transport_join_with(&t, &ops, &t, 0, 1));
    assert_fails(
        lac_transport_exchange(t, NULL, 0, NULL, 0, HUGE_VAL), LAC_ERR_PEER,
        "the user is tired");
    lac_transport_leave(t);
}

typedef struct failing {
    fake f;
    lac_status status;
    const char *message;
} failing;

// The message of an earlier failure is not taken for that of the exchange.
static void a_failure_has_a_message(void **state)
{
    (void)state;
    static const failing cases[] = {
        {{.status = LAC_ERR_PEER, .message = "the cable is cut"},
         LAC_ERR_PEER,
         "the cable is cut"},
        {{.status = LAC_ERR_NOMEM},
         LAC_ERR_NOMEM,
         "user-defined transport: exchange of worker 0 failed without a "
         "message: out of memory"},
        {{.status = LAC_ERR_PEER, .message = ""},
         LAC_ERR_PEER,
         "user-defined transport: exchange of worker 0 failed without a "
         "message: a worker is gone, silent or sends unexpected messages"},
        {{.status = (lac_status)77, .message = "hm"},
         LAC_ERR_INVALID,
         "user-defined transport: exchange of worker 0 returned the status 77, "
         "expected a lac_status"},
        {{.status = (lac_status)-99},
         LAC_ERR_INVALID,
         "user-defined transport: exchange of worker 0 returned the status "
         "-99, expected a lac_status"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fake f = cases[i].f;
        lac_transport *const t = join_fake(&f, &fake_ops);
        assert_status(lac_fail(LAC_ERR_INVALID, "earlier"), LAC_ERR_INVALID);
        for (int again = 0; again < 2; again++) {
            assert_fails(
                lac_transport_exchange(t, NULL, 0, NULL, 0, HUGE_VAL),
                cases[i].status, cases[i].message);
        }
        assert_true(lac_transport_failed(t));
        assert_int_equal(f.exchanges, 1);
        assert_int_equal(f.aborts, 1);
        lac_transport_leave(t);
        assert_int_equal(f.leaves, 1);
    }
}

static void a_sum_that_fails_has_a_message(void **state)
{
    (void)state;
    fake f = {.status = LAC_ERR_PEER};
    lac_transport *const t = join_fake(&f, &fake_ops);
    float x = 1;
    assert_fails(
        laci_transport_allreduce(t, &x, 1, HUGE_VAL), LAC_ERR_PEER,
        "user-defined transport: allreduce_sum of worker 0 failed without a "
        "message: a worker is gone, silent or sends unexpected messages");
    assert_int_equal(f.aborts, 1);
    lac_transport_leave(t);
}

typedef struct delivery {
    fake f;
    bool has_buffer;
    size_t cap;
    lac_status status;
    const char *message;
} delivery;

static void deliveries_are_checked(void **state)
{
    (void)state;
    static const delivery cases[] = {
        {{.fills = false},
         false,
         0,
         LAC_ERR_INVALID,
         "user-defined transport: exchange of worker 0 returned without a "
         "message of worker 1"},
        {{.fills = false},
         true,
         ROOM,
         LAC_ERR_INVALID,
         "user-defined transport: exchange of worker 0 returned without a "
         "message of worker 1"},
        {{.fills = true, .data = NULL, .len = 5},
         false,
         0,
         LAC_ERR_INVALID,
         "user-defined transport: exchange of worker 0 returned a message of "
         "worker 1 with 5 bytes and no data"},
        {{.fills = true, .data = "123456789", .len = 9},
         false,
         8,
         LAC_ERR_SPACE,
         "user-defined transport: a message of worker 1 has 9 bytes, the "
         "buffer of worker 0 holds 8"},
        {{.fills = true, .len = 9},
         true,
         ROOM,
         LAC_ERR_SPACE,
         "user-defined transport: a message of worker 1 has 9 bytes, the "
         "buffer of worker 0 holds 8"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fake f = cases[i].f;
        char buffer[ROOM];
        lac_receive receive;
        lac_transport *const t = join_fake(&f, &fake_ops);
        assert_fails(
            receive_one(
                t, cases[i].has_buffer ? buffer : NULL, cases[i].cap, &receive),
            cases[i].status, cases[i].message);
        assert_int_equal(f.aborts, 1);
        lac_transport_leave(t);
        assert_int_equal(f.leaves, 1);
    }
}

// The program may leave `data` NULL where it is known.
static void data_is_set_for_buffers_and_empty_messages(void **state)
{
    (void)state;
    fake f = {.fills = true, .data = NULL, .len = 0};
    char buffer[ROOM];
    lac_receive receive;
    lac_transport *const t = join_fake(&f, &fake_ops);
    assert_ok(receive_one(t, NULL, 0, &receive));
    assert_non_null(receive.data);
    assert_ok(receive_one(t, buffer, ROOM, &receive));
    assert_ptr_equal(receive.data, buffer);
    f.len = ROOM;
    assert_ok(receive_one(t, buffer, ROOM, &receive));
    assert_ptr_equal(receive.data, buffer);
    assert_int_equal(receive.len, ROOM);
    lac_transport_leave(t);
}

// A program may report a failure that it recovered from; a success does not
// hide the last message of the thread.
static void a_success_keeps_the_last_message(void **state)
{
    (void)state;
    fake f = {.status = LAC_OK};
    lac_transport *const t = join_fake(&f, &fake_ops);
    assert_status(lac_fail(LAC_ERR_INVALID, "earlier"), LAC_ERR_INVALID);
    assert_ok(lac_transport_exchange(t, NULL, 0, NULL, 0, HUGE_VAL));
    assert_string_equal(lac_error_message(), "earlier");
    lac_transport_leave(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(join_checks_its_arguments),
        cmocka_unit_test(every_function_is_called),
        cmocka_unit_test(a_table_of_another_version_is_accepted),
        cmocka_unit_test(a_transport_may_be_intact),
        cmocka_unit_test(an_abort_is_called_once_and_ends_exchanges),
        cmocka_unit_test(a_running_exchange_reports_the_abort),
        cmocka_unit_test(a_failure_has_a_message),
        cmocka_unit_test(a_sum_that_fails_has_a_message),
        cmocka_unit_test(deliveries_are_checked),
        cmocka_unit_test(data_is_set_for_buffers_and_empty_messages),
        cmocka_unit_test(a_success_keeps_the_last_message),
    };
    return cmocka_run_group_tests_name("user", tests, NULL, NULL);
}
