// SPDX-License-Identifier: MIT
// Joining an MPI session: initialise MPI if nobody has, check the thread and
// the place in the job, and duplicate the communicator.
//
// Joining is collective and has a timeout. MPI may write to the memory of a
// collective call that timed out, so that memory is allocated apart and then
// left to the process.
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "transport/mpi/session.h"

bool laci_mpi_finalised(void)
{
    int finalised = 0;
    (void)MPI_Finalized(&finalised);
    return finalised != 0;
}

static lac_status initialise(laci_mpi_session *s)
{
    int initialised = 0, provided = 0;
    if (laci_mpi_finalised()) {
        return s->services->fail(
            LAC_ERR_UNSUPPORTED,
            "mpi: MPI was finalised in this process, it cannot start again");
    }
    (void)MPI_Initialized(&initialised);
    if (initialised != 0) {
        return LAC_OK;
    }
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) !=
        MPI_SUCCESS) {
        return s->services->fail(
            LAC_ERR_UNSUPPORTED, "mpi: MPI_Init_thread failed");
    }
    s->started = true;
    return LAC_OK;
}

// MPI allows these two queries in every thread.
static lac_status check_thread_level(laci_mpi_session *s)
{
    int provided = MPI_THREAD_SINGLE, is_main = 0;
    (void)MPI_Query_thread(&provided);
    (void)MPI_Is_thread_main(&is_main);
    s->thread_bound = provided < MPI_THREAD_SERIALIZED;
    if (s->thread_bound && is_main == 0) {
        return s->services->fail(
            LAC_ERR_UNSUPPORTED,
            "mpi: another thread initialised MPI, and MPI grants less than "
            "MPI_THREAD_SERIALIZED: only that thread may join");
    }
    return LAC_OK;
}

static lac_status join_check_whole(
    const laci_mpi_session *s, const char *name, lac_number_or_word setting)
{
    if (setting.word < 0 && setting.value != floor(setting.value)) {
        return s->services->fail(
            LAC_ERR_INVALID, "mpi: %s is %g, expected a whole number", name,
            setting.value);
    }
    return LAC_OK;
}

static lac_status find_parent(laci_mpi_session *s, MPI_Comm *out)
{
    const lac_number_or_word comm = s->settings.comm;
    *out = MPI_COMM_WORLD;
    if (comm.word >= 0) {
        return LAC_OK;
    }
    LAC_TRY(join_check_whole(s, "comm", comm));
    *out = MPI_Comm_f2c((MPI_Fint)comm.value);
    if (*out == MPI_COMM_NULL) {
        return s->services->fail(
            LAC_ERR_INVALID, "mpi: comm=%.0f is not a communicator",
            comm.value);
    }
    return LAC_OK;
}

static lac_status join_check_place(
    laci_mpi_session *s, MPI_Comm parent, laci_membership *membership)
{
    int rank = 0, size = 1;
    LAC_TRY(laci_mpi_check(s, MPI_Comm_rank(parent, &rank), "query", 0));
    LAC_TRY(laci_mpi_check(s, MPI_Comm_size(parent, &size), "query", 0));
    s->rank = (uint32_t)rank;
    s->world = (uint32_t)size;
    if (membership->world != LAC_RANK_ANY && membership->world != s->world) {
        // All workers fail here alike, so none waits for another.
        if (s->started) {
            (void)MPI_Finalize();
        }
        return s->services->fail(
            LAC_ERR_INVALID, "mpi: the job has %u workers, expected %u",
            s->world, membership->world);
    }
    if (membership->rank != LAC_RANK_ANY && membership->rank != s->rank) {
        return s->services->fail(
            LAC_ERR_INVALID, "mpi: this is worker %u of the job, expected %u",
            s->rank, membership->rank);
    }
    membership->rank = s->rank;
    membership->world = s->world;
    return LAC_OK;
}

lac_status laci_mpi_await(laci_mpi_session *s, MPI_Request *request)
{
    const double begun = s->services->now();
    int done = 0;
    for (;;) {
        LAC_TRY(laci_mpi_check(
            s, MPI_Test(request, &done, MPI_STATUS_IGNORE), "join", s->rank));
        if (done != 0) {
            return LAC_OK;
        }
        const double now = s->services->now();
        if (now - begun >= s->settings.timeout) {
            return s->services->fail(
                LAC_ERR_PEER,
                "mpi: not all %u workers joined within %.1f seconds of worker "
                "%u",
                s->world, now - begun, s->rank);
        }
        laci_mpi_backoff(s, now);
    }
}

// Duplicates the communicator, so that our messages and those of the host
// program never match.
static lac_status duplicate(laci_mpi_session *s, MPI_Comm parent)
{
    MPI_Request request;
    MPI_Comm *const comm = s->services->zalloc(sizeof(*comm));
    if (comm == NULL) {
        return s->services->fail(
            LAC_ERR_NOMEM, "mpi: no memory for a communicator");
    }
    LAC_TRY(laci_mpi_check(
        s, MPI_Comm_idup(parent, comm, &request), "join", s->rank));
    LAC_TRY(laci_mpi_await(s, &request));
    s->comm = *comm;
    s->services->free(comm);
    return laci_mpi_check(
        s, MPI_Comm_set_errhandler(s->comm, MPI_ERRORS_RETURN), "join",
        s->rank);
}

static lac_status session_allocate(laci_mpi_session *s)
{
    s->peers = s->services->zalloc(s->world * sizeof(*s->peers));
    if (s->peers == NULL || pthread_mutex_init(&s->lock, NULL) != 0) {
        s->services->free(s->peers);
        return s->services->fail(
            LAC_ERR_NOMEM, "mpi: no memory for a session of %u workers",
            s->world);
    }
    return LAC_OK;
}

// Decides how long messages to each peer begin. Memory has no latency that
// pieces could save, and MPI copies whole messages faster.
static void choose_eager(laci_mpi_session *s)
{
    const lac_number_or_word eager = s->settings.eager;
    for (uint32_t rank = 0; rank < s->world; rank++) {
        const bool near = s->processes[rank].machine[0] != '\0';
        const uint32_t chosen = near ? 0 : LACI_MPI_EAGER;
        s->peers[rank].eager = eager.word >= 0 ? chosen : (uint32_t)eager.value;
    }
}

lac_status laci_mpi_join(void *state, laci_membership *membership)
{
    laci_mpi_session *const s = state;
    MPI_Comm parent = MPI_COMM_NULL;
    s->services = membership->services;
    s->owner = pthread_self();
    s->suspect = LAC_RANK_ANY;
    s->cause_suspect = LAC_RANK_ANY;
    LAC_TRY(initialise(s));
    LAC_TRY(check_thread_level(s));
    LAC_TRY(join_check_whole(s, "eager", s->settings.eager));
    LAC_TRY(find_parent(s, &parent));
    LAC_TRY(join_check_place(s, parent, membership));
    LAC_TRY(session_allocate(s));
    lac_status status = duplicate(s, parent);
    if (status == LAC_OK) {
        status = laci_mpi_share_processes(s);
    }
    if (status != LAC_OK) {
        s->services->free(s->peers);
        (void)pthread_mutex_destroy(&s->lock);
        return status;
    }
    choose_eager(s);
    return LAC_OK;
}
