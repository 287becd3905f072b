// SPDX-License-Identifier: MIT
// The exchange of an MPI session: start all sends, poll until every receive has
// its message and the sends of the previous exchange are done, and deliver.
// Nothing here blocks inside MPI, so the deadline holds when a peer is stopped
// or dead.
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "transport/mpi/session.h"

enum {
    EAGER_POLLS = 64,
    CROWDED_POLLS = 16, // EAGER_POLLS of a crowded machine
    POLLS_PER_CHECK = 8,
    SLEEP_NANOSECONDS = 100000,
    CROWDED_NANOSECONDS = 1000, // in fact those of the timer, 50 us
};

// After this long without progress, polling sleeps instead of yielding. A
// process that yields on a crowded machine gets the processor back when all
// others had their turn, 10 ms later if they compute; one that sleeps gets it
// as soon as it wakes up.
#define SLEEP_AFTER_SECONDS 2e-3

void laci_mpi_backoff(laci_mpi_session *s, double now)
{
    if (s->idle_since == 0) {
        s->idle_since = now;
        s->idle_polls = 0;
    }
    if (++s->idle_polls < (s->crowded ? CROWDED_POLLS : EAGER_POLLS)) {
        return;
    }
    const bool early = now - s->idle_since < SLEEP_AFTER_SECONDS;
    if (early && !s->crowded) {
        (void)sched_yield();
        return;
    }
    const struct timespec pause = {
        .tv_nsec = early ? CROWDED_NANOSECONDS : SLEEP_NANOSECONDS};
    (void)nanosleep(&pause, NULL);
}

static lac_status reserve_claims(laci_mpi_session *s, size_t count)
{
    if (count > s->claim_cap) {
        const size_t cap = count + count / 2 + 4;
        laci_mpi_message **const claims =
            cap > SIZE_MAX / sizeof(*claims)
                ? NULL
                : s->services->zalloc(cap * sizeof(*claims));
        if (claims == NULL) {
            return s->services->fail(
                LAC_ERR_NOMEM, "mpi: no memory for %zu receives", count);
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

static void end_loans(laci_mpi_session *s)
{
    while (s->lent != NULL) {
        laci_mpi_message *const message = s->lent;
        s->lent = message->next;
        laci_mpi_recycle(s, message);
    }
}

static lac_status start_messages(
    laci_mpi_session *s, const lac_send *sends, size_t send_count)
{
    s->parity = !s->parity;
    for (size_t i = 0; i < send_count; i++) {
        if (s->peers[sends[i].peer].left) {
            LAC_TRY(laci_mpi_check_causes(s));
            return s->services->fail(
                LAC_ERR_PEER, "worker %u has left, but worker %u sends to it",
                sends[i].peer, s->rank);
        }
        LAC_TRY(laci_mpi_send(s, LACI_MPI_DATA, &sends[i]));
    }
    for (size_t i = 0; i < s->receive_count; i++) {
        LAC_TRY(laci_mpi_claim(s, i));
    }
    return LAC_OK;
}

// Fails if a worker has left without sending an expected message. Otherwise
// sets `*silent_out` to a worker that this exchange waits for.
static lac_status check_silent(laci_mpi_session *s, uint32_t *silent_out)
{
    bool found = false;
    for (size_t i = 0; i < s->receive_count; i++) {
        const laci_mpi_message *const message = s->claims[i];
        const uint32_t peer = s->receives[i].peer;
        if (message != NULL && message->request_count == 0) {
            continue;
        }
        if (message == NULL && s->peers[peer].left) {
            return s->services->fail(
                LAC_ERR_PEER,
                "worker %u has left, but worker %u waits for its message", peer,
                s->rank);
        }
        *silent_out = found ? *silent_out : peer;
        found = true;
    }
    if (s->header != NULL) {
        *silent_out = s->header->peer;
    }
    return LAC_OK;
}

static lac_status check_wait(laci_mpi_session *s, double now, double deadline)
{
    uint32_t silent = s->rank;
    char reason[LACI_MPI_WHY];
    LAC_TRY(laci_mpi_check_causes(s));
    LAC_TRY(check_silent(s, &silent));
    LAC_TRY(laci_mpi_check_processes(s, now, now >= deadline));
    if (now < deadline) {
        return LAC_OK;
    }
    if (s->missing > 0) {
        (void)snprintf(
            reason, sizeof(reason),
            "worker %u was silent for %.1f seconds in an exchange of worker %u",
            silent, now - s->entered, s->rank);
        return laci_mpi_suspect(s, silent, reason);
    }
    const uint32_t holder = s->sent[!s->parity]->peer;
    (void)snprintf(
        reason, sizeof(reason),
        "worker %u was silent for %.1f seconds and did not take a message of "
        "worker %u",
        holder, now - s->entered, s->rank);
    return laci_mpi_suspect(s, holder, reason);
}

// Reading the clock takes as long as a poll, so the first polls read it only
// every few times. A message that is about to arrive is then received sooner.
static bool skips_clock(laci_mpi_session *s)
{
    if (s->idle_since == 0 || s->idle_polls + 1 >= EAGER_POLLS) {
        return false;
    }
    s->idle_polls++;
    return s->idle_polls % POLLS_PER_CHECK != 0;
}

static lac_status exchange_await(laci_mpi_session *s, double deadline)
{
    for (;;) {
        LAC_TRY(laci_mpi_progress(s));
        LAC_TRY(laci_mpi_collect_sent(s, !s->parity));
        if (s->missing == 0 && s->sent[!s->parity] == NULL) {
            return LAC_OK;
        }
        if (skips_clock(s)) {
            continue;
        }
        const double now = s->services->now();
        s->entered = s->entered == 0 ? now : s->entered;
        LAC_TRY(check_wait(s, now, deadline));
        laci_mpi_backoff(s, now);
    }
}

static void deliver_messages(laci_mpi_session *s)
{
    for (size_t i = 0; i < s->receive_count; i++) {
        laci_mpi_message *const message = s->claims[i];
        lac_receive *const receive = &s->receives[i];
        receive->len = message->len;
        if (receive->buffer == NULL) {
            receive->data = message->payload;
            message->next = s->lent;
            s->lent = message;
            continue;
        }
        if (message->len > 0) {
            memcpy(receive->buffer, message->payload, message->len);
        }
        receive->data = receive->buffer;
        laci_mpi_recycle(s, message);
    }
}

lac_status laci_mpi_exchange(
    laci_mpi_session *s, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline)
{
    s->entered = 0;
    s->process_check_at = 0;
    s->idle_since = 0;
    end_loans(s);
    if (atomic_load(&s->aborted)) {
        return laci_mpi_check_causes(s);
    }
    LAC_TRY(reserve_claims(s, receive_count));
    s->receives = receives;
    s->receive_count = receive_count;
    s->missing = receive_count;
    lac_status status = start_messages(s, sends, send_count);
    if (status == LAC_OK) {
        status = exchange_await(s, deadline);
    }
    if (status == LAC_OK) {
        deliver_messages(s);
        status = laci_mpi_collect_sent(s, s->parity);
    }
    s->receives = NULL;
    s->receive_count = 0;
    return status;
}
