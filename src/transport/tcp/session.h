// SPDX-License-Identifier: MIT
// The internals of the tcp module: a group of workers, seen by one of them.
//
// Every pair of workers has one connection. A message is a head of 16 bytes
// (kind, the caller's tag, length) and its bytes. Messages of all peers are
// read as they arrive, whether a receive waits for them or not, so a waiting
// worker never blocks the workers that it waits for.
//
// One thread at a time drives the connections, the owner of `engine`: the
// worker inside a call, or else the session's own thread, which takes over when
// the worker has been away for a while. Everything below is the owner's.
#ifndef LACONIC_TRANSPORT_TCP_SESSION_H
#define LACONIC_TRANSPORT_TCP_SESSION_H

#include <pthread.h>
#include <stdatomic.h>

#include "transport/tcp/connection.h"
#include "transport/tcp/hello.h"

enum {
    LACI_TCP_HEAD = 16, // bytes of a head
    LACI_TCP_WHY = 400, // room for the reason of an abort
    LACI_TCP_NOTE = 8,  // before a forwarded reason: who, and its suspect
    LACI_TCP_EVENTS = 64,
    LACI_TCP_AHEAD_BYTES = 256 << 20, // that a peer can run ahead
};

#define LACI_TCP_MESSAGE_MAX ((uint64_t)1 << 36)

typedef enum laci_tcp_kind {
    LACI_TCP_DATA,
    LACI_TCP_ABORTED, // the reason follows; the tag is the suspected worker
    LACI_TCP_LEFT,    // the last message of a worker; may forward a reason
    LACI_TCP_KINDS,
} laci_tcp_kind;

typedef struct laci_tcp_head {
    laci_tcp_kind kind;
    uint32_t tag;
    uint64_t len;
} laci_tcp_head;

// A message that arrives or has arrived. Messages are reused.
typedef struct laci_tcp_message {
    struct laci_tcp_message *next;      // free, lent, or a peer's queue
    struct laci_tcp_message *allocated; // the one allocated before
    laci_tcp_head head;
    uint64_t got;
    uint8_t *payload; // in `memory`, or in the buffer of a receive
    uint8_t *memory;
    size_t cap;
    bool claimed; // by a receive of the running exchange
} laci_tcp_message;

// A message that is sent. The bytes are the caller's, or `note`.
typedef struct laci_tcp_outgoing {
    struct laci_tcp_outgoing *next;      // free, or a peer's queue
    struct laci_tcp_outgoing *allocated; // the one allocated before
    uint8_t head[LACI_TCP_HEAD];
    const uint8_t *data;
    size_t len;
    size_t sent; // of head and data
    unsigned parity;
    bool borrowed; // from the caller: counts in `pending`
    uint8_t note[LACI_TCP_NOTE + LACI_TCP_WHY];
} laci_tcp_outgoing;

// Why a worker gave up. It is in its own words, or in those of a worker that
// it forwards.
typedef struct laci_tcp_word {
    bool given;
    uint32_t rank;    // whose words they are
    uint32_t suspect; // the worker that this one waited for, or LAC_RANK_ANY
    char text[LACI_TCP_WHY];
} laci_tcp_word;

typedef struct laci_tcp_peer {
    laci_tcp_connection *connection; // NULL: not yet, or not any more
    bool watched;                    // by epoll
    uint32_t watched_events;         // what epoll reports of it
    bool paused;                     // nothing is read: it is far ahead
    bool unusable;                   // nothing is read any more: a problem
    laci_tcp_outgoing *first_out;
    laci_tcp_outgoing *last_out;
    uint8_t head[LACI_TCP_HEAD];
    size_t head_got;
    laci_tcp_message *arriving;
    laci_tcp_message *first; // arrived before a receive asked for them
    laci_tcp_message *last;
    uint64_t queued; // these messages, and their bytes
    uint64_t queued_bytes;
    bool came;  // was connected when the group formed
    bool spoke; // a message has arrived
    bool left;
    bool aborted;
    bool lost; // its connection ended, and it had not left
    char loss[LACI_TCP_REASON];
    laci_tcp_word word; // the first one; this worker's too
} laci_tcp_peer;

