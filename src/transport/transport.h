// SPDX-License-Identifier: MIT
// What a transport provides, and what the layers below may ask of one beyond
// the public header.
#ifndef LACONIC_TRANSPORT_TRANSPORT_H
#define LACONIC_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/plugin.h>
#include <laconic/status.h>
#include <laconic/transport.h>

// Raised whenever laci_transport_ops, laci_services or laci_membership change:
// a module of another build is then refused instead of misread.
enum { LACI_TRANSPORT_ABI = 1 };

// What a module needs of the library. Modules link nothing of it, so that they
// load whether it is shared, linked into a program or loaded privately.
typedef struct laci_services {
    lac_status (*fail)(lac_status status, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
    void *(*zalloc)(size_t size);
    void (*free)(void *block);
    double (*now)(void);
} laci_services;

// What join is told. It sets rank and world where they are LAC_RANK_ANY.
typedef struct laci_membership {
    const laci_services *services;
    lac_hub *hub;
    uint32_t rank;
    uint32_t world;
} laci_membership;

// The table of a transport. `state` holds its settings, then what it likes.
typedef struct laci_transport_ops {
    lac_plugin plugin;
    uint32_t abi;

    // join fills what of the state is not settings. When it fails, the state
    // is dropped without leave.
    lac_status (*join)(void *state, laci_membership *membership);

    // leave delivers what was sent, waits for peers that still read it as
    // long as the last deadline allowed, and releases all but the state.
    void (*leave)(void *state);

    // exchange as in the public header. Arguments are checked: peers are in
    // the group and not this worker, buffers are there, the deadline is a
    // number. What was sent must be free again when the next one returns.
    lac_status (*exchange)(
        void *state, const lac_send *sends, size_t send_count,
        lac_receive *receives, size_t receive_count, double deadline);

    // abort makes this worker's exchanges fail with `why` and tells the
    // others. Any thread; also called once after each failed exchange, by the
    // thread of that exchange, to pass its sentence on. The first one counts.
    void (*abort)(void *state, const char *why);

    // kill_job ends the processes of the whole job. May be NULL: there is
    // nothing to end but this process.
    void (*kill_job)(void *state, int code);

    // allreduce_sum replaces x by the sum over all workers, the same bits on
    // each. May be NULL. After a failure x is lost, and borrowed until leave.
    lac_status (*allreduce_sum)(
        void *state, float *x, size_t n, double deadline);
} laci_transport_ops;

// laci_transport_has_allreduce tells whether the transport sums by itself;
// laci_transport_allreduce does it, and fails like an exchange.
bool laci_transport_has_allreduce(const lac_transport *t);
lac_status laci_transport_allreduce(
    lac_transport *t, float *x, size_t n, double deadline);

// A block that peers may still be reading when its owner is done with it. It
// begins with this struct.
typedef struct laci_kept {
    struct laci_kept *next;
} laci_kept;

// laci_transport_use says that such a block will come; laci_transport_keep
// takes it over, a block of laci_zalloc_aligned. It is released once this
// worker has left and nobody reads it any more, whichever comes first: handles
// may be closed before the transport is left, or after.
void laci_transport_use(lac_transport *t);
void laci_transport_keep(lac_transport *t, laci_kept *block);

// laci_monotonic_now returns seconds of CLOCK_MONOTONIC.
double laci_monotonic_now(void);

#endif
