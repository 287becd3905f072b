// SPDX-License-Identifier: MIT
// What is particular to threads: nothing is copied, bytes are borrowed exactly
// as long as promised, and a thousand workers fit into one process. A test
// that needs no waiting plays both workers in one thread.
#define _POSIX_C_SOURCE 200809L
#include "lac_test.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { MANY = 1024, ROUNDS = 20 };

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

static lac_status put(lac_transport *t, uint32_t tag, const char *text)
{
    const uint32_t peer = 1 - lac_transport_rank(t);
    const lac_send send = {peer, tag, text, strlen(text)};
    return lac_transport_exchange(
        t, &send, 1, NULL, 0, lac_transport_now(t) + 0.2);
}

static lac_receive get(lac_transport *t, uint32_t tag)
{
    lac_receive wish = {.peer = 1 - lac_transport_rank(t), .tag = tag};
    assert_ok(lac_transport_exchange(
        t, NULL, 0, &wish, 1, lac_transport_now(t) + 60));
    return wish;
}

static void rest(lac_transport *t)
{
    assert_ok(
        lac_transport_exchange(t, NULL, 0, NULL, 0, lac_transport_now(t) + 60));
}

static void a_loan_is_the_senders_own_memory(void **state)
{
    const pair *const p = *state;
    static const char text[] = "not copied";
    assert_ok(put(p->a, 1, text));
    const lac_receive wish = get(p->b, 1);
    assert_ptr_equal(wish.data, text);
    rest(p->b);
}

// The receiver reads on, so the sender's next exchange cannot return.
static void bytes_stay_borrowed_while_they_are_read(void **state)
{
    const pair *const p = *state;
    assert_ok(put(p->a, 1, "abc"));
    (void)get(p->b, 1);
    const lac_status status = put(p->a, 2, "def");
    assert_int_equal(status, LAC_ERR_PEER);
    assert_non_null(strstr(lac_error_message(), "worker 1 did not come back"));
}

static void a_copy_into_a_buffer_ends_the_loan(void **state)
{
    const pair *const p = *state;
    char buffer[3];
    lac_receive wish = {.peer = 0, .tag = 1, .buffer = buffer, .cap = 3};
    assert_ok(put(p->a, 1, "abc"));
    assert_ok(lac_transport_exchange(p->b, NULL, 0, &wish, 1, HUGE_VAL));
    assert_memory_equal(buffer, "abc", 3);
    assert_ok(put(p->a, 2, "def"));
}

static void what_was_sent_before_leaving_arrives(void **state)
{
    pair *const p = *state;
    char text[] = "early";
    assert_ok(put(p->a, 1, text));
    lac_transport_leave(p->a);
    p->a = NULL;
    memset(text, 'x', 5); // free to be overwritten: it was copied
    const lac_receive wish = get(p->b, 1);
    assert_int_equal(wish.len, 5);
    assert_memory_equal(wish.data, "early", 5);
}

static void sending_to_one_who_left_fails(void **state)
{
    pair *const p = *state;
    lac_transport_leave(p->b);
    p->b = NULL;
    assert_fails(
        put(p->a, 1, "abc"), LAC_ERR_PEER,
        "worker 1 has left, but worker 0 sends to it");
}

static void what_nobody_received_is_given_back(void **state)
{
    pair *const p = *state;
    assert_ok(put(p->a, 1, "abc"));
    lac_transport_leave(p->b);
    p->b = NULL;
    rest(p->a);
}

typedef struct reader {
    lac_transport *t;
    pthread_barrier_t barrier;
    atomic_bool done;
} reader;

static void *read_slowly(void *raw)
{
    reader *const r = raw;
    lac_receive wish = {.peer = 0, .tag = 1};
    if (lac_transport_exchange(r->t, NULL, 0, &wish, 1, HUGE_VAL) != LAC_OK) {
        return NULL;
    }
    (void)pthread_barrier_wait(&r->barrier);
    for (volatile int i = 0; i < 10000000; i++) {
    }
    atomic_store(&r->done, wish.len == 3 && memcmp(wish.data, "abc", 3) == 0);
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
    assert_ok(put(p->a, 1, text));
    (void)pthread_barrier_wait(&r.barrier);
    lac_transport_leave(p->a);
    p->a = NULL;
    assert_true(atomic_load(&r.done));
    memset(text, 'x', 3);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_barrier_destroy(&r.barrier);
}

typedef struct crowd_member {
    lac_hub *hub;
    uint32_t rank;
    bool good;
} crowd_member;

// Every worker takes the larger of its own and its neighbours' numbers.
static void *spread(void *raw)
{
    crowd_member *const m = raw;
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
        const lac_send sends[] = {{right, 1, mine, 4}, {left, 1, mine, 4}};
        lac_receive wishes[] = {
            {.peer = left, .tag = 1}, {.peer = right, .tag = 1}};
        good = lac_transport_exchange(
                   t, sends, 2, wishes, 2, lac_transport_now(t) + 60) == LAC_OK;
        uint32_t largest = *mine;
        for (int k = 0; k < 2 && good; k++) {
            uint32_t theirs;
            memcpy(&theirs, wishes[k].data, sizeof(theirs));
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
    static crowd_member members[MANY];
    static pthread_t threads[MANY];
    lac_hub *hub;
    assert_ok(lac_hub_open(&hub, MANY));
    for (uint32_t i = 0; i < MANY; i++) {
        members[i] = (crowd_member){.hub = hub, .rank = i};
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
        TEST(a_loan_is_the_senders_own_memory),
        TEST(bytes_stay_borrowed_while_they_are_read),
        TEST(a_copy_into_a_buffer_ends_the_loan),
        TEST(what_was_sent_before_leaving_arrives),
        TEST(sending_to_one_who_left_fails),
        TEST(what_nobody_received_is_given_back),
        TEST(leaving_waits_for_a_reader),
        cmocka_unit_test(a_thousand_workers_fit_into_a_process),
    };
    return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}
