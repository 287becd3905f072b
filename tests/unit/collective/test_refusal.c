// SPDX-License-Identifier: MIT
// When one worker is elsewhere, sends rubbish or does not come, every worker
// fails with a message that names it, and long before the timeout if it can.
#include "groups.h"

#include "collective/frame.h"
#include "hashed.h"

enum { WORLD = 5, SMALL = 10, LARGE = 50000 };

// What one odd worker does otherwise, and what all workers do.
typedef struct oddity {
    laci_group_options options; // of the odd one
    uint64_t round_offset;
    size_t more; // values in its sums, bytes in its broadcasts
    uint32_t odd;
    worker_body *call;
    const char *message; // a part of every error message
} oddity;

static uint64_t round_of(const test_worker *w, uint64_t round)
{
    const oddity *const o = w->context;
    return round + (w->rank == o->odd ? o->round_offset : 0);
}

static lac_status talk_to_neighbours(test_worker *w)
{
    lac_edge peers[2];
    laci_reader readers[2];
    const uint32_t count = ring_peers(w, peers);
    return laci_group_exchange(
        w->group, round_of(w, 6), 0, peers, count, true, readers);
}

static lac_status talk_to_all(test_worker *w)
{
    laci_reader readers[WORKERS_MAX];
    return laci_group_gather(w->group, round_of(w, 6), 0, readers);
}

static lac_status sum(test_worker *w, size_t n)
{
    static _Thread_local float x[LARGE + 1];
    const oddity *const o = w->context;
    return laci_group_sum(
        w->group, round_of(w, 6), 0, x, n + (w->rank == o->odd ? o->more : 0),
        0);
}

static lac_status sum_few(test_worker *w)
{
    return sum(w, SMALL);
}

static lac_status sum_many(test_worker *w)
{
    return sum(w, LARGE);
}

static lac_status hear_from_one(test_worker *w)
{
    char bytes[101] = {0};
    const oddity *const o = w->context;
    const size_t len = 100 + (w->rank == o->odd ? o->more : 0);
    return laci_group_broadcast(w->group, round_of(w, 6), 0, 1, bytes, len);
}

static worker_body *const calls[] = {
    talk_to_neighbours, talk_to_all, sum_few, sum_many, hear_from_one,
};
enum { CALL_COUNT = sizeof(calls) / sizeof(calls[0]) };

// A worker that is far from the odd one may get through a call; the news
// reaches it in the next, for which all have to come.
static lac_status call_until_it_fails(test_worker *w)
{
    const oddity *const o = w->context;
    LAC_TRY(o->call(w));
    return talk_to_all(w);
}

// Runs `body` by workers of which the odd one has options of its own.
static void run_with_odd(oddity *o, worker_body *body, test_worker *workers_out)
{
    group_run run = {
        .world = WORLD,
        .options = &default_options,
        .odd = o->odd,
        .odd_options = &o->options,
        .body = body,
        .context = o,
    };
    run_groups(&run, workers_out);
}

static void run_oddity(oddity *o)
{
    test_worker workers[WORLD];
    run_with_odd(o, call_until_it_fails, workers);
    for (uint32_t i = 0; i < WORLD; i++) {
        const test_worker *const w = &workers[i];
        if (w->status == LAC_OK || strstr(w->message, o->message) == NULL) {
            print_error(
                "worker %u: %d, \"%s\", expected \"%s\"\n", i, w->status,
                w->message, o->message);
            fail();
        }
    }
}

static void another_algorithm_fails_on_every_worker(void **state)
{
    (void)state;
    for (size_t i = 0; i < CALL_COUNT; i++) {
        oddity o = {
            .options = default_options,
            .odd = 1,
            .call = calls[i],
            .message =
                "runs another layout, topology, algorithm, compressor or "
                "seed",
        };
        o.options.identity++;
        run_oddity(&o);
    }
}

static void another_session_fails_on_every_worker(void **state)
{
    (void)state;
    for (size_t i = 0; i < CALL_COUNT; i++) {
        oddity o = {
            .options = default_options,
            .odd = 4,
            .call = calls[i],
            .message = ": session is 00000000000000",
        };
        o.options.session++;
        run_oddity(&o);
    }
}

static void another_round_fails_on_every_worker(void **state)
{
    (void)state;
    for (size_t i = 0; i < CALL_COUNT; i++) {
        oddity o = {
            .options = default_options,
            .round_offset = 1,
            .odd = 3,
            .call = calls[i],
            .message = ": round is ",
        };
        run_oddity(&o);
    }
}

// Sums and broadcasts: what both ends must know the length of.
static void another_length_fails_on_every_worker(void **state)
{
    (void)state;
    for (size_t i = 2; i <= 4; i++) {
        oddity o = {
            .options = default_options,
            .more = 1,
            .odd = 2,
            .call = calls[i],
            .message = ": body has ",
        };
        run_oddity(&o);
    }
}

// A payload that only the algorithm can judge.
static lac_status judge(test_worker *w)
{
    if (w->rank == 1) {
        return laci_group_abort_on_failure(
            w->group,
            lac_fail(LAC_ERR_CORRUPT, "sign: payload has 4 bytes, expected 9"));
    }
    return talk_to_all(w);
}

static void what_one_cannot_use_all_refuse(void **state)
{
    (void)state;
    oddity o = {
        .options = default_options,
        .call = judge,
        .message = "sign: payload has 4 bytes, expected 9",
    };
    run_oddity(&o);
}

