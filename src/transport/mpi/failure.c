// SPDX-License-Identifier: MIT
// How a group fails: aborting, announcing it to the others, and finding the
// first worker that failed.
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/fail.h"
#include "transport/mpi/session.h"

// Workers along a chain wait for one another and time out together. A worker
// waits this long for an abort of the worker that it suspects.
#define LISTEN_SECONDS 0.1

static lac_status fail_with_cause(const laci_mpi_session *s)
{
    return s->services->fail(
        LAC_ERR_PEER, "worker %u aborted: %s", s->cause_rank, s->cause);
}

lac_status laci_mpi_check_causes(const laci_mpi_session *s)
{
    if (atomic_load(&s->aborted)) {
        return s->services->fail(LAC_ERR_PEER, "%s", s->why);
    }
    return s->cause_known ? fail_with_cause(s) : LAC_OK;
}

// Sends to every peer, also to those that have left: they receive until all
// have left. Errors are ignored, because the peers also notice the silence.
static void send_to_all(
    laci_mpi_session *s, laci_mpi_kind kind, const void *data, size_t len)
{
    for (uint32_t peer = 0; peer < s->world; peer++) {
        const lac_send send = {
            .peer = peer, .tag = s->suspect, .data = data, .len = len};
        if (peer != s->rank && laci_mpi_send(s, kind, &send) != LAC_OK) {
            return;
        }
    }
}

// A worker that leaves because another one aborted forwards the reason: MPI may
// deliver this message before the abort itself.
void laci_mpi_announce_leave(laci_mpi_session *s)
{
    uint8_t note[LACI_MPI_NOTE + LACI_MPI_WHY];
    size_t len = 0;
    if (s->cause_known) {
        laci_put_u32(note, s->cause_rank);
        laci_put_u32(note + 4, s->cause_suspect);
        len = strlen(s->cause);
        memcpy(note + LACI_MPI_NOTE, s->cause, len);
        len += LACI_MPI_NOTE;
    }
    send_to_all(s, LACI_MPI_LEFT, note, len);
}

static void set_cause(
    laci_mpi_session *s, uint32_t rank, uint32_t suspect, const uint8_t *text,
    size_t len)
{
    const size_t most = LACI_MPI_WHY - 1;
    len = len < most ? len : most;
    memcpy(s->cause, text, len);
    s->cause[len] = '\0';
    s->cause_known = true;
    s->cause_rank = rank;
    s->cause_suspect = suspect;
}

// The first abort is the cause. A later one replaces it if the worker that the
// first one suspects has aborted too, and so is alive.
void laci_mpi_on_abort(laci_mpi_session *s, const laci_mpi_message *message)
{
    const uint32_t suspect = message->tag;
    const bool doubtful = s->cause_known && s->cause_suspect < s->world &&
                          s->peers[s->cause_suspect].aborted;
    const bool sound = suspect >= s->world || !s->peers[suspect].aborted;
    s->peers[message->peer].aborted = true;
    if (!s->cause_known || (doubtful && sound)) {
        set_cause(
            s, message->peer, suspect, message->block + LACI_MPI_HEADER,
            message->len);
    }
}

void laci_mpi_on_leave(laci_mpi_session *s, const laci_mpi_message *message)
{
    s->left_count += !s->peers[message->peer].left;
    s->peers[message->peer].left = true;
    if (message->len < LACI_MPI_NOTE || s->cause_known) {
        return;
    }
    const uint8_t *const note = message->block + LACI_MPI_HEADER;
    const uint32_t rank = laci_get_u32(note);
    // The aborting worker itself knows the reason.
    if (rank < s->world && rank != s->rank) {
        set_cause(
            s, rank, laci_get_u32(note + 4), note + LACI_MPI_NOTE,
            message->len - LACI_MPI_NOTE);
    }
}

// If another worker aborted first, all workers know already.
void laci_mpi_announce_abort(laci_mpi_session *s)
{
    if (!s->announced) {
        s->announced = true;
        if (!s->cause_known) {
            send_to_all(s, LACI_MPI_ABORTED, s->why, strlen(s->why));
        }
    }
}

// Only the thread that used the handle last, and is not inside a call, may call
// MPI here. Any other thread just sets the flag: the running exchange sees it,
// or else the next exchange or leave announces the abort.
void laci_mpi_abort(void *state, const char *why)
{
    laci_mpi_session *const s = state;
    (void)pthread_mutex_lock(&s->lock);
    if (!atomic_load(&s->aborted)) {
        (void)snprintf(s->why, sizeof(s->why), "%s", why);
        atomic_store(&s->aborted, true);
    }
    if (!s->in_call && pthread_equal(s->owner, pthread_self()) != 0 &&
        !laci_mpi_finalised()) {
        laci_mpi_announce_abort(s);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

lac_status laci_mpi_suspect(
    laci_mpi_session *s, uint32_t peer, const char *reason)
{
    const double until = s->services->now() + LISTEN_SECONDS;
    s->suspect = peer;
    if (!s->cause_known) {
        s->announced = true;
        send_to_all(s, LACI_MPI_ABORTED, reason, strlen(reason));
    }
    for (double now = 0; !s->peers[peer].aborted && now < until;) {
        if (laci_mpi_progress(s) != LAC_OK) {
            break;
        }
        now = s->services->now();
        laci_mpi_backoff(s, now);
    }
    return s->peers[peer].aborted && s->cause_known
               ? fail_with_cause(s)
               : s->services->fail(LAC_ERR_PEER, "%s", reason);
}
