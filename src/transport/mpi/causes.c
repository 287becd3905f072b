// SPDX-License-Identifier: MIT
// Why a group ends: giving up, telling the others, and finding who was first.
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/fail.h"
#include "transport/mpi/session.h"

// Workers along a chain wait for one another and run out of time together.
// This long a worker listens whether the one it blames blames another.
#define LISTEN_SECONDS 0.1

lac_status laci_mpi_check_causes(const laci_mpi_session *s)
{
    if (atomic_load(&s->aborted)) {
        return s->services->fail(LAC_ERR_PEER, "%s", s->why);
    }
    if (s->cause_known) {
        return s->services->fail(
            LAC_ERR_PEER, "worker %u gave up: %s", s->cause_rank, s->cause);
    }
    return LAC_OK;
}

// Tells every peer, those that have left too: they still listen, until they
// know that all have. What cannot be sent is lost: silence says it as well.
static void tell_all(
    laci_mpi_session *s, laci_mpi_kind kind, const void *data, size_t len)
{
    for (uint32_t peer = 0; peer < s->world; peer++) {
        if (peer != s->rank) {
            const lac_send send = {peer, s->blamed, data, len};
            if (laci_mpi_post(s, kind, &send) != LAC_OK) {
                return;
            }
        }
    }
}

// One that leaves because another gave up says so: MPI may deliver its goodbye
// before the sentence of the other.
void laci_mpi_say_left(laci_mpi_session *s)
{
    uint8_t note[LACI_MPI_NOTE + LACI_MPI_WHY];
    size_t len = 0;
    if (s->cause_known) {
        laci_put_u32(note, s->cause_rank);
        laci_put_u32(note + 4, s->cause_blamed);
        len = strlen(s->cause);
        memcpy(note + LACI_MPI_NOTE, s->cause, len);
        len += LACI_MPI_NOTE;
    }
    tell_all(s, LACI_MPI_LEFT, note, len);
}

// Keeps the sentence of `rank`, which gave up.
static void keep_cause(
    laci_mpi_session *s, uint32_t rank, uint32_t blamed, const uint8_t *text,
    size_t len)
{
    const size_t most = LACI_MPI_WHY - 1;
    len = len < most ? len : most;
    memcpy(s->cause, text, len);
    s->cause[len] = '\0';
    s->cause_known = true;
    s->cause_rank = rank;
    s->cause_blamed = blamed;
}

// One that blames a worker which has given up as well, and so was not the first
// to fail, makes way for a better one.
void laci_mpi_hear_sentence(laci_mpi_session *s, const laci_mpi_letter *letter)
{
    const uint32_t accused = letter->tag;
    const bool doubtful = s->cause_known && s->cause_blamed < s->world &&
                          s->peers[s->cause_blamed].gave_up;
    const bool sound = accused >= s->world || !s->peers[accused].gave_up;
    s->peers[letter->peer].gave_up = true;
    if (!s->cause_known || (doubtful && sound)) {
        keep_cause(
            s, letter->peer, accused, letter->block + LACI_MPI_HEAD,
            letter->len);
    }
}

// Whoever gave up itself needs no note about that.
void laci_mpi_hear_goodbye(laci_mpi_session *s, const laci_mpi_letter *letter)
{
    s->left_count += !s->peers[letter->peer].left;
    s->peers[letter->peer].left = true;
    if (letter->len < LACI_MPI_NOTE || s->cause_known) {
        return;
    }
    const uint8_t *const note = letter->block + LACI_MPI_HEAD;
    const uint32_t rank = laci_get_u32(note);
    if (rank < s->world && rank != s->rank) {
        keep_cause(
            s, rank, laci_get_u32(note + 4), note + LACI_MPI_NOTE,
            letter->len - LACI_MPI_NOTE);
    }
}

void laci_mpi_abort(void *state, const char *why)
{
    laci_mpi_session *const s = state;
    (void)pthread_mutex_lock(&s->lock);
    if (!atomic_load(&s->aborted)) {
        (void)snprintf(s->why, sizeof(s->why), "%s", why);
        atomic_store(&s->aborted, true);
    }
    (void)pthread_mutex_unlock(&s->lock);
    // Only the owner may call MPI; from another thread the flag is enough,
    // the owner's next exchange or its leave tells the others. Those know
    // already when one of them was the first to give up.
    if (pthread_equal(s->owner, pthread_self()) && !s->told) {
        s->told = true;
        if (!s->cause_known) {
            tell_all(s, LACI_MPI_GAVE_UP, s->why, strlen(s->why));
        }
    }
}

lac_status laci_mpi_blame(
    laci_mpi_session *s, uint32_t peer, const char *sentence)
{
    const bool told = s->cause_known;
    const double until = s->services->now() + LISTEN_SECONDS;
    s->blamed = peer;
    if (!told) {
        s->told = true;
        tell_all(s, LACI_MPI_GAVE_UP, sentence, strlen(sentence));
    }
    for (double now = 0; !s->peers[peer].gave_up && now < until;) {
        if (laci_mpi_progress(s) != LAC_OK) {
            break;
        }
        now = s->services->now();
        laci_mpi_rest(s, now);
    }
    if (s->peers[peer].gave_up && s->cause_known) {
        return s->services->fail(
            LAC_ERR_PEER, "worker %u gave up: %s", s->cause_rank, s->cause);
    }
    return s->services->fail(LAC_ERR_PEER, "%s", sentence);
}
