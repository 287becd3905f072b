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
// process ("local"), the processes of an MPI job ("mpi"), or processes on any
// network ("tcp"). The last two are modules that are loaded when they are
// named. A program may also bring its own, with lac_transport_join_with.
//
//     lac_hub_open(&hub, 8);                              // local: once
//     lac_transport_join(&t, "local", hub, rank, 8);      // in every thread
//     lac_transport_exchange(t, sends, 2, receives, 2, deadline);
//     lac_transport_leave(t);
//     lac_hub_close(hub);                                 // after all left
//
// Memory: an exchange borrows the bytes that it sends and the buffers that it
// fills, as lac_send and lac_receive describe.
//
// Threads: a handle may move between threads as long as its calls do not
// overlap; lac_transport_abort alone may be called by any thread at any time.
// Where MPI grants less than MPI_THREAD_SERIALIZED, all calls must come from
// the thread that initialised MPI. From another thread join, exchange and all
// calls that communicate fail with LAC_ERR_UNSUPPORTED, and leave returns
// without waiting for the other workers.

typedef struct lac_hub lac_hub;
typedef struct lac_transport lac_transport;

/// One message to `peer`. The bytes are borrowed until the next exchange of
/// this worker returns, or until leave: a peer may still be reading them. After
/// a failure they stay borrowed until leave. Use designated initialisers: all
/// other members must be 0.
typedef struct lac_send {
    uint32_t peer;
    uint32_t tag;
    const void *data;
    size_t len;
    uint64_t reserved[2]; ///< Must be 0.
} lac_send;

/// One message expected from `peer`. With a buffer, the message is written
/// there and must fit; with NULL, `data` points at the transport's or the
/// sender's memory until the next exchange or leave, and a message longer than
/// `cap` is refused unless `cap` is 0. Messages of one peer and
/// tag arrive in the order in which they were sent. After a failure the buffer
/// is undefined and stays borrowed until leave. Use designated initialisers:
/// all other members must be 0.
typedef struct lac_receive {
    uint32_t peer;
    uint32_t tag;
    void *buffer;
    size_t cap;           ///< Most bytes of the message.
    const void *data;     ///< Set by the exchange.
    size_t len;           ///< Set by the exchange.
    uint64_t reserved[2]; ///< Must be 0.
} lac_receive;

/// lac_hub_open creates the hub that connects `world` threads of one process.
/// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status lac_hub_open(lac_hub **out, uint32_t world);

/// lac_hub_close releases `hub`. All workers that joined must have left, and
/// none may be joining: it does not wait for them. NULL is allowed.
LAC_API void lac_hub_close(lac_hub *hub);

/// lac_transport_join makes this worker `rank` of `world`. "local" needs the
/// hub and does not wait for the others; a rank joins a hub once. "mpi" ignores
/// the hub, accepts LAC_RANK_ANY for `rank` and `world` and then takes them
/// from MPI, and waits for all workers, at most for its setting `timeout`. So
/// does "tcp", which takes them from its peers file or from the environment.
/// Fails with LAC_ERR_NOTFOUND, LAC_ERR_INVALID, LAC_ERR_UNSUPPORTED (the
/// module is not available, or MPI not to this thread), LAC_ERR_PEER (a worker
/// did not join in time) or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status lac_transport_join(
    lac_transport **out, const char *spec, lac_hub *hub, uint32_t rank,
    uint32_t world);

/// The rank or world that the transport determines.
#define LAC_RANK_ANY UINT32_MAX

/// The functions of a user-defined transport. Each gets the context that was
/// given to lac_transport_join_with. They must not call functions of the
/// library that use this transport.
///
/// A function that fails calls lac_fail or lac_fail_text in the thread that
/// called it, and returns the status; without a message the text of the status
/// is reported. After a failure only abort and leave are called.
typedef struct lac_transport_ops {
    size_t size; ///< Of this struct, so that it can grow.

    /// exchange sends all messages and waits for all receives, at most until
    /// `deadline`, in seconds of lac_transport_now; HUGE_VAL is none. The
    /// arguments are checked: peers are in the group and not this worker, and
    /// sends have data unless `len` is 0. There may be no messages at all.
    /// Required.
    ///
    /// Sends: it may borrow the bytes, and must have released those of a call
    /// when the next one returns LAC_OK, or when leave returns. A copy, or a
    /// wait until they are transmitted, is enough. A peer may receive a message
    /// in a later exchange than the one that sends it, so exchange must not
    /// wait for that. The exchanges of algorithms receive every message in the
    /// exchange that sends it: if a program makes no others, exchange may wait,
    /// until the deadline, for its messages to be received.
    ///
    /// Receives: messages of one peer and tag arrive in the order in which they
    /// were sent. For each receive it sets `len`, and
    /// - with a buffer, writes the message there. If it is longer than `cap`,
    ///   it writes nothing and fails with LAC_ERR_SPACE.
    /// - without one, sets `data` to memory that remains valid and unchanged
    ///   until the next call begins, or until leave. `data` may be NULL if
    ///   `len` is 0. If the message is longer than `cap`, and `cap` is not 0,
    ///   it should fail with LAC_ERR_SPACE before it allocates memory for the
    ///   message; otherwise the library fails so.
    ///
    /// When it returns LAC_OK, all receives are done, and buffers are not used
    /// any more. After a failure they may be used until leave returns.
    lac_status (*exchange)(
        void *context, const lac_send *sends, size_t send_count,
        lac_receive *receives, size_t receive_count, double deadline);

    /// abort makes a running exchange or sum of this worker fail soon, and
    /// should make those of its peers fail with `why`. It is called at most
    /// once, by any thread, also while another is in an exchange, and also
    /// after an exchange or sum of this worker has failed. This worker then
    /// reports `why`, whatever its exchange reports. May be NULL: an exchange
    /// then ends by its deadline, and all later ones fail.
    void (*abort)(void *context, const char *why);

    /// leave is the last call, and the only one after which the context and all
    /// borrowed memory may be released. May be NULL if an exchange that has
    /// returned, also with a failure, uses no borrowed memory.
    void (*leave)(void *context);

    /// allreduce_sum replaces x[0..n) by the sum over all workers, with the
    /// same bits on each; all workers call it in the same order between their
    /// exchanges. `allreduce` uses it for large calls. After a failure x may be
    /// used until leave returns. May be NULL.
    lac_status (*allreduce_sum)(
        void *context, float *x, size_t n, double deadline);

    /// intact is 1 if messages arrive as they were sent, by construction:
    /// threads that read each other's memory, or an authenticated link. The
    /// library then does not hash them, which saves two passes over each. 0
    /// otherwise; all workers must agree.
    size_t intact;
} lac_transport_ops;

