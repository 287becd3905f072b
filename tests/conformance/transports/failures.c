// SPDX-License-Identifier: MIT
// Duties that end a group: invalid arguments, silence, leaving and aborting. In
// each, the last worker misbehaves and the others must report it.
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "transport/transport.h"
#include "worker.h"

static bool error_contains(const char *part)
{
    return strstr(lac_error_message(), part) != NULL;
}

static bool is_last(const worker *w)
{
    return w->rank == w->world - 1;
}

static lac_status await_from(
    worker *w, uint32_t peer, uint32_t tag, double seconds)
{
    lac_receive receive = {.peer = peer, .tag = tag};
    return lac_transport_exchange(w->t, NULL, 0, &receive, 1, soon(w, seconds));
}

static void reject_messages_to_oneself(worker *w)
{
    const lac_send send = {.peer = w->rank, .data = "a", .len = 1};
    char expected[100];
    REQUIRE(
        w,
        lac_transport_exchange(
            w->t, &send, 1, NULL, 0, soon(w, LONG_SECONDS)) == LAC_ERR_INVALID);
    (void)snprintf(
        expected, sizeof(expected), "names worker %u, which is this one",
        w->rank);
    REQUIRE(w, error_contains(expected));
    REQUIRE(w, lac_transport_failed(w->t));
    REQUIRE(
        w,
        lac_transport_exchange(w->t, NULL, 0, NULL, 0, soon(w, LONG_SECONDS)) ==
            LAC_ERR_INVALID);
    REQUIRE(w, error_contains(expected));
}

static void reject_unknown_workers(worker *w)
{
    REQUIRE(w, await_from(w, w->world, 0, LONG_SECONDS) == LAC_ERR_INVALID);
    REQUIRE(w, error_contains("expected one below"));
}

// Sends worker 0 a message that is one byte too long for its buffer. Nothing is
// written there.
static void overfill(worker *w, size_t len)
{
    static const uint8_t zeros[8000];
    uint8_t buffer[8000];
    if (w->world == 1) {
        return;
    }
    if (is_last(w)) {
        const lac_send send = {.peer = 0, .tag = 5, .data = zeros, .len = len};
        REQUIRE(
            w, lac_transport_exchange(
                   w->t, &send, 1, NULL, 0, soon(w, LONG_SECONDS)) == LAC_OK);
    } else if (w->rank == 0) {
        memset(buffer, 7, sizeof(buffer));
        lac_receive receive = {
            .peer = w->world - 1, .tag = 5, .buffer = buffer, .cap = len - 1};
        REQUIRE(
            w, lac_transport_exchange(
                   w->t, NULL, 0, &receive, 1, soon(w, LONG_SECONDS)) ==
                   LAC_ERR_SPACE);
        REQUIRE(w, buffer[0] == 7 && buffer[len - 2] == 7);
    }
}

// The same for a receive without a buffer, which limits what it accepts.
static void refuse_a_message_above_the_limit(worker *w)
{
    static const uint8_t zeros[8000];
    if (w->world == 1) {
        return;
    }
    if (is_last(w)) {
        const lac_send send = {
            .peer = 0, .tag = 5, .data = zeros, .len = sizeof(zeros)};
        REQUIRE(
            w, lac_transport_exchange(
                   w->t, &send, 1, NULL, 0, soon(w, LONG_SECONDS)) == LAC_OK);
    } else if (w->rank == 0) {
        lac_receive receive = {
            .peer = w->world - 1, .tag = 5, .cap = sizeof(zeros) - 1};
        REQUIRE(
            w, lac_transport_exchange(
                   w->t, NULL, 0, &receive, 1, soon(w, LONG_SECONDS)) ==
                   LAC_ERR_SPACE);
        REQUIRE(w, error_contains("has 8000 bytes"));
    }
}

static void report_a_buffer_too_small(worker *w)
{
    overfill(w, 10);
}

static void report_a_large_buffer_too_small(worker *w)
{
    overfill(w, 8000);
}

// The last worker sends nothing, but stays. It receives the others' aborts.
static void name_the_silent_worker(worker *w)
{
    const double begun = lac_transport_now(w->t);
    char expected[100];
    if (w->world == 1) {
        return;
    }
    (void)snprintf(
        expected, sizeof(expected), "worker %u was silent for ", w->world - 1);
    const lac_status status =
        is_last(w) ? await_from(w, 0, 1, LONG_SECONDS)
                   : await_from(w, w->world - 1, 1, SHORT_SECONDS);
    REQUIRE(w, status == LAC_ERR_PEER);
    REQUIRE(w, error_contains(expected));
    REQUIRE(w, !is_last(w) || error_contains("aborted: "));
    REQUIRE(w, lac_transport_now(w->t) - begun < LONG_SECONDS);
}

