// SPDX-License-Identifier: MIT
// Why a group ends: giving up, telling the others, and finding who was first.
#include <stdio.h>
#include <string.h>

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
void laci_mpi_tell_all(
    laci_mpi_session *s, laci_mpi_kind kind, const char *text)
{
    for (uint32_t peer = 0; peer < s->world; peer++) {
        if (peer != s->rank) {
            const lac_send send = {peer, s->blamed, text, strlen(text)};
            if (laci_mpi_post(s, kind, &send) != LAC_OK) {
                return;
            }
        }
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
            laci_mpi_tell_all(s, LACI_MPI_GAVE_UP, s->why);
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
        laci_mpi_tell_all(s, LACI_MPI_GAVE_UP, sentence);
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
