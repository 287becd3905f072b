// SPDX-License-Identifier: MIT
// When one worker is elsewhere, sends rubbish or does not come, every worker
// fails with a sentence that says so, and long before the timeout if it can.
#include "workers.h"

#include "collective/frame.h"

enum { WORLD = 5, SMALL = 10, LARGE = 50000 };

// What one odd worker does otherwise, and what all workers do.
typedef struct oddity {
    laci_group_options options; // of the odd one
    uint64_t round_offset;
    size_t more; // values in its sums, bytes in its broadcasts
    uint32_t odd;
    worker_body *call;
    const char *sentence; // what every sentence contains
} oddity;

static uint64_t round_of(const worker *w, uint64_t round)
{
    const oddity *const o = w->shared;
    return round + (w->rank == o->odd ? o->round_offset : 0);
}

static lac_status talk_to_neighbours(worker *w)
{
    lac_edge peers[2];
    laci_reader readers[2];
    const uint32_t count = ring_peers(w, peers);
    return laci_group_exchange(
        w->group, round_of(w, 6), 0, peers, count, true, readers);
}

static lac_status talk_to_all(worker *w)
{
    laci_reader readers[WORKERS_MAX];
    return laci_group_gather(w->group, round_of(w, 6), 0, readers);
}

static lac_status sum(worker *w, size_t n)
{
    static _Thread_local float x[LARGE + 1];
    const oddity *const o = w->shared;
    return laci_group_sum(
        w->group, round_of(w, 6), 0, x, n + (w->rank == o->odd ? o->more : 0),
        0);
}

static lac_status sum_few(worker *w)
{
    return sum(w, SMALL);
}

static lac_status sum_many(worker *w)
{
    return sum(w, LARGE);
}

static lac_status hear_from_one(worker *w)
{
    char bytes[101] = {0};
    const oddity *const o = w->shared;
    const size_t len = 100 + (w->rank == o->odd ? o->more : 0);
    return laci_group_broadcast(w->group, round_of(w, 6), 0, 1, bytes, len);
}

static worker_body *const calls[] = {
    talk_to_neighbours, talk_to_all, sum_few, sum_many, hear_from_one,
};
enum { CALL_COUNT = sizeof(calls) / sizeof(calls[0]) };

// A worker that is far from the odd one may get through a call; the news
// reaches it in the next, for which all have to come.
static lac_status call_until_it_fails(worker *w)
{
    const oddity *const o = w->shared;
    TRY(o->call(w));
    return talk_to_all(w);
}

static void run_oddity(oddity *o)
{
    workers all;
    workers_init(&all, WORLD);
    for (uint32_t i = 0; i < WORLD; i++) {
        workers_open(&all, i, i == o->odd ? &o->options : &default_options);
    }
    workers_run(&all, call_until_it_fails, o);
    for (uint32_t i = 0; i < WORLD; i++) {
        const worker *const w = &all.each[i];
        if (w->status == LAC_OK || strstr(w->sentence, o->sentence) == NULL) {
            print_error(
                "worker %u: %d, \"%s\", expected \"%s\"\n", i, w->status,
                w->sentence, o->sentence);
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
            .sentence =
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
            .sentence = ": session is 00000000000000",
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
            .sentence = ": round is ",
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
            .sentence = ": body has ",
        };
        run_oddity(&o);
    }
}

// A payload that only the algorithm can judge.
static lac_status judge(worker *w)
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
        .sentence = "sign: payload has 4 bytes, expected 9",
    };
    run_oddity(&o);
}

// Worker 0 frames by hand and alters, or cuts off, the last byte.
static lac_status send_damaged(worker *w, uint8_t change, size_t missing)
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
    TRY(lac_transport_exchange(w->transport, &send, 1, &receive, 1, deadline));
    receive = (lac_receive){.peer = 1}; // worker 1 has nothing more to say
    return lac_transport_exchange(w->transport, NULL, 0, &receive, 1, deadline);
}

static lac_status send_altered(worker *w)
{
    return send_damaged(w, 4, 0);
}

static lac_status send_cut(worker *w)
{
    return send_damaged(w, 0, 1);
}

static void expect_both(worker_body *body, const char *sentence)
{
    workers all;
    workers_init(&all, 2);
    workers_open(&all, 0, &default_options);
    workers_open(&all, 1, &default_options);
    workers_run(&all, body, NULL);
    assert_int_equal(all.each[1].status, LAC_ERR_CORRUPT);
    assert_string_equal(all.each[1].sentence, sentence);
    assert_int_not_equal(all.each[0].status, LAC_OK);
    assert_non_null(strstr(all.each[0].sentence, sentence));
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

static lac_status be_absent(worker *w)
{
    absence *const a = w->shared;
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
        workers all;
        workers_init(&all, WORLD);
        for (uint32_t i = 0; i < WORLD; i++) {
            workers_open(&all, i, &options);
        }
        workers_run(&all, be_absent, &a);
        (void)pthread_barrier_destroy(&a.end);
        for (uint32_t i = 0; i < WORLD; i++) {
            const worker *const w = &all.each[i];
            assert_int_equal(w->status, i == 2 ? LAC_OK : LAC_ERR_PEER);
            // Who does not wait for worker 2 itself may name another.
            assert_true(
                i == 2 || strstr(w->sentence, " was silent for ") != NULL ||
                strstr(w->sentence, " did not come back for ") != NULL);
        }
    }
}

// After a failure nothing counts and nothing works, and what is written does
// not disturb a peer that still reads.
static lac_status go_on(worker *w)
{
    const lac_status first = call_until_it_fails(w);
    char sentence[SENTENCE_SIZE];
    (void)snprintf(sentence, sizeof(sentence), "%s", lac_error_message());
    const laci_counts before = *laci_group_counts(w->group);
    for (size_t i = 0; i < CALL_COUNT; i++) {
        laci_writer *const m = laci_group_message(w->group, 0);
        memset(laci_writer_room(m, 1000), 0xff, 1000);
        laci_writer_commit(m, 1000);
        EXPECT(w, calls[i](w) != LAC_OK);
        EXPECT(w, strcmp(lac_error_message(), sentence) == 0);
    }
    const laci_counts *const after = laci_group_counts(w->group);
    EXPECT(w, memcmp(&before, after, sizeof(before)) == 0);
    return first;
}

static void a_group_that_failed_stays_closed(void **state)
{
    (void)state;
    oddity o = {
        .options = default_options, .call = talk_to_neighbours, .odd = 0};
    o.options.identity++;
    workers all;
    workers_init(&all, WORLD);
    for (uint32_t i = 0; i < WORLD; i++) {
        workers_open(&all, i, i == 0 ? &o.options : &default_options);
    }
    workers_run(&all, go_on, &o);
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
