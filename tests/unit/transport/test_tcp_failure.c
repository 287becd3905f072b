// SPDX-License-Identifier: MIT
// Who is named when workers wait for one another, and what a worker keeps of a
// peer that it does not listen to. One worker is real. The test plays the
// others through socket pairs: it has their messages arrive at chosen times of
// a clock that only the worker's looks at it move.
#define _GNU_SOURCE
#include "lac_test.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "transport/tcp/session.h"

enum { WORLD = 5, SCRIPT_MAX = 8, TAG = 1 };

#define TICK     0.01 // seconds between two looks at the clock
#define DEADLINE 2.0
#define GIB      ((uint64_t)1 << 30)

// A message of a worker that arrives at some time.
typedef struct event {
    double when;
    uint32_t from;
    laci_tcp_kind kind;
    uint32_t suspect; // the tag
    const char *text;
    uint32_t forwarded; // of LEFT: whose words the text is
} event;

typedef struct scene {
    laci_services services;
    laci_tcp_session *s;
    int others[WORLD]; // the ends of the other workers
    double clock;
    const event *next;
} scene;

// The clock takes no argument.
static scene *current;

static void play_event(const event *e)
{
    uint8_t bytes[LACI_TCP_HEAD + LACI_TCP_NOTE + LACI_TCP_WHY];
    const size_t note = e->kind == LACI_TCP_LEFT ? LACI_TCP_NOTE : 0;
    const size_t len = note + strlen(e->text);
    laci_put_u32(bytes, (uint32_t)e->kind);
    laci_put_u32(bytes + 4, e->suspect);
    laci_put_u64(bytes + 8, len);
    laci_put_u32(bytes + LACI_TCP_HEAD, e->forwarded);
    laci_put_u32(bytes + LACI_TCP_HEAD + 4, e->suspect);
    memcpy(bytes + LACI_TCP_HEAD + note, e->text, strlen(e->text));
    const ssize_t size = (ssize_t)(LACI_TCP_HEAD + len);
    assert_true(
        send(current->others[e->from], bytes, (size_t)size, MSG_NOSIGNAL) ==
        size);
}

static double tick(void)
{
    current->clock += TICK;
    while (current->next->text != NULL &&
           current->next->when <= current->clock) {
        play_event(current->next++);
    }
    laci_tcp_kick(current->s); // nothing sleeps
    return current->clock;
}

