// SPDX-License-Identifier: MIT
// The exchange of a session: queue all sends, drive the connections until every
// receive has its message and the sends of the previous exchange are out, and
// deliver.
#define _GNU_SOURCE
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "transport/tcp/session.h"

// A message that is about to arrive is found sooner by polling than by sleep.
#define SPIN_SECONDS 50e-6

// A worker that is suspected answers only if it has waited for so long, or for
// half of what its exchange allows. Before that it may be slow itself, and a
// member must not make it accuse the healthy.
#define LONG_WAIT_SECONDS 30.0

// Polls between two looks at the clock, and between two at other threads.
enum { POLLS_PER_CHECK = 8, POLLS_PER_YIELD = 64, SLEEP_MS = 50 };

// The progress of a wait.
typedef struct wait {
    double deadline;
    double entered;    // when this exchange first had to wait; 0: not yet
    double idle_since; // 0: something has just moved
    unsigned polls;
} wait;

static lac_status tcp_reserve_claims(laci_tcp_session *s, size_t count)
{
    if (count > s->claim_cap) {
        const size_t cap = count + count / 2 + 4;
        laci_tcp_message **const claims =
            cap > SIZE_MAX / sizeof(*claims)
                ? NULL
                : s->services->zalloc(cap * sizeof(*claims));
        if (claims == NULL) {
            return s->services->fail(
                LAC_ERR_NOMEM, "tcp: no memory for %zu receives", count);
        }
        s->services->free(s->claims);
        s->claims = claims;
        s->claim_cap = cap;
    }
    if (count > 0) {
        memset(s->claims, 0, count * sizeof(*s->claims));
    }
    return LAC_OK;
}

static void tcp_end_loans(laci_tcp_session *s)
{
    while (s->lent != NULL) {
        laci_tcp_message *const message = s->lent;
        s->lent = message->next;
        laci_tcp_recycle(s, message);
    }
}

static lac_status tcp_start_messages(
    laci_tcp_session *s, const lac_send *sends, size_t send_count)
{
    s->parity = !s->parity;
    for (size_t i = 0; i < send_count; i++) {
        const lac_send *const send = &sends[i];
        if (s->peers[send->peer].left) {
            LAC_TRY(laci_tcp_settle(s));
            return s->services->fail(
                LAC_ERR_PEER, "worker %u has left, but worker %u sends to it",
                send->peer, s->rank);
        }
        const laci_tcp_head head = {
            .kind = LACI_TCP_DATA, .tag = send->tag, .len = send->len};
        if (head.len > LACI_TCP_MESSAGE_MAX) {
            return s->services->fail(
                LAC_ERR_INVALID,
                "tcp: a send of %zu bytes to worker %u, expected at most 64 "
                "GiB",
                send->len, send->peer);
        }
        LAC_TRY(laci_tcp_post(s, send->peer, &head, send->data));
    }
    for (size_t i = 0; i < s->receive_count; i++) {
        laci_tcp_claim(s, i);
    }
    if (s->maybe_ahead) {
        laci_tcp_pause_those_ahead(s);
    }
    return LAC_OK;
}

// Fails if a worker has left without sending an expected message.
static lac_status tcp_check_left(const laci_tcp_session *s)
{
    for (size_t i = 0; i < s->receive_count; i++) {
        const uint32_t peer = s->receives[i].peer;
        if (s->claims[i] == NULL && s->peers[peer].left) {
            return s->services->fail(
                LAC_ERR_PEER,
                "worker %u has left, but worker %u waits for its message", peer,
                s->rank);
        }
    }
    return LAC_OK;
}

// Returns a worker that this exchange waits for a message of: if possible one
// that has not shown that it is alive.
static uint32_t tcp_find_silent(const laci_tcp_session *s)
{
    uint32_t silent = s->rank;
    for (size_t i = 0; i < s->receive_count; i++) {
        const laci_tcp_message *const message = s->claims[i];
        const uint32_t peer = s->receives[i].peer;
        if (message != NULL && message->got == message->head.len) {
            continue;
        }
        if (!s->peers[peer].word.given && !s->peers[peer].left) {
            return peer;
        }
        silent = silent == s->rank ? peer : silent;
    }
    return silent;
}

// Returns a worker that has not taken a message of the last exchange.
static uint32_t tcp_find_holder(const laci_tcp_session *s)
{
    for (uint32_t peer = 0; peer < s->world; peer++) {
        const laci_tcp_outgoing *const out = s->peers[peer].first_out;
        if (out != NULL && out->borrowed && out->parity != s->parity) {
            return peer;
        }
    }
    return s->rank;
}

