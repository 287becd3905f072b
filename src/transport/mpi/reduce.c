// SPDX-License-Identifier: MIT
// The native all-reduce of an MPI session. Short vectors go by recursive
// doubling on point-to-point messages: MPI's own call could not be given a
// deadline. Long ones are MPI's business (MPI_Iallreduce), begun only after a
// short one has shown that everybody is there.
//
// Recursive doubling over p = 2^k workers: in step j, workers whose ranks
// differ in bit j swap their sums and add. Both compute the same two numbers'
// sum, and a + b = b + a in every bit, so all end with the same bits. The
// workers from p on first give their vectors to rank - p, and get the result.
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "transport/mpi/session.h"

enum { POLLS_A_LOOK = 256, CHUNK = 1 << 28 };

// A worker that has left may have sent its part just before: its bytes get
// this long to arrive.
#define LEFT_GRACE_SECONDS 1.0

typedef struct wait_state {
    uint32_t peer; // LAC_RANK_ANY: all of them
    unsigned polls;
    double deadline;
    double left_until; // 0: the peer has not left
} wait_state;

// Reads what else has come, and decides whether waiting makes sense.
static lac_status look(laci_mpi_session *s, wait_state *wait, double now)
{
    LAC_TRY(laci_mpi_progress(s));
    LAC_TRY(laci_mpi_check_causes(s));
    if (wait->peer != LAC_RANK_ANY && s->peers[wait->peer].left) {
        wait->left_until =
            wait->left_until == 0 ? now + LEFT_GRACE_SECONDS : wait->left_until;
        if (now >= wait->left_until) {
            return s->services->fail(
                LAC_ERR_PEER,
                "worker %u has left, but worker %u waits for its part of a "
                "sum",
                wait->peer, s->rank);
        }
    }
    if (now < wait->deadline) {
        return LAC_OK;
    }
    if (wait->peer == LAC_RANK_ANY) {
        return s->services->fail(
            LAC_ERR_PEER,
            "a sum that worker %u takes part in was not done after %.1f "
            "seconds",
            s->rank, now - s->entered);
    }
    char sentence[LACI_MPI_WHY];
    (void)snprintf(
        sentence, sizeof(sentence),
        "worker %u was silent for %.1f seconds in a sum of worker %u",
        wait->peer, now - s->entered, s->rank);
    return laci_mpi_blame(s, wait->peer, sentence);
}

static lac_status await(
    laci_mpi_session *s, MPI_Request *requests, int count, wait_state *wait)
{
    s->idle_since = 0;
    for (wait->polls = 1;; wait->polls++) {
        int done = 0;
        const int code =
            MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
        LAC_TRY(laci_mpi_check(
            s, code, "sum with",
            wait->peer == LAC_RANK_ANY ? s->rank : wait->peer));
        if (done != 0) {
            return LAC_OK;
        }
        const double now = s->services->now();
        if (wait->polls % POLLS_A_LOOK == 0 || now >= wait->deadline ||
            atomic_load(&s->aborted)) {
            LAC_TRY(look(s, wait, now));
        }
        laci_mpi_rest(s, now);
    }
}

// Sends `out` and receives into `in`; either may be NULL.
static lac_status swap(
    laci_mpi_session *s, uint32_t peer, const float *out, float *in, int n,
    double deadline)
{
    MPI_Request requests[2];
    int count = 0, code = MPI_SUCCESS;
    wait_state wait = {.peer = peer, .deadline = deadline};
    if (in != NULL) {
        code = MPI_Irecv(
            in, n, MPI_FLOAT, (int)peer, LACI_MPI_REDUCE_TAG, s->comm,
            &requests[count++]);
        LAC_TRY(laci_mpi_check(s, code, "receive from", peer));
    }
    if (out != NULL) {
        code = MPI_Isend(
            out, n, MPI_FLOAT, (int)peer, LACI_MPI_REDUCE_TAG, s->comm,
            &requests[count++]);
        LAC_TRY(laci_mpi_check(s, code, "send to", peer));
    }
    return await(s, requests, count, &wait);
}

static void add(float *restrict x, const float *restrict y, int n)
{
    for (int i = 0; i < n; i++) {
        x[i] += y[i];
    }
}

static lac_status reduce_short(
    laci_mpi_session *s, float *x, int n, double deadline)
{
    uint32_t power = 1;
    while (power <= s->world / 2) {
        power *= 2;
    }
    if (s->rank >= power) {
        LAC_TRY(swap(s, s->rank - power, x, NULL, n, deadline));
        return swap(s, s->rank - power, NULL, x, n, deadline);
    }
    const bool has_guest = s->rank + power < s->world;
    if (has_guest) {
        LAC_TRY(swap(s, s->rank + power, NULL, s->scratch, n, deadline));
        add(x, s->scratch, n);
    }
    for (uint32_t bit = 1; bit < power; bit *= 2) {
        LAC_TRY(swap(s, s->rank ^ bit, x, s->scratch, n, deadline));
        add(x, s->scratch, n);
    }
    return has_guest ? swap(s, s->rank + power, x, NULL, n, deadline) : LAC_OK;
}

static lac_status reduce_long(
    laci_mpi_session *s, float *x, size_t n, double deadline)
{
    float here = 1;
    LAC_TRY(reduce_short(s, &here, 1, deadline));
    for (size_t done = 0; done < n; done += CHUNK) {
        const size_t left = n - done;
        MPI_Request request;
        wait_state wait = {.peer = LAC_RANK_ANY, .deadline = deadline};
        const int code = MPI_Iallreduce(
            MPI_IN_PLACE, x + done, (int)(left < CHUNK ? left : CHUNK),
            MPI_FLOAT, MPI_SUM, s->comm, &request);
        LAC_TRY(laci_mpi_check(s, code, "sum with", s->rank));
        LAC_TRY(await(s, &request, 1, &wait));
    }
    return LAC_OK;
}

lac_status laci_mpi_allreduce(void *state, float *x, size_t n, double deadline)
{
    laci_mpi_session *const s = state;
    s->entered = s->services->now();
    if (atomic_load(&s->aborted)) {
        return laci_mpi_check_causes(s);
    }
    return n <= LACI_MPI_REDUCE_MAX ? reduce_short(s, x, (int)n, deadline)
                                    : reduce_long(s, x, n, deadline);
}