typedef struct laci_tcp_session {
    laci_tcp_settings settings; // first: the library fills them in
    const laci_services *services;
    uint32_t rank;
    uint32_t world;
    laci_tcp_roster roster;
    laci_tcp_hello hello; // of this worker, except receiver and binding
    laci_tcp_tls tls;
    laci_tcp_peer *peers;
    bool partial; // workers may be missing: a check, not a run
    bool engine_open;
    int epoll;
    int kick; // an eventfd that wakes whoever drives

    pthread_mutex_t engine;
    pthread_cond_t rest; // the thread sleeps here while the worker drives
    pthread_t thread;
    bool threaded;         // the thread exists
    atomic_bool driven;    // the worker wants or has the engine
    atomic_bool in_thread; // the thread waits for events
    atomic_bool quit;
    double last_drive; // when the worker gave the engine back

    pthread_mutex_t lock; // protects `why` until `aborted` is set
    atomic_bool aborted;
    char why[LACI_TCP_WHY];
    bool announced; // the abort of this worker was sent to the others

    const laci_tcp_word *cause; // the first word of any worker; NULL: none
    double heard;               // when it was given
    bool accused;               // some worker suspects this one
    uint32_t suspect;           // of the abort of this worker
    double first_loss;          // when a worker was lost; 0: none was
    lac_status problem;         // of a message that cannot be taken
    char problem_text[LACI_TCP_WHY];
    double allowed; // seconds that the longest exchange was allowed to take

    laci_tcp_message *allocated; // all messages
    laci_tcp_message *free;
    laci_tcp_message *lent;
    laci_tcp_outgoing *allocated_out;
    laci_tcp_outgoing *free_out;
    unsigned parity;
    size_t pending[2]; // borrowed messages to send, by parity of the exchange
    uint64_t moved;    // grows with every progress
    bool maybe_ahead;  // some peer has sent more than this worker received

    // The running exchange:
    lac_receive *receives;
    size_t receive_count;
    laci_tcp_message **claims; // by receive
    size_t claim_cap;
    size_t missing;
} laci_tcp_session;

// join.c: laci_tcp_join as in the table of the transport. Its steps:
// laci_tcp_take_seat reads key and peers file and listens;
// laci_tcp_session_prepare makes what a session needs besides connections;
// laci_tcp_watch_all has all connections watched. A session that failed to join
// is released, like one that ends, by laci_tcp_session_release.
lac_status laci_tcp_join(void *state, laci_membership *membership);
lac_status laci_tcp_take_seat(
    laci_tcp_session *s, EVP_PKEY **key_out, int *listener_out);
lac_status laci_tcp_session_prepare(laci_tcp_session *s, EVP_PKEY *key);
lac_status laci_tcp_watch_all(laci_tcp_session *s);
void laci_tcp_session_release(laci_tcp_session *s);

// connect.c: laci_tcp_connect_all connects this worker with all others.
// Workers that have not come by `deadline` are a failure, except in a session
// that is `partial`: then `reasons[rank]` is why.
lac_status laci_tcp_connect_all(
    laci_tcp_session *s, int listener, double deadline,
    char (*reasons)[LACI_TCP_REASON]);

// messages.c: laci_tcp_post queues a message to `peer`; laci_tcp_push sends
// what a peer's connection takes; laci_tcp_pull reads what has arrived.
lac_status laci_tcp_post(
    laci_tcp_session *s, uint32_t peer, const laci_tcp_head *head,
    const void *data);
void laci_tcp_push(laci_tcp_session *s, laci_tcp_peer *p);
void laci_tcp_pull(laci_tcp_session *s, laci_tcp_peer *p);

// laci_tcp_head_read parses a head. Returns false and a reason if it breaks the
// format.
bool laci_tcp_head_read(
    const uint8_t bytes[LACI_TCP_HEAD], laci_tcp_head *out,
    char reason_out[LACI_TCP_REASON]);

// laci_tcp_claim gives receive i a message that arrived before, or that is
// arriving, if there is one. Failures are a problem of the session.
void laci_tcp_claim(laci_tcp_session *s, size_t i);

// laci_tcp_early returns the bytes of a peer that no receive has asked for.
uint64_t laci_tcp_early(const laci_tcp_peer *p);

