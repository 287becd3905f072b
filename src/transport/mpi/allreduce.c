// SPDX-License-Identifier: MIT
// The native all-reduce of an MPI session: MPI_Iallreduce, polled so that a
// deadline and an abort end it. The request of a sum that failed stays pending,
// and MPI may write to its x until MPI is finalised.
#include "base/fail.h"
#include "transport/mpi/session.h"

enum { POLLS_PER_CHECK = 256, CHUNK = 1 << 28 };

// Receives messages of the others, and fails if waiting makes no sense.
static lac_status allreduce_check(
    laci_mpi_session *s, double now, double deadline)
{
    LAC_TRY(laci_mpi_progress(s));
    LAC_TRY(laci_mpi_check_causes(s));
    LAC_TRY(laci_mpi_check_processes(s, now, now >= deadline));
    if (now < deadline) {
        return LAC_OK;
    }
    return s->services->fail(
        LAC_ERR_PEER,
        "a sum that worker %u takes part in was not done after %.1f seconds",
        s->rank, now - s->entered);
}

static lac_status allreduce_await(
    laci_mpi_session *s, MPI_Request *request, double deadline)
{
    s->idle_since = 0;
    for (unsigned polls = 1;; polls++) {
        int done = 0;
        const int code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        LAC_TRY(laci_mpi_check(s, code, "sum with", s->rank));
        if (done != 0) {
            return LAC_OK;
        }
        const double now = s->services->now();
        if (polls % POLLS_PER_CHECK == 0 || now >= deadline ||
            atomic_load(&s->aborted)) {
            LAC_TRY(allreduce_check(s, now, deadline));
        }
        laci_mpi_backoff(s, now);
    }
}

lac_status laci_mpi_allreduce(
    laci_mpi_session *s, float *x, size_t n, double deadline)
{
    s->entered = s->services->now();
    s->process_check_at = 0;
    if (atomic_load(&s->aborted)) {
        return laci_mpi_check_causes(s);
    }
    for (size_t done = 0; done < n; done += CHUNK) {
        const size_t left = n - done;
        MPI_Request request;
        const int code = MPI_Iallreduce(
            MPI_IN_PLACE, x + done, (int)(left < CHUNK ? left : CHUNK),
            MPI_FLOAT, MPI_SUM, s->comm, &request);
        LAC_TRY(laci_mpi_check(s, code, "sum with", s->rank));
        s->sum_pending = true;
        LAC_TRY(allreduce_await(s, &request, deadline));
        s->sum_pending = false;
    }
    return LAC_OK;
}
