// SPDX-License-Identifier: MIT
// Properties of threads: nothing is copied, bytes are borrowed exactly as long
// as documented, and a thousand workers fit into one process. A test that need
// not wait runs both workers in one thread.
#define _POSIX_C_SOURCE 200809L
#include "lac_test.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { MANY = 1024, ROUNDS = 20 };

// No test waits this long unless it hangs.
#define LONG_SECONDS 500.0

// The deadline of exchanges that need not wait or must fail.
#define SHORT_SECONDS 0.2

typedef struct pair {
    lac_hub *hub;
    lac_transport *a; // worker 0
    lac_transport *b; // worker 1
} pair;

static int setup(void **state)
{
    static pair p;
    assert_ok(lac_hub_open(&p.hub, 2));
    assert_ok(lac_transport_join(&p.a, "local", p.hub, 0, 2));
    assert_ok(lac_transport_join(&p.b, "local", p.hub, 1, 2));
    *state = &p;
    return 0;
}

static int teardown(void **state)
{
    pair *const p = *state;
    lac_transport_leave(p->a);
    lac_transport_leave(p->b);
    lac_hub_close(p->hub);
    return 0;
}

static lac_status put_within(
    lac_transport *t, uint32_t tag, const char *text, double seconds)
{
    const uint32_t peer = 1 - lac_transport_rank(t);
    const lac_send send = {
        .peer = peer, .tag = tag, .data = text, .len = strlen(text)};
    return lac_transport_exchange(
        t, &send, 1, NULL, 0, lac_transport_now(t) + seconds);
}

static lac_status put(lac_transport *t, uint32_t tag, const char *text)
{
    return put_within(t, tag, text, SHORT_SECONDS);
}

static lac_receive get(lac_transport *t, uint32_t tag)
{
    lac_receive receive = {.peer = 1 - lac_transport_rank(t), .tag = tag};
    assert_ok(lac_transport_exchange(
        t, NULL, 0, &receive, 1, lac_transport_now(t) + LONG_SECONDS));
    return receive;
}

static void exchange_nothing(lac_transport *t)
{
    assert_ok(lac_transport_exchange(
        t, NULL, 0, NULL, 0, lac_transport_now(t) + LONG_SECONDS));
}

static void lent_memory_is_the_senders_own(void **state)
{
    const pair *const p = *state;
    static const char text[] = "not copied";
    assert_ok(put(p->a, 1, text));
    const lac_receive receive = get(p->b, 1);
    assert_ptr_equal(receive.data, text);
    exchange_nothing(p->b);
}

// The receiver is still reading, so the sender's next exchange cannot return.
static void bytes_stay_borrowed_while_they_are_read(void **state)
{
    const pair *const p = *state;
    assert_ok(put(p->a, 1, "abc"));
    (void)get(p->b, 1);
    const lac_status status = put(p->a, 2, "def");
    assert_int_equal(status, LAC_ERR_PEER);
    assert_non_null(
        strstr(lac_error_message(), "worker 1 did not return a message"));
}

static void a_copy_into_a_buffer_ends_the_loan(void **state)
{
    const pair *const p = *state;
    char buffer[3];
    lac_receive receive = {.peer = 0, .tag = 1, .buffer = buffer, .cap = 3};
    assert_ok(put(p->a, 1, "abc"));
    assert_ok(lac_transport_exchange(p->b, NULL, 0, &receive, 1, HUGE_VAL));
    assert_memory_equal(buffer, "abc", 3);
    assert_ok(put(p->a, 2, "def"));
}

static void messages_sent_before_leaving_arrive(void **state)
{
    pair *const p = *state;
    char text[] = "early";
    assert_ok(put(p->a, 1, text));
    lac_transport_leave(p->a);
    p->a = NULL;
    memset(text, 'x', 5); // may be overwritten: it was copied
    const lac_receive receive = get(p->b, 1);
    assert_int_equal(receive.len, 5);
    assert_memory_equal(receive.data, "early", 5);
}

static void sending_to_a_worker_that_left_fails(void **state)
{
    pair *const p = *state;
    lac_transport_leave(p->b);
    p->b = NULL;
    assert_fails(
        put(p->a, 1, "abc"), LAC_ERR_PEER,
        "worker 1 has left, but worker 0 sends to it");
}

static void messages_that_nobody_received_are_returned(void **state)
{
    pair *const p = *state;
    assert_ok(put(p->a, 1, "abc"));
    lac_transport_leave(p->b);
    p->b = NULL;
    exchange_nothing(p->a);
}

typedef struct reader {
    lac_transport *t;
    pthread_barrier_t barrier;
    atomic_bool done;
} reader;