// laci_tcp_next takes the oldest message of a peer that no receive has asked
// for, or returns NULL. laci_tcp_recycle makes a message available for reuse.
laci_tcp_message *laci_tcp_next(laci_tcp_peer *p);
void laci_tcp_recycle(laci_tcp_session *s, laci_tcp_message *message);

// laci_tcp_discard_unsent removes the messages to a peer of which nothing was
// sent: after a failure nobody needs them, and the reason is to arrive soon.
void laci_tcp_discard_unsent(laci_tcp_session *s, laci_tcp_peer *p);

// laci_tcp_drop ends the connection of a peer.
void laci_tcp_drop(laci_tcp_session *s, laci_tcp_peer *p);

// engine.c: laci_tcp_progress handles what is ready, and waits for it at most
// `wait_ms`; laci_tcp_watch adds a peer's connection to those that are watched.
void laci_tcp_progress(laci_tcp_session *s, int wait_ms);
bool laci_tcp_watch(laci_tcp_session *s, laci_tcp_peer *p);

// laci_tcp_pause_those_ahead decides from which peers nothing is read.
void laci_tcp_pause_those_ahead(laci_tcp_session *s);

// laci_tcp_rewatch adapts what is watched to what the peer waits for.
void laci_tcp_rewatch(laci_tcp_session *s, laci_tcp_peer *p);

// laci_tcp_engine_open, _start and _stop: the session's thread. laci_tcp_take
// and laci_tcp_give pass the engine between it and the worker.
lac_status laci_tcp_engine_open(laci_tcp_session *s);
void laci_tcp_engine_close(laci_tcp_session *s);
lac_status laci_tcp_engine_start(laci_tcp_session *s);
void laci_tcp_engine_stop(laci_tcp_session *s);
void laci_tcp_take(laci_tcp_session *s);
void laci_tcp_give(laci_tcp_session *s);
void laci_tcp_kick(laci_tcp_session *s);

// failure.c: laci_tcp_problem records the first message that cannot be taken;
// it has failed with `status` and a message.
void laci_tcp_problem(
    laci_tcp_session *s, lac_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// laci_tcp_check_causes fails if this worker or another one aborted,
// is lost, or sent what cannot be taken. Neither a lost worker nor a suspected
// one is reported at once: the reason why the first ended may still be on its
// way from another worker, and the second may still show that it is alive.
// laci_tcp_settle waits for that, and succeeds if there is no cause.
lac_status laci_tcp_check_causes(laci_tcp_session *s);
lac_status laci_tcp_settle(laci_tcp_session *s);

// laci_tcp_accuse sends all others that this worker gives up for `reason`,
// because of `peer`. The running exchange fails when that is settled.
void laci_tcp_accuse(laci_tcp_session *s, uint32_t peer, const char *reason);
void laci_tcp_abort(void *state, const char *why);
void laci_tcp_announce_abort(laci_tcp_session *s);
void laci_tcp_announce_leave(laci_tcp_session *s);

// laci_tcp_all_sent returns whether everything has been sent, and received by
// the machines of the peers.
bool laci_tcp_all_sent(const laci_tcp_session *s);

// laci_tcp_on_abort and laci_tcp_on_leave handle these messages of a peer;
// laci_tcp_on_end the end of its connection.
void laci_tcp_on_abort(
    laci_tcp_session *s, laci_tcp_peer *p, const laci_tcp_message *message);
void laci_tcp_on_leave(
    laci_tcp_session *s, laci_tcp_peer *p, const laci_tcp_message *message);
void laci_tcp_on_end(laci_tcp_session *s, laci_tcp_peer *p);

// exchange.c
lac_status laci_tcp_exchange(
    void *state, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline);

// rendezvous.c: workers without a peers file connect to worker 0 first, which
// sends all of them the list of the workers, with keys for this run.
lac_status laci_tcp_rendezvous_run(
    laci_tcp_session *s, EVP_PKEY **key_out, int *listener_out);

// check.c: as in the module's table.
lac_status laci_tcp_check(
    const laci_services *services, const laci_tcp_settings *settings,
    void (*report)(void *context, const lac_peer_report *peer), void *context);

#endif
