// SPDX-License-Identifier: MIT
// The table of a transport, and the functions for the layers above that the
// public header does not offer.
#ifndef LACONIC_TRANSPORT_TRANSPORT_H
#define LACONIC_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/plugin.h>
#include <laconic/status.h>
#include <laconic/transport.h>

// Raised whenever laci_transport_ops, laci_services, laci_membership or the
// settings of a module change: a module of another build is then rejected
// instead of misread.
enum { LACI_TRANSPORT_ABI = 7 };

// The functions of the library that a module uses. A module does not link the
// library, so that it loads whether the library is shared, linked into a
// program or loaded privately.
typedef struct laci_services {
    lac_status (*fail)(lac_status status, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
    void *(*zalloc)(size_t size);
    void (*free)(void *block);
    double (*now)(void);
    const char *(*error)(void); // lac_error_message
} laci_services;

// The arguments of join, which sets rank and world where they are LAC_RANK_ANY.
typedef struct laci_membership {
    const laci_services *services;
    lac_hub *hub;
    uint32_t rank;
    uint32_t world;
    // What lac_tcp_join or lac_transport_join_with hands over; otherwise NULL.
    void *prepared;
} laci_membership;

// The table of a transport. `state` begins with its settings.
typedef struct laci_transport_ops {
    lac_plugin plugin;
    uint32_t abi;

    // join initialises the rest of the state. If it fails, the state is
    // released without leave.
    lac_status (*join)(void *state, laci_membership *membership);

    // leave delivers what was sent, waits for peers that still read it as
    // long as the last deadline allowed, and releases everything except the
    // state. It returns whether nobody uses lent memory any more. If not, a
    // peer may still read it, or MPI may still write to it.
    bool (*leave)(void *state);

    // exchange as in the public header. The arguments are checked: peers are
    // in the group and not this worker, sends have data, and the deadline is
    // a number. When the next exchange succeeds, what was sent is free again,
    // even if that exchange has other peers, or none.
    lac_status (*exchange)(
        void *state, const lac_send *sends, size_t send_count,
        lac_receive *receives, size_t receive_count, double deadline);

    // abort makes this worker's exchanges fail with `why` and announces it to
    // the others. Any thread may call it. It is also called once after each
    // failed exchange, by the thread of that exchange, to announce its error.
    // The first call counts.
    void (*abort)(void *state, const char *why);

    // kill_job ends the processes of the whole job. May be NULL if there is
    // nothing to end but this process.
    void (*kill_job)(void *state, int code);

    // allreduce_sum replaces x by the sum over all workers, with the same bits
    // on each. May be NULL. After a failure x is undefined, and stays borrowed
    // until leave has returned true.
    lac_status (*allreduce_sum)(
        void *state, float *x, size_t n, double deadline);

    // The most bytes of a piece of a large sum, if exchange returns before its
    // messages are transmitted: pieces are then sent one exchange before they
    // are received. The latency is hidden if a piece takes longer to transmit.
    // 0 for one piece after the other.
    size_t sum_piece;

    // Whether messages arrive as they were sent, by construction: their bodies
    // are then not hashed.
    bool intact;

    // library writes the name and version of the library that this transport
    // uses, in one line, for lac_transport_library. It is called without join;
    // a module gets no state. May be NULL if there is no such library.
    lac_status (*library)(const void *state, char out[LAC_LIBRARY_SIZE]);

    // sockets as in the public header, for lac_transport_sockets. May be NULL
    // if there are none.
    size_t (*sockets)(void *state, int *out, size_t cap);
} laci_transport_ops;

// laci_receive_fits returns whether `receive` takes a message of `len` bytes.
static inline bool laci_receive_fits(const lac_receive *receive, uint64_t len)
{
    return (receive->buffer == NULL && receive->cap == 0) ||
           len <= receive->cap;
}

// laci_transport_join is lac_transport_join with a membership that the caller
// filled in, except for the services.
lac_status laci_transport_join(
    lac_transport **out, const char *spec, laci_membership *membership);

// laci_transport_join_ops does the same for a table without settings that is in
// no registry.
lac_status laci_transport_join_ops(
    lac_transport **out, const laci_transport_ops *ops,
    laci_membership *membership);

// laci_transport_find returns the table of a transport by name.
// Fails with LAC_ERR_NOTFOUND.
lac_status laci_transport_find(
    const char *name, const laci_transport_ops **out);

// laci_transport_settings parses `spec`, which must name `ops`, for a call that
// is not a join. laci_free_aligned releases `*handle_out`.
lac_status laci_transport_settings(
    const laci_transport_ops *ops, const char *spec, void **handle_out,
    void **state_out);

// The services of the library for modules.
extern const laci_services laci_transport_services;

// laci_transport_has_allreduce returns whether the transport has a native sum;
// laci_transport_allreduce runs it, and fails like an exchange.
bool laci_transport_has_allreduce(const lac_transport *t);
lac_status laci_transport_allreduce(
    lac_transport *t, float *x, size_t n, double deadline);

// laci_transport_sum_piece returns sum_piece of the transport's table.
size_t laci_transport_sum_piece(const lac_transport *t);

// laci_transport_is_intact returns whether messages need no hash of their body.
bool laci_transport_is_intact(const lac_transport *t);

// A block of laci_zalloc_aligned of which parts are lent to exchanges: peers
// may still read them, or a failed native sum may still write to them, when its
// owner is closed. It begins with this struct.
typedef struct laci_deferred_block {
    struct laci_deferred_block *next;
    uint64_t lent; // the last exchange that parts were lent to; 0: none
} laci_deferred_block;

// laci_transport_expect_block announces such a block; any number may be
// announced. laci_transport_lend is called before each exchange that parts of
// it are lent to. laci_transport_release hands it over, before or after this
// worker leaves: the handle stays valid until all announced blocks were handed
// over.
//
// The block is released at once if nothing is lent, and otherwise when the next
// exchange has succeeded, since every transport then has the bytes back that
// were sent before, whoever received them. A native sum does not ensure that.
// If an exchange or a sum has failed, or was aborted, the block is released
// once the worker has left and nobody uses lent memory any more. If that cannot
// be known, it is never released.
void laci_transport_expect_block(lac_transport *t);
void laci_transport_lend(lac_transport *t, laci_deferred_block *block);
void laci_transport_release(lac_transport *t, laci_deferred_block *block);

// laci_monotonic_now returns seconds of CLOCK_MONOTONIC.
double laci_monotonic_now(void);

#endif
