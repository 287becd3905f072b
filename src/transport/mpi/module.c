// SPDX-License-Identifier: MIT
// The module for one MPI: joining, leaving and giving up. The same sources are
// compiled against each MPI.
//
// What the host program started stays its own: MPI is initialised only if it
// was not, and finalised only by who initialised it, after everybody has said
// goodbye. After a failure nothing is finalised or freed that could wait for
// the dead, and memory that MPI may still write to is left to the process.
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "transport/mpi/session.h"

// After a failure the others get this long to report it as well.
#define FAILED_GRACE_SECONDS 2.0

static lac_status start(laci_mpi_session *s)
{
    int initialised = 0, finalised = 0, provided = 0;
    (void)MPI_Finalized(&finalised);
    if (finalised != 0) {
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

static lac_status find_parent(laci_mpi_session *s, MPI_Comm *out)
{
    const lac_number_or_word comm = s->settings.comm;
    *out = MPI_COMM_WORLD;
    if (comm.word >= 0) {
        return LAC_OK;
    }
    if (comm.value != floor(comm.value)) {
        return s->services->fail(
            LAC_ERR_INVALID, "mpi: comm is %g, expected a whole number",
            comm.value);
    }
    *out = MPI_Comm_f2c((MPI_Fint)comm.value);
    if (*out == MPI_COMM_NULL) {
        return s->services->fail(
            LAC_ERR_INVALID, "mpi: comm=%.0f is no communicator", comm.value);
    }
    return LAC_OK;
}

static lac_status check_place(
    laci_mpi_session *s, MPI_Comm parent, laci_membership *membership)
{
    int rank = 0, size = 1;
    LAC_TRY(laci_mpi_check(s, MPI_Comm_rank(parent, &rank), "ask", 0));
    LAC_TRY(laci_mpi_check(s, MPI_Comm_size(parent, &size), "ask", 0));
    s->rank = (uint32_t)rank;
    s->world = (uint32_t)size;
    if (membership->world != LAC_RANK_ANY && membership->world != s->world) {
        // All workers find this alike, so none waits here for another.
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

// Duplicates the communicator, so that no message of ours meets one of the
// host's. All workers must come; the wait has an end.
static lac_status duplicate(laci_mpi_session *s, MPI_Comm parent)
{
    MPI_Request request;
    int done = 0;
    const double begun = s->services->now();
    LAC_TRY(laci_mpi_check(
        s, MPI_Comm_idup(parent, &s->comm, &request), "meet", s->rank));
    for (;;) {
        LAC_TRY(laci_mpi_check(
            s, MPI_Test(&request, &done, MPI_STATUS_IGNORE), "meet", s->rank));
        if (done != 0) {
            break;
        }
        const double now = s->services->now();
        if (now - begun >= s->settings.timeout) {
            return s->services->fail(
                LAC_ERR_PEER,
                "mpi: not all %u workers joined within %.1f seconds of worker "
                "%u",
                s->world, now - begun, s->rank);
        }
        laci_mpi_rest(s, now);
    }
    return laci_mpi_check(
        s, MPI_Comm_set_errhandler(s->comm, MPI_ERRORS_RETURN), "meet",
        s->rank);
}

static lac_status allocate(laci_mpi_session *s)
{
    s->peers = s->services->zalloc(s->world * sizeof(*s->peers));
    s->scratch = s->services->zalloc(LACI_MPI_REDUCE_MAX * sizeof(*s->scratch));
    if (s->peers == NULL || s->scratch == NULL ||
        pthread_mutex_init(&s->lock, NULL) != 0) {
        s->services->free(s->peers);
        s->services->free(s->scratch);
        return s->services->fail(
            LAC_ERR_NOMEM, "mpi: no memory for a session of %u workers",
            s->world);
    }
    return LAC_OK;
}

static lac_status module_join(void *state, laci_membership *membership)
{
    laci_mpi_session *const s = state;
    MPI_Comm parent = MPI_COMM_NULL;
    s->services = membership->services;
    s->owner = pthread_self();
    s->blamed = LAC_RANK_ANY;
    s->cause_blamed = LAC_RANK_ANY;
    LAC_TRY(start(s));
    LAC_TRY(find_parent(s, &parent));
    LAC_TRY(check_place(s, parent, membership));
    LAC_TRY(allocate(s));
    const lac_status status = duplicate(s, parent);
    if (status != LAC_OK) {
        s->services->free(s->peers);
        s->services->free(s->scratch);
        (void)pthread_mutex_destroy(&s->lock);
    }
    return status;
}

static bool all_sent(laci_mpi_session *s)
{
    return laci_mpi_reap(s, 0) == LAC_OK && laci_mpi_reap(s, 1) == LAC_OK &&
           s->sent[0] == NULL && s->sent[1] == NULL;
}

// Says goodbye and waits until all others have, whoever is to blame excepted.
// Returns whether everything that was sent has gone out and everybody left.
static bool say_goodbye(laci_mpi_session *s, double patience)
{
    const double until = s->services->now() + patience;
    laci_mpi_say_left(s);
    for (;;) {
        const bool sent = all_sent(s);
        if (laci_mpi_progress(s) != LAC_OK) {
            return false;
        }
        if (sent && s->left_count == s->world - 1) {
            return true;
        }
        const bool failed = atomic_load(&s->aborted) || s->cause_known;
        const uint32_t blamed = s->cause_known ? s->cause_blamed : s->blamed;
        const uint32_t excepted =
            blamed < s->world && blamed != s->rank && !s->peers[blamed].left;
        const double now = s->services->now();
        if ((failed && s->left_count + excepted >= s->world - 1) ||
            now >= until) {
            return false;
        }
        laci_mpi_rest(s, now);
    }
}

static void free_letters(laci_mpi_session *s, laci_mpi_letter *letter)
{
    while (letter != NULL) {
        laci_mpi_letter *const next = letter->next;
        s->services->free(letter->bulk);
        s->services->free(letter);
        letter = next;
    }
}

static void module_leave(void *state)
{
    laci_mpi_session *const s = state;
    const bool failed = atomic_load(&s->aborted);
    if (failed) {
        laci_mpi_abort(s, s->why);
    }
    const bool complete =
        say_goodbye(s, failed ? FAILED_GRACE_SECONDS : s->settings.timeout);
    const bool idle = s->opening == NULL && s->arriving == NULL;
    free_letters(s, s->free);
    free_letters(s, s->lent);
    if (complete && idle) {
        for (uint32_t i = 0; i < s->world; i++) {
            free_letters(s, s->peers[i].first);
        }
        s->services->free(s->scratch);
    }
    s->services->free(s->peers);
    s->services->free(s->claims);
    (void)pthread_mutex_destroy(&s->lock);
    if (complete && !failed && !s->cause_known) {
        (void)MPI_Comm_free(&s->comm);
        if (s->started) {
            (void)MPI_Finalize();
        }
    }
}

static void module_kill_job(void *state, int code)
{
    laci_mpi_session *const s = state;
    (void)say_goodbye(s, FAILED_GRACE_SECONDS);
    (void)MPI_Abort(s->comm, code);
}

static const laci_transport_ops ops = {
    .plugin =
        {
            .size = sizeof(laci_transport_ops),
            .name = "mpi",
            .summary = "one MPI",
            .state_size = sizeof(laci_mpi_session),
        },
    .abi = LACI_TRANSPORT_ABI,
    .join = module_join,
    .leave = module_leave,
    .exchange = laci_mpi_exchange,
    .abort = laci_mpi_abort,
    .kill_job = module_kill_job,
    .allreduce_sum = laci_mpi_allreduce,
};

LAC_API laci_mpi_entry laci_mpi_module;

const laci_transport_ops *laci_mpi_module(void)
{
    return &ops;
}