// Memory that is announced is not touched, as with overcommitment.
static void *reserve(size_t size)
{
    if (size < GIB) {
        return laci_transport_services.zalloc(size);
    }
    void *const block = mmap(
        NULL, size, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return block == MAP_FAILED ? NULL : block;
}

static laci_tcp_connection *connect_pair(scene *c, uint32_t peer)
{
    int pair[2];
    laci_tcp_connection *const connection =
        c->services.zalloc(sizeof(*connection));
    assert_non_null(connection);
    assert_int_equal(
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    c->others[peer] = pair[1];
    connection->services = &c->services;
    connection->socket = pair[0];
    connection->in = c->services.zalloc(LACI_TCP_BUFFER);
    connection->out = c->services.zalloc(LACI_TCP_BUFFER);
    assert_non_null(connection->in);
    assert_non_null(connection->out);
    return connection;
}

static void open_scene(scene *c, uint32_t rank)
{
    static const event nothing = {0};
    *c = (scene){.services = laci_transport_services, .next = &nothing};
    current = c;
    c->services.now = tick;
    c->services.zalloc = reserve;
    laci_tcp_session *const s = c->services.zalloc(sizeof(*s));
    assert_non_null(s);
    c->s = s;
    s->services = &c->services;
    s->rank = rank;
    s->world = WORLD;
    s->suspect = LAC_RANK_ANY;
    s->peers = c->services.zalloc(WORLD * sizeof(*s->peers));
    assert_non_null(s->peers);
    assert_ok(laci_tcp_engine_open(s));
    s->engine_open = true;
    for (uint32_t peer = 0; peer < WORLD; peer++) {
        c->others[peer] = -1;
        if (peer != rank) {
            s->peers[peer].connection = connect_pair(c, peer);
            assert_true(laci_tcp_watch(s, &s->peers[peer]));
        }
    }
}

static void close_scene(scene *c)
{
    laci_tcp_session_release(c->s);
    c->services.free(c->s);
    for (uint32_t peer = 0; peer < WORLD; peer++) {
        if (c->others[peer] >= 0) {
            (void)close(c->others[peer]);
        }
    }
}

// Waits for a message of `peer`, and fails with `message`.
static void assert_named(
    scene *c, uint32_t peer, const event *script, const char *message)
{
    lac_receive receive = {.peer = peer, .tag = TAG};
    c->next = script;
    assert_fails(
        laci_tcp_exchange(
            c->s, NULL, 0, &receive, 1, c->clock + DEADLINE + TICK / 2),
        LAC_ERR_PEER, message);
}

// What the worker sent to `peer` is one abort with this suspect, or nothing.
static void assert_sent(scene *c, uint32_t peer, uint32_t suspect)
{
    uint8_t bytes[1000];
    const ssize_t got = recv(c->others[peer], bytes, sizeof(bytes), 0);
    if (suspect == LAC_RANK_ANY) {
        assert_true(got < 0);
        return;
    }
    assert_true(got > LACI_TCP_HEAD);
    assert_int_equal(laci_get_u32(bytes), LACI_TCP_ABORTED);
    assert_int_equal(laci_get_u32(bytes + 4), suspect);
    assert_int_equal(laci_get_u64(bytes + 8), got - LACI_TCP_HEAD);
}

static const char zero_was_silent[] =
    "worker 0 was silent for 2.0 seconds in an exchange of worker 3";
static const char one_was_silent[] =
    "worker 1 was silent for 2.0 seconds in an exchange of worker 0";
static const char zero_names_one[] =
    "worker 0 aborted: worker 1 was silent for 2.0 seconds in an exchange of "
    "worker 0";

// A worker that waits for `peer` fails with this message.
static void assert_fails_with(
    uint32_t rank, uint32_t peer, const event *script, const char *message)
{
    scene c;
    open_scene(&c, rank);
    assert_named(&c, peer, script, message);
    close_scene(&c);
}

// Worker 1 is stopped. Worker 0 waits for it, and worker 3 for worker 0.
static void a_suspect_that_waits_names_whom_it_waits_for(void **state)
{
    (void)state;
    static const event script[] = {
        {1.9, 3, LACI_TCP_ABORTED, 0, zero_was_silent, 0}, {.text = NULL}};
    scene c;
    open_scene(&c, 0);
    assert_named(
        &c, 1, script,
        "worker 1 was silent for 1.9 seconds in an exchange of worker 0");
    for (uint32_t peer = 1; peer < WORLD; peer++) {
        assert_sent(&c, peer, 1);
    }
    close_scene(&c);
}

static void a_third_worker_waits_for_the_answer(void **state)
{
    (void)state;
    static const event script[] = {
        {1.5, 3, LACI_TCP_ABORTED, 0, zero_was_silent, 0},
        {1.9, 0, LACI_TCP_ABORTED, 1, one_was_silent, 0},
        {.text = NULL}};
    scene c;
    open_scene(&c, 2);
    assert_named(&c, 1, script, zero_names_one);
    assert_sent(&c, 3, LAC_RANK_ANY);
    close_scene(&c);
}

static void the_order_of_arrival_does_not_matter(void **state)
{
    (void)state;
    static const event script[] = {
        {1.5, 0, LACI_TCP_ABORTED, 1, one_was_silent, 0},
        {1.5, 3, LACI_TCP_ABORTED, 0, zero_was_silent, 0},
        {.text = NULL}};
    assert_fails_with(2, 4, script, zero_names_one);
}

// Worker 3 gives up at its own deadline, before it hears of worker 0's.
static void an_accuser_believes_the_answer(void **state)
{
    (void)state;
    static const event script[] = {
        {DEADLINE + 0.4, 0, LACI_TCP_ABORTED, 1, one_was_silent, 0},
        {.text = NULL}};
    scene c;
    open_scene(&c, 3);
    assert_named(&c, 0, script, zero_names_one);
    assert_sent(&c, 0, 0);
    close_scene(&c);
}

// Worker 4 waits for 3, which waits for 0, which waits for 1.
static void suspicions_are_followed_to_their_end(void **state)
{
    (void)state;
    static const event script[] = {
        {1.5, 4, LACI_TCP_ABORTED, 3, "worker 3 was silent", 0},
        {1.6, 3, LACI_TCP_ABORTED, 0, zero_was_silent, 0},
        {1.7, 0, LACI_TCP_ABORTED, 1, one_was_silent, 0},
        {.text = NULL}};
    assert_fails_with(2, 4, script, zero_names_one);
}

// A suspect that has left because of another worker forwards why.
static void leaving_is_an_answer_too(void **state)
{
    (void)state;
    static const event script[] = {
        {1.5, 3, LACI_TCP_ABORTED, 0, zero_was_silent, 0},
        {1.6, 0, LACI_TCP_LEFT, 1, "worker 1 was silent", 4},
        {.text = NULL}};
    assert_fails_with(2, 1, script, "worker 4 aborted: worker 1 was silent");
}

static void a_suspect_that_does_not_answer_is_named_in_time(void **state)
{
    (void)state;
    static const event script[] = {{.text = NULL}};
    scene c;
    open_scene(&c, 3);
    assert_named(&c, 0, script, zero_was_silent);
    assert_true(c.clock < DEADLINE + 0.6);
    for (uint32_t peer = 0; peer < WORLD; peer++) {
        if (peer != 3) {
            assert_sent(&c, peer, 0);
        }
    }
    close_scene(&c);
}

// All have answered: the one who was suspected first is named.
static void a_circle_ends(void **state)
{
    (void)state;
    static const event script[] = {
        {1.5, 3, LACI_TCP_ABORTED, 0, zero_was_silent, 0},
        {1.6, 0, LACI_TCP_ABORTED, 4, "worker 4 was silent", 0},
        {1.7, 4, LACI_TCP_ABORTED, 3, "worker 3 was silent", 0},
        {.text = NULL}};
    scene c;
    open_scene(&c, 2);
    assert_named(
        &c, 1, script,
        "worker 3 aborted: worker 0 was silent for 2.0 seconds in an exchange "
        "of worker 3");
    assert_true(c.clock < 1.8);
    close_scene(&c);
}

// Neither does a member that keeps on accusing make a worker wait or send.
static void accusations_without_end_get_one_answer(void **state)
{
    (void)state;
    static const event script[] = {
        {1.5, 3, LACI_TCP_ABORTED, 0, "first", 0},
        {1.5, 3, LACI_TCP_ABORTED, 4, "second", 0},
        {1.7, 3, LACI_TCP_ABORTED, 0, "third", 0},
        {1.8, 4, LACI_TCP_ABORTED, 0, "fourth", 0},
        {1.9, 2, LACI_TCP_ABORTED, 77, "fifth", 0},
        {.text = NULL}};
    scene c;
    open_scene(&c, 0);
    assert_named(
        &c, 1, script,
        "worker 1 was silent for 1.5 seconds in an exchange of worker 0");
    assert_true(c.clock < 2.1);
    for (uint32_t peer = 1; peer < WORLD; peer++) {
        assert_sent(&c, peer, 1);
    }
    close_scene(&c);
}

// A member cannot make a worker accuse one that it has hardly waited for.
static void a_short_wait_accuses_nobody(void **state)
{
    (void)state;
    static const event script[] = {
        {0.5, 3, LACI_TCP_ABORTED, 0, zero_was_silent, 0}, {.text = NULL}};
    scene c;
    open_scene(&c, 0);
    assert_named(
        &c, 1, script,
        "worker 3 aborted: worker 0 was silent for 2.0 seconds in an exchange "
        "of worker 3");
    for (uint32_t peer = 1; peer < WORLD; peer++) {
        assert_sent(&c, peer, LAC_RANK_ANY);
    }
    close_scene(&c);
}

static void an_abort_without_a_suspect_counts_at_once(void **state)
{
    (void)state;
    static const event script[] = {
        {0.5, 3, LACI_TCP_ABORTED, LAC_RANK_ANY, "the disk is full", 0},
        {.text = NULL}};
    scene c;
    open_scene(&c, 0);
    assert_named(&c, 1, script, "worker 3 aborted: the disk is full");
    assert_true(c.clock < 0.6);
    close_scene(&c);
}

// Has worker 1 announce `len` bytes that no receive asks for, of which `got`
// are there, and one more arrives.
static void run_ahead(scene *c, uint64_t len, uint64_t got)
{
    laci_tcp_peer *const p = &c->s->peers[1];
    uint8_t head[LACI_TCP_HEAD] = {0};
    laci_put_u32(head + 4, TAG + 1);
    laci_put_u64(head + 8, len);
    assert_true(send(c->others[1], head, sizeof(head), 0) == sizeof(head));
    laci_tcp_pull(c->s, p);
    assert_non_null(p->arriving);
    p->arriving->got = got;
    assert_true(send(c->others[1], "x", 1, 0) == 1);
    laci_tcp_pull(c->s, p);
}

static void release_reserved(const scene *c)
{
    laci_tcp_message *const message = c->s->peers[1].arriving;
    (void)munmap(message->memory, message->cap);
    message->memory = NULL;
}

static void a_peer_that_is_far_ahead_is_not_read(void **state)
{
    (void)state;
    scene c;
    open_scene(&c, 0);
    laci_tcp_peer *const p = &c.s->peers[1];
    run_ahead(&c, 4 * GIB, LACI_TCP_AHEAD_BYTES);
    assert_int_equal(c.s->problem, LAC_OK);
    assert_true(c.s->maybe_ahead);
    laci_tcp_pause_those_ahead(c.s);
    assert_true(send(c.others[1], "x", 1, 0) == 1);
    laci_tcp_progress(c.s, 0);
    assert_int_equal(p->arriving->got, LACI_TCP_AHEAD_BYTES + 1);
    release_reserved(&c);
    close_scene(&c);
}

// A connection may be ahead before it is watched, while the group forms.
static void a_peer_that_is_far_ahead_is_watched_without_being_read(void **state)
{
    (void)state;
    scene c;
    open_scene(&c, 0);
    laci_tcp_peer *const p = &c.s->peers[1];
    laci_tcp_engine_close(c.s);
    p->watched = false;
    run_ahead(&c, 4 * GIB, LACI_TCP_AHEAD_BYTES);
    laci_tcp_pause_those_ahead(c.s);
    assert_ok(laci_tcp_engine_open(c.s));
    assert_true(laci_tcp_watch(c.s, p));
    assert_true(send(c.others[1], "x", 1, 0) == 1);
    laci_tcp_progress(c.s, 0);
    assert_int_equal(p->arriving->got, LACI_TCP_AHEAD_BYTES + 1);
    release_reserved(&c);
    close_scene(&c);
}

// While this worker waits for it, a peer is read: the message may follow.
static void one_message_to_another_tag_has_a_limit(void **state)
{
    (void)state;
    lac_receive receive = {.peer = 1, .tag = TAG};
    laci_tcp_message *claim = NULL;
    scene c;
    open_scene(&c, 0);
    c.s->receives = &receive;
    c.s->receive_count = 1;
    c.s->claims = &claim;
    run_ahead(&c, 4 * GIB, GIB - 1);
    assert_int_equal(c.s->problem, LAC_OK);
    assert_true(send(c.others[1], "x", 1, 0) == 1);
    laci_tcp_pull(c.s, &c.s->peers[1]);
    assert_int_equal(c.s->problem, LAC_ERR_PEER);
    assert_string_equal(
        c.s->problem_text, "worker 1 sent 1 messages with 1073741825 bytes "
                           "that worker 0 does not receive");
    c.s->claims = NULL;
    release_reserved(&c);
    close_scene(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_suspect_that_waits_names_whom_it_waits_for),
        cmocka_unit_test(a_third_worker_waits_for_the_answer),
        cmocka_unit_test(the_order_of_arrival_does_not_matter),
        cmocka_unit_test(an_accuser_believes_the_answer),
        cmocka_unit_test(suspicions_are_followed_to_their_end),
        cmocka_unit_test(leaving_is_an_answer_too),
        cmocka_unit_test(a_suspect_that_does_not_answer_is_named_in_time),
        cmocka_unit_test(a_circle_ends),
        cmocka_unit_test(accusations_without_end_get_one_answer),
        cmocka_unit_test(a_short_wait_accuses_nobody),
        cmocka_unit_test(an_abort_without_a_suspect_counts_at_once),
        cmocka_unit_test(a_peer_that_is_far_ahead_is_not_read),
        cmocka_unit_test(
            a_peer_that_is_far_ahead_is_watched_without_being_read),
        cmocka_unit_test(one_message_to_another_tag_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
