// SPDX-License-Identifier: MIT
// Duties that end a group: refusals, silence, leaving and giving up. In each,
// the last worker misbehaves and the others must say so, in time.
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "worker.h"

static bool says(const char *part)
{
    return strstr(lac_error_message(), part) != NULL;
}

static bool is_last(const worker *w)
{
    return w->rank == w->world - 1;
}

static lac_status receive_from(
    worker *w, uint32_t peer, uint32_t tag, double seconds)
{
    lac_receive wish = {.peer = peer, .tag = tag};
    return lac_transport_exchange(w->t, NULL, 0, &wish, 1, soon(w, seconds));
}

static void refuse_messages_to_oneself(worker *w)
{
    const lac_send send = {w->rank, 0, "a", 1};
    char expected[100];
    REQUIRE(
        w, lac_transport_exchange(w->t, &send, 1, NULL, 0, soon(w, 9)) ==
               LAC_ERR_INVALID);
    (void)snprintf(
        expected, sizeof(expected), "names worker %u, which is this one",
        w->rank);
    REQUIRE(w, says(expected));
    REQUIRE(w, lac_transport_failed(w->t));
    REQUIRE(
        w, lac_transport_exchange(w->t, NULL, 0, NULL, 0, soon(w, 9)) ==
               LAC_ERR_INVALID);
    REQUIRE(w, says(expected));
}

static void refuse_strangers(worker *w)
{
    REQUIRE(w, receive_from(w, w->world, 0, 9) == LAC_ERR_INVALID);
    REQUIRE(w, says("expected one below"));
}

// The message is too long for worker 0's buffer by one byte, and nothing is
// written there.
static void overfill(worker *w, size_t len)
{
    static const uint8_t zeros[8000];
    uint8_t buffer[8000];
    if (w->world == 1) {
        return;
    }
    if (is_last(w)) {
        const lac_send send = {0, 5, zeros, len};
        REQUIRE(
            w, lac_transport_exchange(w->t, &send, 1, NULL, 0, soon(w, 9)) ==
                   LAC_OK);
    } else if (w->rank == 0) {
        memset(buffer, 7, sizeof(buffer));
        lac_receive wish = {
            .peer = w->world - 1, .tag = 5, .buffer = buffer, .cap = len - 1};
        REQUIRE(
            w, lac_transport_exchange(
                   w->t, NULL, 0, &wish, 1, soon(w, LONG_SECONDS)) ==
                   LAC_ERR_SPACE);
        REQUIRE(w, buffer[0] == 7 && buffer[len - 2] == 7);
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

// The last worker sends nothing, but stays. It hears that the others gave up.
static void name_the_silent(worker *w)
{
    const double begun = lac_transport_now(w->t);
    char expected[100];
    if (w->world == 1) {
        return;
    }
    (void)snprintf(
        expected, sizeof(expected), "worker %u was silent for 0.",
        w->world - 1);
    const lac_status status = is_last(w)
                                  ? receive_from(w, 0, 1, LONG_SECONDS)
                                  : receive_from(w, w->world - 1, 1, 0.3);
    REQUIRE(w, status == LAC_ERR_PEER);
    REQUIRE(w, says(expected));
    REQUIRE(w, !is_last(w) || says("gave up: "));
    REQUIRE(w, lac_transport_now(w->t) - begun < LONG_SECONDS / 2);
}

// What the last worker sent before it left still arrives.
static void notice_who_left(worker *w)
{
    const double begun = lac_transport_now(w->t);
    lac_send sends[WORLD_MAX];
    char expected[100];
    for (uint32_t i = 0; i + 1 < w->world; i++) {
        sends[i] = (lac_send){i, 1, "bye", 3};
    }
    if (is_last(w)) {
        REQUIRE(
            w, lac_transport_exchange(
                   w->t, sends, w->world - 1, NULL, 0, soon(w, 9)) == LAC_OK);
        return;
    }
    (void)snprintf(
        expected, sizeof(expected), "worker %u has left", w->world - 1);
    lac_receive wish = {.peer = w->world - 1, .tag = 1};
    REQUIRE(
        w, lac_transport_exchange(
               w->t, NULL, 0, &wish, 1, soon(w, LONG_SECONDS)) == LAC_OK);
    REQUIRE(w, wish.len == 3 && memcmp(wish.data, "bye", 3) == 0);
    REQUIRE(w, receive_from(w, w->world - 1, 2, LONG_SECONDS) == LAC_ERR_PEER);
    REQUIRE(w, says(expected) || says("gave up: "));
    REQUIRE(w, lac_transport_now(w->t) - begun < LONG_SECONDS / 2);
}

static void notice_who_gave_up(worker *w)
{
    const double begun = lac_transport_now(w->t);
    char expected[100];
    if (is_last(w)) {
        lac_transport_abort(w->t, "the disk is full");
        REQUIRE(
            w, lac_transport_exchange(w->t, NULL, 0, NULL, 0, soon(w, 9)) ==
                   LAC_ERR_PEER);
        REQUIRE(w, strcmp(lac_error_message(), "the disk is full") == 0);
        return;
    }
    (void)snprintf(
        expected, sizeof(expected), "worker %u gave up: the disk is full",
        w->world - 1);
    REQUIRE(w, receive_from(w, w->world - 1, 2, LONG_SECONDS) == LAC_ERR_PEER);
    REQUIRE(w, strcmp(lac_error_message(), expected) == 0);
    REQUIRE(w, lac_transport_now(w->t) - begun < LONG_SECONDS / 2);
}

static void *abort_elsewhere(void *t)
{
    lac_transport_abort(t, "enough");
    return NULL;
}

// Every worker waits for another that never sends; one is told to stop by a
// thread of its own, and that ends the waiting of all.
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
        receive_from(w, (w->rank + 1) % w->world, 3, LONG_SECONDS);
    if (w->rank == 0) {
        (void)pthread_join(thread, NULL);
    }
    REQUIRE(w, status == LAC_ERR_PEER);
    REQUIRE(w, says("enough"));
    REQUIRE(w, lac_transport_now(w->t) - begun < LONG_SECONDS / 2);
}

const duty fatal_duties[] = {
    {"refuse_messages_to_oneself", refuse_messages_to_oneself},
    {"refuse_strangers", refuse_strangers},
    {"report_a_buffer_too_small", report_a_buffer_too_small},
    {"report_a_large_buffer_too_small", report_a_large_buffer_too_small},
    {"name_the_silent", name_the_silent},
    {"notice_who_left", notice_who_left},
    {"notice_who_gave_up", notice_who_gave_up},
    {"be_aborted_by_any_thread", be_aborted_by_any_thread},
    {NULL, NULL},
};
