// SPDX-License-Identifier: MIT
// The internals of an MPI module: messages between the workers of a session.
//
// Every message starts with a header of 16 bytes on one MPI tag: its kind, the
// caller's tag and the length. A short message follows its header in the same
// MPI message. The bytes of a longer one follow on a second MPI tag, straight
// from the caller's memory, at the same time as the header. Headers of all
// peers are received as they arrive, so a waiting worker never blocks the
// workers that it waits for.
//
// MPI sends a short message at once, but asks the receiver before it sends a
// long one, which takes two to four latencies of a network. A long message to
// another machine therefore begins with pieces that MPI sends at once. If it is
// longer than these, MPI asks for the rest while they are transmitted.
#ifndef LACONIC_TRANSPORT_MPI_SESSION_H
#define LACONIC_TRANSPORT_MPI_SESSION_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>

#include "transport/mpi_settings.h"

enum {
    LACI_MPI_HEADER_TAG = 1,
    LACI_MPI_BULK_TAG,

    LACI_MPI_HEADER = 16,     // bytes of a header
    LACI_MPI_INLINE = 3072,   // longest message that follows its header
    LACI_MPI_PIECE = 1 << 30, // MPI counts in int
    LACI_MPI_PIECES = 64,     // of one message at most, after the eager ones
    // Bytes of a piece that MPI sends at once: less than 64 KiB, the limit of
    // Open MPI over TCP, and than what UCX allows, over 16,000 bytes.
    LACI_MPI_EAGER = 16000,
    LACI_MPI_EAGER_PIECES = 128, // of one message at most
    LACI_MPI_WHY = 400,          // room for the reason of an abort
    LACI_MPI_NOTE = 8,     // before a forwarded reason: who, and its suspect
    LACI_MPI_MACHINE = 64, // room for the name of a machine
};

typedef enum laci_mpi_kind {
    LACI_MPI_DATA,    // the bytes follow in the same MPI message
    LACI_MPI_BULK,    // `eager` follows; the bytes are on the other MPI tag
    LACI_MPI_ABORTED, // the reason follows; the tag is the suspected worker
    LACI_MPI_LEFT,    // the last message of a worker; may forward a reason
} laci_mpi_kind;

// One outgoing or incoming message. Messages are reused.
typedef struct laci_mpi_message {
    struct laci_mpi_message *next;      // free, lent, sent, or a peer's queue
    struct laci_mpi_message *receiving; // the next one whose bulk is arriving
    struct laci_mpi_message *allocated; // the one allocated before
    uint32_t peer;
    uint32_t tag;
    size_t len;
    uint32_t eager; // bytes of each of the first pieces; 0: none are eager
    const void *payload;
    uint8_t *bulk; // memory of its own for a long message
    size_t bulk_cap;
    bool claimed;      // by a receive of the running exchange
    int request_count; // 0: MPI does not use this message
    MPI_Request requests[1 + LACI_MPI_EAGER_PIECES + LACI_MPI_PIECES];
    _Alignas(16) uint8_t block[LACI_MPI_HEADER + LACI_MPI_INLINE];
} laci_mpi_message;

typedef struct laci_mpi_peer {
    laci_mpi_message *first; // arrived before a receive asked for them
    laci_mpi_message *last;
    uint32_t eager; // of messages to this peer
    bool left;
    bool aborted;
} laci_mpi_peer;

// The process of a worker. Workers with equal `machine` see each other's
// processes; an empty one is unknown.
typedef struct laci_mpi_process {
    char machine[LACI_MPI_MACHINE];
    int64_t pid;
    uint64_t started; // distinguishes it from a later process with this pid
} laci_mpi_process;