static void *read_slowly(void *raw)
{
    reader *const r = raw;
    lac_receive receive = {.peer = 0, .tag = 1};
    if (lac_transport_exchange(r->t, NULL, 0, &receive, 1, HUGE_VAL) !=
        LAC_OK) {
        return NULL;
    }
    (void)pthread_barrier_wait(&r->barrier);
    for (volatile int i = 0; i < 10000000; i++) {
    }
    atomic_store(
        &r->done, receive.len == 3 && memcmp(receive.data, "abc", 3) == 0);
    if (lac_transport_exchange(r->t, NULL, 0, NULL, 0, HUGE_VAL) != LAC_OK) {
        atomic_store(&r->done, false);
    }
    return NULL;
}

static void leaving_waits_for_a_reader(void **state)
{
    pair *const p = *state;
    char text[] = "abc";
    reader r = {.t = p->b};
    pthread_t thread;
    assert_int_equal(pthread_barrier_init(&r.barrier, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, read_slowly, &r), 0);
    assert_ok(put_within(p->a, 1, text, LONG_SECONDS));
    (void)pthread_barrier_wait(&r.barrier);
    lac_transport_leave(p->a);
    p->a = NULL;
    assert_true(atomic_load(&r.done));
    memset(text, 'x', 3);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_barrier_destroy(&r.barrier);
}

static void *exchange_and_leave(void *raw)
{
    pair *const p = raw;
    bool good = get(p->b, 1).len == 3;
    good = good && put(p->b, 2, "def") == LAC_OK;
    lac_transport_leave(p->b);
    p->b = NULL;
    return good ? p : NULL;
}

static void a_handle_moves_between_threads(void **state)
{
    pair *const p = *state;
    pthread_t thread;
    void *result = NULL;
    assert_ok(put(p->a, 1, "abc"));
    assert_int_equal(pthread_create(&thread, NULL, exchange_and_leave, p), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, p);
    assert_int_equal(get(p->a, 2).len, 3);
}

typedef struct ring_member {
    lac_hub *hub;
    uint32_t rank;
    bool good;
} ring_member;

// Every worker takes the larger of its own and its neighbours' numbers.
static void *spread(void *raw)
{
    ring_member *const m = raw;
    lac_transport *t;
    uint32_t numbers[2] = {m->rank, m->rank};
    if (lac_transport_join(&t, "local", m->hub, m->rank, MANY) != LAC_OK) {
        return NULL;
    }
    const uint32_t right = (m->rank + 1) % MANY;
    const uint32_t left = (m->rank + MANY - 1) % MANY;
    bool good = true;
    for (int i = 0; i < ROUNDS && good; i++) {
        uint32_t *const mine = &numbers[i % 2];
        const lac_send sends[] = {
            {.peer = right, .tag = 1, .data = mine, .len = 4},
            {.peer = left, .tag = 1, .data = mine, .len = 4}};
        lac_receive receives[] = {
            {.peer = left, .tag = 1}, {.peer = right, .tag = 1}};
        good = lac_transport_exchange(
                   t, sends, 2, receives, 2,
                   lac_transport_now(t) + LONG_SECONDS) == LAC_OK;
        uint32_t largest = *mine;
        for (int k = 0; k < 2 && good; k++) {
            uint32_t theirs;
            memcpy(&theirs, receives[k].data, sizeof(theirs));
            largest = theirs > largest ? theirs : largest;
        }
        numbers[(i + 1) % 2] = largest;
    }
    const uint32_t expected = m->rank < ROUNDS || m->rank >= MANY - ROUNDS
                                  ? MANY - 1
                                  : m->rank + ROUNDS;
    m->good = good && numbers[ROUNDS % 2] == expected;
    lac_transport_leave(t);
    return NULL;
}

static void a_thousand_workers_fit_into_a_process(void **state)
{
    (void)state;
    static ring_member members[MANY];
    static pthread_t threads[MANY];
    lac_hub *hub;
    assert_ok(lac_hub_open(&hub, MANY));
    for (uint32_t i = 0; i < MANY; i++) {
        members[i] = (ring_member){.hub = hub, .rank = i};
        assert_int_equal(
            pthread_create(&threads[i], NULL, spread, &members[i]), 0);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(members[i].good);
    }
    lac_hub_close(hub);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(lent_memory_is_the_senders_own),
        TEST(bytes_stay_borrowed_while_they_are_read),
        TEST(a_copy_into_a_buffer_ends_the_loan),
        TEST(messages_sent_before_leaving_arrive),
        TEST(sending_to_a_worker_that_left_fails),
        TEST(messages_that_nobody_received_are_returned),
        TEST(leaving_waits_for_a_reader),
        TEST(a_handle_moves_between_threads),
        cmocka_unit_test(a_thousand_workers_fit_into_a_process),
    };
    return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}