// Tells the others whom this exchange waits for.
static void tcp_accuse_silent(laci_tcp_session *s, const wait *w, double now)
{
    const uint32_t peer =
        s->missing > 0 ? tcp_find_silent(s) : tcp_find_holder(s);
    char reason[LACI_TCP_WHY];
    (void)snprintf(
        reason, sizeof(reason),
        s->missing > 0
            ? "worker %u was silent for %.1f seconds in an exchange of worker "
              "%u"
            : "worker %u was silent for %.1f seconds and did not take a "
              "message of worker %u",
        peer, now - w->entered, s->rank);
    laci_tcp_accuse(s, peer, reason);
}

// Whether this worker is suspected, has not said yet why it waits itself, and
// has waited for long.
static bool must_answer(const laci_tcp_session *s, const wait *w, double now)
{
    const double half = (w->deadline - w->entered) / 2;
    return s->accused && !s->announced && !atomic_load(&s->aborted) &&
           now - w->entered >= fmin(half, LONG_WAIT_SECONDS);
}

static lac_status tcp_check_wait(laci_tcp_session *s, const wait *w, double now)
{
    if (must_answer(s, w, now)) {
        tcp_accuse_silent(s, w, now);
    }
    LAC_TRY(laci_tcp_check_causes(s));
    if (s->cause != NULL) {
        return LAC_OK; // a suspect may still answer
    }
    LAC_TRY(tcp_check_left(s));
    if (now >= w->deadline) {
        tcp_accuse_silent(s, w, now);
    }
    return LAC_OK;
}

// A worker that has given up does not go on, even if what it waited for comes.
static bool exchange_done(const laci_tcp_session *s)
{
    return s->missing == 0 && s->pending[!s->parity] == 0 && !s->announced;
}

// Milliseconds that the next poll may sleep.
static int sleep_ms(const laci_tcp_session *s, const wait *w, double now)
{
    if (w->idle_since == 0 || now - w->idle_since < SPIN_SECONDS ||
        s->problem != LAC_OK) {
        return 0;
    }
    const double left = (w->deadline - now) * 1e3;
    return left < SLEEP_MS ? (int)fmax(left, 0) + 1 : SLEEP_MS;
}

// Reading the clock takes as long as a poll: it is read every few polls.
static lac_status tcp_exchange_await(laci_tcp_session *s, double deadline)
{
    wait w = {.deadline = deadline};
    int pause = 0;
    while (!exchange_done(s)) {
        const uint64_t before = s->moved;
        laci_tcp_progress(s, pause);
        if (exchange_done(s)) {
            break;
        }
        if (s->moved != before) {
            w.idle_since = 0;
        }
        if (pause == 0 && ++w.polls % POLLS_PER_CHECK != 0 &&
            s->problem == LAC_OK) {
            continue;
        }
        const double now = s->services->now();
        w.entered = w.entered == 0 ? now : w.entered;
        w.idle_since = w.idle_since == 0 ? now : w.idle_since;
        LAC_TRY(tcp_check_wait(s, &w, now));
        pause = sleep_ms(s, &w, now);
        if (pause == 0 && w.polls % POLLS_PER_YIELD == 0) {
            (void)sched_yield();
        }
    }
    return LAC_OK;
}

static void tcp_deliver_messages(laci_tcp_session *s)
{
    for (size_t i = 0; i < s->receive_count; i++) {
        laci_tcp_message *const message = s->claims[i];
        lac_receive *const receive = &s->receives[i];
        receive->len = (size_t)message->head.len;
        if (receive->buffer == NULL) {
            receive->data =
                receive->len > 0 ? message->payload : (const void *)"";
            message->next = s->lent;
            s->lent = message;
            continue;
        }
        if (message->payload != receive->buffer && receive->len > 0) {
            memcpy(receive->buffer, message->payload, receive->len);
        }
        receive->data = receive->buffer;
        laci_tcp_recycle(s, message);
    }
}

static lac_status exchange_run(
    laci_tcp_session *s, const lac_send *sends, size_t send_count,
    double deadline)
{
    if (atomic_load(&s->aborted)) {
        return laci_tcp_check_causes(s);
    }
    LAC_TRY(tcp_reserve_claims(s, s->receive_count));
    s->missing = s->receive_count;
    LAC_TRY(tcp_start_messages(s, sends, send_count));
    LAC_TRY(tcp_exchange_await(s, deadline));
    tcp_deliver_messages(s);
    return LAC_OK;
}

lac_status laci_tcp_exchange(
    void *state, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline)
{
    laci_tcp_session *const s = state;
    laci_tcp_take(s);
    tcp_end_loans(s);
    s->receives = receives;
    s->receive_count = receive_count;
    s->allowed = fmax(s->allowed, deadline - s->services->now());
    const lac_status status = exchange_run(s, sends, send_count, deadline);
    s->receives = NULL;
    s->receive_count = 0;
    laci_tcp_give(s);
    return status;
}
