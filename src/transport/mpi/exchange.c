// SPDX-License-Identifier: MIT
// The exchange of an MPI session: post, poll until all has come and all that
// the exchange before sent has gone, hand over. Nothing here blocks inside
// MPI, so a peer that is stopped or dead is noticed at the deadline.
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "transport/mpi/session.h"

enum { EAGER_POLLS = 64, POLLS_A_LOOK = 8, NAP_NANOSECONDS = 100000 };

// After this long without news, polling sleeps instead of yielding.
#define NAP_AFTER_SECONDS 2e-3

void laci_mpi_rest(laci_mpi_session *s, double now)
{
    if (s->idle_since == 0) {
        s->idle_since = now;
        s->idle_polls = 0;
    }
    if (++s->idle_polls < EAGER_POLLS) {
        return;
    }
    if (now - s->idle_since < NAP_AFTER_SECONDS) {
        (void)sched_yield();
    } else {
        const struct timespec nap = {.tv_nsec = NAP_NANOSECONDS};
        (void)nanosleep(&nap, NULL);
    }
}

static lac_status reserve_claims(laci_mpi_session *s, size_t count)
{
    if (count > s->claim_cap) {
        const size_t cap = count + count / 2 + 4;
        laci_mpi_letter **const claims =
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
        laci_mpi_letter *const letter = s->lent;
        s->lent = letter->next;
        laci_mpi_recycle(s, letter);
    }
}

static lac_status begin(
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
        LAC_TRY(laci_mpi_post(s, LACI_MPI_DATA, &sends[i]));
    }
    for (size_t i = 0; i < s->receive_count; i++) {
        LAC_TRY(laci_mpi_claim(s, i));
    }
    return LAC_OK;
}

// Looks at the receives that nothing has come for: fails for one whose sender
// has left, and says whose silence lasts.
static lac_status check_silent(laci_mpi_session *s, uint32_t *silent_out)
{
    bool found = false;
    for (size_t i = 0; i < s->receive_count; i++) {
        const laci_mpi_letter *const letter = s->claims[i];
        const uint32_t peer = s->receives[i].peer;
        if (letter != NULL && letter->request_count == 0) {
            continue;
        }
        if (letter == NULL && s->peers[peer].left) {
            return s->services->fail(
                LAC_ERR_PEER,
                "worker %u has left, but worker %u waits for its message", peer,
                s->rank);
        }
        *silent_out = found ? *silent_out : peer;
        found = true;
    }
    if (s->opening != NULL) {
        *silent_out = s->opening->peer;
    }
    return LAC_OK;
}

static lac_status check_wait(laci_mpi_session *s, double now, double deadline)
{
    uint32_t silent = s->rank;
    char sentence[LACI_MPI_WHY];
    LAC_TRY(laci_mpi_check_causes(s));
    LAC_TRY(check_silent(s, &silent));
    if (now < deadline) {
        return LAC_OK;
    }
    if (s->missing > 0) {
        (void)snprintf(
            sentence, sizeof(sentence),
            "worker %u was silent for %.1f seconds in an exchange of worker %u",
            silent, now - s->entered, s->rank);
        return laci_mpi_blame(s, silent, sentence);
    }
    const uint32_t holder = s->sent[!s->parity]->peer;
    (void)snprintf(
        sentence, sizeof(sentence),
        "worker %u was silent for %.1f seconds and did not take a message of "
        "worker %u",
        holder, now - s->entered, s->rank);
    return laci_mpi_blame(s, holder, sentence);
}

// Looking at the clock takes as long as polling does, so at first it is done
// after every few polls only: a message that is on its way arrives sooner.
static bool looks_later(laci_mpi_session *s)
{
    if (s->idle_since == 0 || s->idle_polls + 1 >= EAGER_POLLS) {
        return false;
    }
    s->idle_polls++;
    return s->idle_polls % POLLS_A_LOOK != 0;
}

static lac_status await(laci_mpi_session *s, double deadline)
{
    for (;;) {
        LAC_TRY(laci_mpi_progress(s));
        LAC_TRY(laci_mpi_reap(s, !s->parity));
        if (s->missing == 0 && s->sent[!s->parity] == NULL) {
            return LAC_OK;
        }
        if (looks_later(s)) {
            continue;
        }
        const double now = s->services->now();
        s->entered = s->entered == 0 ? now : s->entered;
        LAC_TRY(check_wait(s, now, deadline));
        laci_mpi_rest(s, now);
    }
}

static void deliver(laci_mpi_session *s)
{
    for (size_t i = 0; i < s->receive_count; i++) {
        laci_mpi_letter *const letter = s->claims[i];
        lac_receive *const wish = &s->receives[i];
        wish->len = letter->len;
        if (wish->buffer == NULL) {
            wish->data = letter->payload;
            letter->next = s->lent;
            s->lent = letter;
            continue;
        }
        if (letter->payload != wish->buffer && letter->len > 0) {
            memcpy(wish->buffer, letter->payload, letter->len);
        }
        wish->data = wish->buffer;
        laci_mpi_recycle(s, letter);
    }
}

lac_status laci_mpi_exchange(
    void *state, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline)
{
    laci_mpi_session *const s = state;
    s->entered = 0;
    s->idle_since = 0;
    end_loans(s);
    if (atomic_load(&s->aborted)) {
        return laci_mpi_check_causes(s);
    }
    LAC_TRY(reserve_claims(s, receive_count));
    s->receives = receives;
    s->receive_count = receive_count;
    s->missing = receive_count;
    lac_status status = begin(s, sends, send_count);
    if (status == LAC_OK) {
        status = await(s, deadline);
    }
    if (status == LAC_OK) {
        deliver(s);
        status = laci_mpi_reap(s, s->parity);
    }
    s->receives = NULL;
    s->receive_count = 0;
    return status;
}
