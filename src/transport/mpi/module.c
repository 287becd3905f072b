// SPDX-License-Identifier: MIT
// The module for one MPI: its table, which thread may call it, and leaving. The
// same sources are compiled against each MPI.
//
// The session initialises MPI only if the host program has not, and finalises
// it only then, after all workers have left. After a failure it calls nothing
// that could wait for a dead worker, and memory of pending requests is left to
// the process.
#include "base/fail.h"
#include "transport/loader.h"
#include "transport/mpi/session.h"

// After a failure the others get this long to report it as well.
#define FAILED_GRACE_SECONDS 2.0

// Whether this thread may call MPI.
static bool may_call(const laci_mpi_session *s)
{
    return !s->thread_bound || pthread_equal(s->owner, pthread_self()) != 0;
}

// A handle may move between threads; the one that calls becomes its owner.
static lac_status enter(laci_mpi_session *s)
{
    if (!may_call(s)) {
        return s->services->fail(
            LAC_ERR_UNSUPPORTED,
            "mpi: worker %u was called from another thread than the one that "
            "initialised MPI, but MPI grants less than MPI_THREAD_SERIALIZED",
            s->rank);
    }
    if (laci_mpi_finalised()) {
        return s->services->fail(
            LAC_ERR_UNSUPPORTED,
            "mpi: worker %u was called after MPI_Finalize, expected that it "
            "leaves before",
            s->rank);
    }
    (void)pthread_mutex_lock(&s->lock);
    s->owner = pthread_self();
    s->in_call = true;
    (void)pthread_mutex_unlock(&s->lock);
    return LAC_OK;
}

static void exit_call(laci_mpi_session *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->in_call = false;
    (void)pthread_mutex_unlock(&s->lock);
}

static lac_status module_exchange(
    void *state, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline)
{
    laci_mpi_session *const s = state;
    LAC_TRY(enter(s));
    const lac_status status = laci_mpi_exchange(
        s, sends, send_count, receives, receive_count, deadline);
    exit_call(s);
    return status;
}

static lac_status module_allreduce(
    void *state, float *x, size_t n, double deadline)
{
    laci_mpi_session *const s = state;
    LAC_TRY(enter(s));
    const lac_status status = laci_mpi_allreduce(s, x, n, deadline);
    exit_call(s);
    return status;
}

static bool all_sent(laci_mpi_session *s)
{
    return laci_mpi_collect_sent(s, 0) == LAC_OK &&
           laci_mpi_collect_sent(s, 1) == LAC_OK && s->sent[0] == NULL &&
           s->sent[1] == NULL;
}

// Whether nobody but the suspected worker is still to leave.
static bool only_suspect_missing(const laci_mpi_session *s)
{
    const uint32_t suspect = s->cause_known ? s->cause_suspect : s->suspect;
    const uint32_t missing =
        suspect < s->world && suspect != s->rank && !s->peers[suspect].left;
    return s->left_count + missing >= s->world - 1;
}

// Announces that this worker leaves and waits until all others have announced
// it too, after a failure except for the suspected one. Returns whether all
// that was sent has gone out and everybody left.
static bool finish(laci_mpi_session *s, double timeout)
{
    const double until = s->services->now() + timeout;
    laci_mpi_announce_leave(s);
    for (;;) {
        const bool sent = all_sent(s);
        if (laci_mpi_progress(s) != LAC_OK) {
            return false;
        }
        if (sent && s->left_count == s->world - 1) {
            return true;
        }
        const bool failed = atomic_load(&s->aborted) || s->cause_known;
        const double now = s->services->now();
        if ((failed && only_suspect_missing(s)) || now >= until) {
            return false;
        }
        if (!failed && laci_mpi_check_processes(s, now, false) != LAC_OK) {
            return false; // a worker died: it will announce nothing
        }
        laci_mpi_backoff(s, now);
    }
}

// Releases the session except for messages of pending requests, and returns
// whether there is no such request.
static bool session_release(laci_mpi_session *s)
{
    bool idle = !s->sum_pending;
    for (laci_mpi_message *message = s->allocated; message != NULL;) {
        laci_mpi_message *const next = message->allocated;
        if (message->request_count == 0) {
            s->services->free(message->bulk);
            s->services->free(message);
        } else {
            idle = false;
        }
        message = next;
    }
    s->services->free(s->peers);
    s->services->free(s->processes);
    s->services->free(s->claims);
    (void)pthread_mutex_destroy(&s->lock);
    return idle;
}

// A thread that may not call MPI, or that finalised it, can only release
// memory.
static bool module_leave(void *state)
{
    laci_mpi_session *const s = state;
    const bool failed = atomic_load(&s->aborted);
    if (!may_call(s) || laci_mpi_finalised()) {
        return session_release(s);
    }
    if (failed) {
        laci_mpi_announce_abort(s);
    }
    const bool complete =
        finish(s, failed ? FAILED_GRACE_SECONDS : s->settings.timeout);
    MPI_Comm comm = s->comm;
    const bool healthy = complete && !failed && !s->cause_known;
    const bool idle = session_release(s);
    if (healthy && idle) {
        (void)MPI_Comm_free(&comm);
        if (s->started) {
            (void)MPI_Finalize();
        }
    }
    return idle;
}

static void module_kill_job(void *state, int code)
{
    laci_mpi_session *const s = state;
    if (laci_mpi_finalised()) {
        return;
    }
    if (may_call(s)) {
        (void)finish(s, FAILED_GRACE_SECONDS);
    }
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
    .join = laci_mpi_join,
    .leave = module_leave,
    .exchange = module_exchange,
    .abort = laci_mpi_abort,
    .kill_job = module_kill_job,
    .allreduce_sum = module_allreduce,
    .library = laci_mpi_library,
};

LAC_API laci_module_entry laci_mpi_module;

const laci_transport_ops *laci_mpi_module(void)
{
    return &ops;
}
