// SPDX-License-Identifier: MIT
#ifndef LACONIC_TRANSPORT_H
#define LACONIC_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/plugin.h>
#include <laconic/status.h>

#ifdef __cplusplus
extern "C" {
#endif

// Transports move messages between the workers of a group: threads of one
// process ("local") or the processes of an MPI job ("mpi", a module that is
// loaded when it is named).
//
//     lac_hub_open(&hub, 8);                              // local: once
//     lac_transport_join(&t, "local", hub, rank, 8);      // in every thread
//     lac_transport_exchange(t, sends, 2, receives, 2, deadline);
//     lac_transport_leave(t);
//     lac_hub_close(hub);                                 // after all left
//
// Threads: a handle belongs to the thread that joined; lac_transport_abort may
// be called from any.

typedef struct lac_hub lac_hub;
typedef struct lac_transport lac_transport;

/// One message to `peer`. The bytes are borrowed until the next exchange of
/// this worker returns, or until leave: a peer may still be reading them. After
/// a failure they stay borrowed until leave.
typedef struct lac_send {
    uint32_t peer;
    uint32_t tag;
    const void *data;
    size_t len;
} lac_send;

/// One message awaited from `peer`. With a buffer, the message is put there
/// and must fit; with NULL, `data` points at the transport's or the sender's
/// memory until the next exchange or leave. Messages of one peer and tag
/// arrive in the order they were sent.
typedef struct lac_receive {
    uint32_t peer;
    uint32_t tag;
    void *buffer;
    size_t cap;       ///< Room in `buffer`.
    const void *data; ///< Set by the exchange.
    size_t len;       ///< Set by the exchange.
} lac_receive;

/// lac_hub_open makes the meeting place of `world` threads of one process.
/// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status lac_hub_open(lac_hub **out, uint32_t world);

/// lac_hub_close releases `hub`. Every worker that joined must have left, and
/// none may be joining: it does not wait for them. NULL is allowed.
LAC_API void lac_hub_close(lac_hub *hub);

/// lac_transport_join makes this worker `rank` of `world`. "local" needs the
/// hub and does not wait for the others; a rank joins a hub once. "mpi" ignores
/// the hub, `rank` and `world` may be LAC_RANK_ANY there (MPI knows), and it
/// waits for all workers, at most its setting `timeout`.
/// Fails with LAC_ERR_NOTFOUND, LAC_ERR_INVALID, LAC_ERR_UNSUPPORTED (no such
/// MPI here), LAC_ERR_PEER (mpi: somebody did not come) or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status lac_transport_join(
    lac_transport **out, const char *spec, lac_hub *hub, uint32_t rank,
    uint32_t world);

/// Leaves it to the transport.
#define LAC_RANK_ANY UINT32_MAX

/// lac_transport_leave ends the membership and releases `t`. It cannot fail
/// and does not wait for peers that are gone; for those that still read what
/// this worker sent it waits as long as the last exchange was given. NULL is
/// allowed.
LAC_API void lac_transport_leave(lac_transport *t);

LAC_API uint32_t lac_transport_rank(const lac_transport *t);
LAC_API uint32_t lac_transport_world(const lac_transport *t);

/// lac_transport_now returns seconds on a clock that only goes forward, the
/// one deadlines are told on.
LAC_API double lac_transport_now(const lac_transport *t);

/// lac_transport_exchange sends all messages and waits for all receives, at
/// most until `deadline`. Once it has failed, every later exchange fails.
/// Fails with LAC_ERR_PEER (the sentence names a worker that died, aborted,
/// left or was silent too long), LAC_ERR_SPACE or LAC_ERR_INVALID.
LAC_FALLIBLE lac_status lac_transport_exchange(
    lac_transport *t, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline);

/// lac_transport_abort makes the exchanges of this worker, and soon those of
/// its peers, fail with the sentence `why`. Any thread may call it.
LAC_API void lac_transport_abort(lac_transport *t, const char *why);

/// lac_transport_failed tells whether an exchange of this handle has failed.
/// An MPI that the transport started is then not finalised by leave, because
/// that would wait for the dead: end the process, or the job.
LAC_API bool lac_transport_failed(const lac_transport *t);

/// lac_transport_kill_job ends all processes of the job with `code`, as
/// MPI_Abort does, after giving the others a moment to report. It returns only
/// where a transport has no processes of its own ("local").
LAC_API void lac_transport_kill_job(lac_transport *t, int code);

/// lac_transports returns what can be named, `*count_out` of them.
LAC_API const lac_plugin *const *lac_transports(size_t *count_out);

#ifdef __cplusplus
}
#endif

#endif