/// lac_transport_join_with makes this worker `rank` of `world` over a transport
/// that the program brings. `ops` is copied; the context must live until leave
/// is called, which happens exactly once if the join succeeds and never if it
/// fails. A table of an earlier version, which is smaller, is accepted.
/// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status lac_transport_join_with(
    lac_transport **out, const lac_transport_ops *ops, void *context,
    uint32_t rank, uint32_t world);

/// lac_transport_leave ends the membership and releases `t`. It cannot fail
/// and does not wait for dead workers. It waits for peers that still read what
/// this worker sent, at most as long as its longest exchange was allowed to
/// take, or its setting `timeout` with "mpi". NULL is allowed.
LAC_API void lac_transport_leave(lac_transport *t);

/// lac_transport_rank returns the rank of this worker.
LAC_API uint32_t lac_transport_rank(const lac_transport *t);

/// lac_transport_world returns the number of workers.
LAC_API uint32_t lac_transport_world(const lac_transport *t);

/// lac_transport_now returns seconds on the monotonic clock that deadlines use.
/// NULL is allowed.
LAC_API double lac_transport_now(const lac_transport *t);

/// lac_transport_exchange sends all messages and waits for all receives, at
/// most until `deadline`. Once it has failed, every later exchange fails with
/// the same error.
/// Fails with LAC_ERR_PEER (the message names a worker that died, aborted, left
/// or was silent for too long), LAC_ERR_SPACE, LAC_ERR_INVALID, LAC_ERR_NOMEM
/// or LAC_ERR_UNSUPPORTED (mpi: not in this thread).
LAC_FALLIBLE lac_status lac_transport_exchange(
    lac_transport *t, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline);

/// lac_transport_abort makes the exchanges of this worker, and soon those of
/// its peers, fail with the message `why`. Any thread may call it.
LAC_API void lac_transport_abort(lac_transport *t, const char *why);

/// lac_transport_failed returns whether an exchange of this handle has failed.
/// If the transport initialised MPI, leave then does not finalise it, because
/// that would wait for dead workers: end the process, or the job.
LAC_API bool lac_transport_failed(const lac_transport *t);

/// lac_transport_sockets writes the descriptors of the sockets that connect `t`
/// with other workers to out[0..cap), as many as fit, and returns their number,
/// which is below the world. It is 0 for "local" and user-defined transports,
/// and for "mpi", whose sockets are those of MPI. After the join, a transport
/// closes sockets but opens none.
///
/// A program that forks calls it after the join, and closes the sockets in the
/// forked process, which cannot use the transport: as long as it has copies,
/// the other workers do not notice that its parent was killed. The transport
/// may have closed a socket by then, and its descriptor may be another file:
/// compare st_dev and st_ino of fstat with those from after the join.
LAC_API size_t lac_transport_sockets(lac_transport *t, int *out, size_t cap);

/// lac_transport_kill_job ends all processes of the job with `code`, as
/// MPI_Abort does, and first gives the others two seconds to report their
/// errors. It returns for transports without a launcher ("local", "tcp", and
/// user-defined ones): the others fail by the abort.
LAC_API void lac_transport_kill_job(lac_transport *t, int code);

/// lac_modules_path sets the folder of the modules of "mpi" and "tcp", for all
/// threads of the process: they are looked for in `folder` and in laconic/
/// below it, and nowhere else. NULL restores the default, the folder of the
/// shared library. A program that links the static library calls it before it
/// joins, because the default is then the folder of the program. The folder
/// must begin with /. Fails with LAC_ERR_INVALID.
LAC_FALLIBLE lac_status lac_modules_path(const char *folder);

/// lac_transport_library writes the name and version of the library that a
/// transport uses on this machine, as reports of defects need it: "Open MPI
/// v4.1.4" for "mpi:library=openmpi", "OpenSSL 3.0.17 1 Jul 2025" for "tcp",
/// and "" for a transport that needs no other library. It loads the module but
/// joins nothing: MPI is not initialised. LAC_LIBRARY_SIZE bytes are enough.
/// Fails with LAC_ERR_NOTFOUND, LAC_ERR_INVALID, LAC_ERR_UNSUPPORTED (the
/// module is not available), LAC_ERR_SPACE or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status
lac_transport_library(const char *spec, char *out, size_t cap);

/// The most bytes that lac_transport_library writes.
#define LAC_LIBRARY_SIZE 128

/// lac_transports returns the table of all transports and writes its length to
/// `*count_out`.
LAC_API const lac_plugin *const *lac_transports(size_t *count_out);

#ifdef __cplusplus
}
#endif

#endif