typedef struct laci_mpi_session {
    laci_mpi_settings settings; // first: the loader fills them in
    const laci_services *services;
    MPI_Comm comm;
    bool started; // this session initialised MPI
    uint32_t rank;
    uint32_t world;

    // More workers on this machine than it has processors.
    bool crowded;

    // MPI grants less than MPI_THREAD_SERIALIZED: only `owner` may call it.
    bool thread_bound;
    pthread_mutex_t lock; // protects the next four
    pthread_t owner;      // the last thread that used the handle
    bool in_call;         // it is inside a call
    atomic_bool aborted;  // set once, after `why`
    char why[LACI_MPI_WHY];
    bool announced; // the abort of this worker was sent to the others

    bool cause_known; // another worker aborted: its rank and its reason
    uint32_t cause_rank;
    char cause[LACI_MPI_WHY];
    uint32_t cause_suspect;
    uint32_t suspect; // the worker that this one waited for, or LAC_RANK_ANY

    laci_mpi_peer *peers;
    laci_mpi_process *processes;
    double process_check_at; // 0: not yet waiting
    uint32_t left_count;
    laci_mpi_message *allocated; // all messages
    laci_mpi_message *free;
    laci_mpi_message *lent;
    laci_mpi_message *sent[2]; // by the parity of the exchange
    unsigned parity;
    laci_mpi_message *header; // the message whose header is arriving
    laci_mpi_message *receiving;
    bool sum_pending; // a failed sum left a request: MPI may write to its x

    // The running exchange:
    lac_receive *receives;
    size_t receive_count;
    laci_mpi_message **claims; // by receive
    size_t claim_cap;
    size_t missing;
    double entered;    // when this exchange first had to wait; 0: not yet
    double idle_since; // 0: something has just arrived
    unsigned idle_polls;
} laci_mpi_session;

// laci_mpi_check converts an MPI error code to a status.
lac_status laci_mpi_check(
    const laci_mpi_session *s, int code, const char *what, uint32_t peer);

// laci_mpi_join as in the table of the transport.
lac_status laci_mpi_join(void *state, laci_membership *membership);

// laci_mpi_library as in the table of the transport.
lac_status laci_mpi_library(const void *state, char out[LAC_LIBRARY_SIZE]);

// laci_mpi_send starts to send one message and does not wait.
lac_status laci_mpi_send(
    laci_mpi_session *s, laci_mpi_kind kind, const lac_send *send);

// laci_mpi_collect_sent recycles the messages of `parity` that were sent.
lac_status laci_mpi_collect_sent(laci_mpi_session *s, unsigned parity);

// laci_mpi_progress receives what has arrived.
lac_status laci_mpi_progress(laci_mpi_session *s);

// laci_mpi_claim gives receive i a message that arrived before, if there is
// one.
lac_status laci_mpi_claim(laci_mpi_session *s, size_t i);

// laci_mpi_recycle makes a message available for reuse.
void laci_mpi_recycle(laci_mpi_session *s, laci_mpi_message *message);

// laci_mpi_check_causes fails if this worker or another one aborted.
lac_status laci_mpi_check_causes(const laci_mpi_session *s);

// laci_mpi_suspect fails with `reason`, because of `peer`, and sends the reason
// to the others. If the peer turns out to be alive and to have aborted because
// of another worker, it fails with the peer's reason instead.
lac_status laci_mpi_suspect(
    laci_mpi_session *s, uint32_t peer, const char *reason);

// laci_mpi_share_processes exchanges the processes of all workers, so that
// those on one machine can detect that another one has died.
lac_status laci_mpi_share_processes(laci_mpi_session *s);

// laci_mpi_check_processes fails if the process of a worker on this machine is
// gone. It looks a few times a second, or at once if `due`.
lac_status laci_mpi_check_processes(laci_mpi_session *s, double now, bool due);

// laci_mpi_finalised returns whether the program has finalised MPI: nothing of
// it may then be called.
bool laci_mpi_finalised(void);

// laci_mpi_abort as in the table of the transport.
void laci_mpi_abort(void *state, const char *why);

// laci_mpi_announce_abort sends the reason of this worker's abort to the
// others, once. The caller must be allowed to call MPI.
void laci_mpi_announce_abort(laci_mpi_session *s);

// laci_mpi_announce_leave sends everybody this worker's last message.
void laci_mpi_announce_leave(laci_mpi_session *s);

// laci_mpi_on_abort and laci_mpi_on_leave handle these messages of a peer.
void laci_mpi_on_abort(laci_mpi_session *s, const laci_mpi_message *message);
void laci_mpi_on_leave(laci_mpi_session *s, const laci_mpi_message *message);

// laci_mpi_backoff yields the processor, and sleeps after a while without
// progress; on a crowded machine it sleeps at once.
void laci_mpi_backoff(laci_mpi_session *s, double now);

// laci_mpi_await tests `request` until it is done. Fails with LAC_ERR_PEER
// after the setting `timeout`; the request is then still pending.
lac_status laci_mpi_await(laci_mpi_session *s, MPI_Request *request);

lac_status laci_mpi_exchange(
    laci_mpi_session *s, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline);

lac_status laci_mpi_allreduce(
    laci_mpi_session *s, float *x, size_t n, double deadline);

#endif