// The messages that the last worker sent before it left still arrive.
static void report_who_left(worker *w)
{
    const double begun = lac_transport_now(w->t);
    lac_send sends[WORLD_MAX];
    char expected[100];
    for (uint32_t i = 0; i + 1 < w->world; i++) {
        sends[i] = (lac_send){.peer = i, .tag = 1, .data = "bye", .len = 3};
    }
    if (is_last(w)) {
        REQUIRE(
            w, lac_transport_exchange(
                   w->t, sends, w->world - 1, NULL, 0, soon(w, LONG_SECONDS)) ==
                   LAC_OK);
        return;
    }
    (void)snprintf(
        expected, sizeof(expected), "worker %u has left", w->world - 1);
    lac_receive receive = {.peer = w->world - 1, .tag = 1};
    REQUIRE(
        w, lac_transport_exchange(
               w->t, NULL, 0, &receive, 1, soon(w, LONG_SECONDS)) == LAC_OK);
    REQUIRE(w, receive.len == 3 && memcmp(receive.data, "bye", 3) == 0);
    REQUIRE(w, await_from(w, w->world - 1, 2, LONG_SECONDS) == LAC_ERR_PEER);
    REQUIRE(w, error_contains(expected) || error_contains("aborted: "));
    REQUIRE(w, lac_transport_now(w->t) - begun < LONG_SECONDS);
}

static void report_an_abort(worker *w)
{
    const double begun = lac_transport_now(w->t);
    char expected[100];
    if (is_last(w)) {
        lac_transport_abort(w->t, "the disk is full");
        REQUIRE(
            w,
            lac_transport_exchange(
                w->t, NULL, 0, NULL, 0, soon(w, LONG_SECONDS)) == LAC_ERR_PEER);
        REQUIRE(w, strcmp(lac_error_message(), "the disk is full") == 0);
        return;
    }
    (void)snprintf(
        expected, sizeof(expected), "worker %u aborted: the disk is full",
        w->world - 1);
    REQUIRE(w, await_from(w, w->world - 1, 2, LONG_SECONDS) == LAC_ERR_PEER);
    REQUIRE(w, strcmp(lac_error_message(), expected) == 0);
    REQUIRE(w, lac_transport_now(w->t) - begun < LONG_SECONDS);
}

static void *abort_elsewhere(void *t)
{
    lac_transport_abort(t, "enough");
    return NULL;
}

// Every worker waits for another that never sends. Another thread aborts one of
// them, which ends the exchanges of all.
static void be_aborted_by_any_thread(worker *w)
{
    const double begun = lac_transport_now(w->t);
    pthread_t thread;
    if (w->world == 1) {
        return;
    }
    if (w->rank == 0) {
        REQUIRE(w, pthread_create(&thread, NULL, abort_elsewhere, w->t) == 0);
    }
    const lac_status status =
        await_from(w, (w->rank + 1) % w->world, 3, LONG_SECONDS);
    if (w->rank == 0) {
        (void)pthread_join(thread, NULL);
    }
    REQUIRE(w, status == LAC_ERR_PEER);
    REQUIRE(w, error_contains("enough"));
    REQUIRE(w, lac_transport_now(w->t) - begun < LONG_SECONDS);
}

// Another thread aborts the last worker, which is in no exchange and leaves.
static void report_an_abort_before_leaving(worker *w)
{
    pthread_t thread;
    if (is_last(w)) {
        REQUIRE(w, pthread_create(&thread, NULL, abort_elsewhere, w->t) == 0);
        REQUIRE(w, pthread_join(thread, NULL) == 0);
        return;
    }
    REQUIRE(w, await_from(w, w->world - 1, 2, LONG_SECONDS) == LAC_ERR_PEER);
    REQUIRE(w, error_contains("aborted: enough"));
}

// Runs a native sum that the last worker does not take part in, and returns
// its status. Processes never release the memory: MPI may still write to it.
static lac_status sum_without_last(worker *w, double seconds)
{
    enum { N = 5000 };
    w->pending = calloc(N, sizeof(*w->pending));
    return laci_transport_allreduce(w->t, w->pending, N, soon(w, seconds));
}

static void end_a_sum_at_its_deadline(worker *w)
{
    if (w->world == 1 || !laci_transport_has_allreduce(w->t)) {
        return;
    }
    const lac_status status = is_last(w) ? await_from(w, 0, 1, LONG_SECONDS)
                                         : sum_without_last(w, SHORT_SECONDS);
    REQUIRE(w, status == LAC_ERR_PEER);
    REQUIRE(w, error_contains("was not done after "));
}

static void end_a_sum_by_an_abort(worker *w)
{
    if (w->world == 1 || !laci_transport_has_allreduce(w->t)) {
        return;
    }
    if (is_last(w)) {
        lac_transport_abort(w->t, "the disk is full");
        return;
    }
    REQUIRE(w, sum_without_last(w, LONG_SECONDS) == LAC_ERR_PEER);
    REQUIRE(w, error_contains("aborted: the disk is full"));
}

const duty fatal_duties[] = {
    {"reject_messages_to_oneself", reject_messages_to_oneself},
    {"reject_unknown_workers", reject_unknown_workers},
    {"report_a_buffer_too_small", report_a_buffer_too_small},
    {"report_a_large_buffer_too_small", report_a_large_buffer_too_small},
    {"refuse_a_message_above_the_limit", refuse_a_message_above_the_limit},
    {"name_the_silent_worker", name_the_silent_worker},
    {"report_who_left", report_who_left},
    {"report_an_abort", report_an_abort},
    {"be_aborted_by_any_thread", be_aborted_by_any_thread},
    {"report_an_abort_before_leaving", report_an_abort_before_leaving},
    {"end_a_sum_at_its_deadline", end_a_sum_at_its_deadline},
    {"end_a_sum_by_an_abort", end_a_sum_by_an_abort},
    {NULL, NULL},
};