// Worker 0 frames by hand and alters, or cuts off, the last byte.
static lac_status send_damaged(test_worker *w, uint8_t change, size_t missing)
{
    lac_edge peers[] = {{.peer = 1 - w->rank}};
    laci_reader reader;
    if (w->rank == 1) {
        return laci_group_exchange(w->group, 6, 0, peers, 1, true, &reader);
    }
    static _Thread_local uint8_t message[LACI_FRAME_SIZE + 100];
    const laci_frame frame = {
        .session = default_options.session,
        .identity = default_options.identity,
        .round = 6,
        .receiver = 1,
    };
    laci_frame_write(&frame, message, 100);
    message[sizeof(message) - 1] ^= change;
    const lac_send send = {
        .peer = 1, .data = message, .len = sizeof(message) - missing};
    lac_receive receive = {.peer = 1};
    const double deadline = lac_transport_now(w->transport) + 60;
    LAC_TRY(
        lac_transport_exchange(w->transport, &send, 1, &receive, 1, deadline));
    receive = (lac_receive){.peer = 1}; // worker 1 sends nothing more
    return lac_transport_exchange(w->transport, NULL, 0, &receive, 1, deadline);
}

static lac_status send_altered(test_worker *w)
{
    return send_damaged(w, 4, 0);
}

static lac_status send_cut(test_worker *w)
{
    return send_damaged(w, 0, 1);
}

static void expect_both(worker_body *body, const char *message)
{
    test_worker workers[2];
    group_run run = {
        .world = 2,
        .options = &default_options,
        .odd = LAC_RANK_ANY,
        .body = body,
    };
    run_groups(&run, workers);
    assert_int_equal(workers[1].status, LAC_ERR_CORRUPT);
    assert_string_equal(workers[1].message, message);
    assert_int_not_equal(workers[0].status, LAC_OK);
    assert_non_null(strstr(workers[0].message, message));
}

static void a_damaged_body_fails_at_both_ends(void **state)
{
    (void)state;
    expect_both(
        send_altered, "frame from worker 0: the body was altered on the way");
    expect_both(
        send_cut,
        "frame from worker 0: body has 99 bytes, its header states 100");
}

// Worker 2 neither comes nor leaves before the others have given up.
typedef struct absence {
    oddity o; // first, since calls look for it
    pthread_barrier_t end;
} absence;

static lac_status be_absent(test_worker *w)
{
    absence *const a = w->context;
    const lac_status status = w->rank == 2 ? LAC_OK : call_until_it_fails(w);
    (void)pthread_barrier_wait(&a->end);
    return status;
}

static void who_does_not_come_fails_the_others(void **state)
{
    (void)state;
    laci_group_options options = default_options;
    options.timeout = 0.2;
    for (size_t k = 0; k < CALL_COUNT; k++) {
        absence a = {.o = {.call = calls[k], .odd = WORLD}};
        assert_int_equal(pthread_barrier_init(&a.end, NULL, WORLD), 0);
        test_worker workers[WORLD];
        group_run run = {
            .world = WORLD,
            .options = &options,
            .odd = LAC_RANK_ANY,
            .body = be_absent,
            .context = &a,
        };
        run_groups(&run, workers);
        (void)pthread_barrier_destroy(&a.end);
        for (uint32_t i = 0; i < WORLD; i++) {
            const test_worker *const w = &workers[i];
            assert_int_equal(w->status, i == 2 ? LAC_OK : LAC_ERR_PEER);
            // Who does not wait for worker 2 itself may name another.
            assert_true(
                i == 2 || strstr(w->message, " was silent for ") != NULL ||
                strstr(w->message, " did not return a message of ") != NULL);
        }
    }
}

// After a failure nothing counts and nothing works, and what is written does
// not disturb a peer that still reads.
static lac_status go_on(test_worker *w)
{
    const lac_status first = call_until_it_fails(w);
    char message[sizeof(w->message)];
    EXPECT(first != LAC_OK);
    (void)snprintf(message, sizeof(message), "%s", lac_error_message());
    const laci_counts before = *laci_group_counts(w->group);
    for (size_t i = 0; i < CALL_COUNT; i++) {
        laci_writer *const m = laci_group_message(w->group, 0);
        memset(laci_writer_room(m, 1000), 0xff, 1000);
        laci_writer_commit(m, 1000);
        EXPECT(calls[i](w) != LAC_OK);
        EXPECT(strcmp(lac_error_message(), message) == 0);
    }
    const laci_counts *const after = laci_group_counts(w->group);
    EXPECT(memcmp(&before, after, sizeof(before)) == 0);
    return LAC_OK;
}

static void a_group_that_failed_stays_closed(void **state)
{
    (void)state;
    oddity o = {
        .options = default_options, .call = talk_to_neighbours, .odd = 0};
    o.options.identity++;
    test_worker workers[WORLD];
    run_with_odd(&o, go_on, workers);
    assert_all_ok(workers, WORLD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_algorithm_fails_on_every_worker),
        cmocka_unit_test(another_session_fails_on_every_worker),
        cmocka_unit_test(another_round_fails_on_every_worker),
        cmocka_unit_test(another_length_fails_on_every_worker),
        cmocka_unit_test(what_one_cannot_use_all_refuse),
        cmocka_unit_test(a_damaged_body_fails_at_both_ends),
        cmocka_unit_test(who_does_not_come_fails_the_others),
        cmocka_unit_test(a_group_that_failed_stays_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
