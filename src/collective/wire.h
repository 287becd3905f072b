// SPDX-License-Identifier: MIT
// The part that all patterns of a group share: its memory, and one exchange of
// frames. laci_wire_start begins a call; laci_wire_send and laci_wire_receive
// list the messages of an exchange; laci_wire_run performs it and checks the
// frames, whose bodies can then be read until the next one. Messages carry the
// step that the group has when they are framed or listed.
#ifndef LACONIC_COLLECTIVE_WIRE_H
#define LACONIC_COLLECTIVE_WIRE_H

#include "collective/frame.h"
#include "collective/group.h"
#include "collective/rules.h"
#include "kernels/kernels.h"
#include "transport/transport.h"

enum {
    // So many sums are made of large pieces after small ones were slow.
    LACI_PACE_WAIT = 256,

    // Parts of a share are added in blocks of so many bytes, which stay in the
    // first cache from the first addition to the copy in the message.
    LACI_SUM_BLOCK_SIZE = 8 * 1024,

    // After a failure peers may read what was sent until this worker leaves.
    // A third set takes whatever is written then.
    LACI_SET_AFTER_FAILURE = 2,
    LACI_SET_COUNT = 3,

    LACI_MESSAGE_SIZE = 512,
};

// A sum that takes more than a second for so many bytes is slow: it is limited
// by a network with less than about 2 Gbit/s, or by its latency. One between
// processes of a machine is ten times as fast, and thus not slow where it has a
// fraction of a processor.
#define LACI_PACE_FAST 200e6

// How pieces of sums are sent ahead. All workers have the same `small`.
typedef struct laci_pace {
    bool small;    // pieces of LACI_SUM_PIECE
    bool slow;     // the last sum, for this worker
    unsigned wait; // sums until small pieces may be tried again
} laci_pace;

struct laci_writer {
    uint8_t *message; // frame, then body
    size_t cap;       // room of the body
    size_t len;       // of the body
    size_t payload;   // of these, bytes of payloads
};

// Messages of one exchange. While the peers read one set, the next is written
// in the other.
typedef struct laci_set {
    laci_writer *writers;
    uint8_t *scratch; // messages of sums and broadcasts; none in the third
} laci_set;

struct laci_group {
    // Must be first: the transport takes the block over.
    laci_deferred_block deferred;
    lac_transport *transport;
    const laci_kernels *kernels;
    uint32_t rank;
    uint32_t world;
    double timeout;
    uint64_t identity; // without the subject
    laci_sum_rules rules;
    // Reading the clock for `waited` costs 5 % of a small message.
    bool timing;
    double waited;
    laci_counts counts;
    bool expects_finite; // see laci_group_expect_finite
    size_t nonfinite;    // see laci_group_nonfinite
    lac_status failure;  // the first
    char why[LACI_MESSAGE_SIZE];
    laci_frame frame; // of the current exchange, without the receiver
    laci_set sets[LACI_SET_COUNT];
    unsigned current; // the set that is written
    uint32_t slots;   // writers of a set
    uint32_t fan;     // room in sends and receives
    lac_send *sends;
    lac_receive *receives;
    uint16_t *steps; // of the receives
    uint32_t send_count;
    uint32_t receive_count;
    void *sum;      // the partial sum of recursive doubling
    size_t sum_at;  // where it begins in the numbers of the call
    size_t longest; // longer messages are refused before they are read
    laci_pace pace;
    void *partial;  // a stack of blocks, for sums of shares
    void *own;      // the block after it: a part of this worker
    uint8_t *inbox; // room for a message with a piece; NULL in worlds of 2^k
    float *floats;
};

// laci_wire_start begins the exchanges of one call. Fails if the group has
// failed before.
LACI_CHECKED lac_status
laci_wire_start(laci_group *g, uint64_t round, uint32_t phase);

// laci_wire_frame frames the body at message + LACI_FRAME_SIZE.
void laci_wire_frame(
    const laci_group *g, uint8_t *message, size_t len, uint32_t receiver);

// laci_wire_send and laci_wire_receive list a message of the next run; `len` is
// that of the body.
void laci_wire_send(
    laci_group *g, uint32_t peer, const uint8_t *message, size_t len);
void laci_wire_receive(laci_group *g, uint32_t peer);

// laci_wire_run exchanges the listed messages, checks those that arrived, and
// flips the sets. The messages it sent must not be written before the next run
// has returned.
LACI_CHECKED lac_status laci_wire_run(laci_group *g);

// laci_wire_body returns the body that receive number i of the last run
// brought, until the next is listed; laci_wire_expect checks its length.
size_t laci_wire_body(
    const laci_group *g, uint32_t i, const uint8_t **body_out);
LACI_CHECKED lac_status laci_wire_expect(
    laci_group *g, uint32_t i, size_t len, const uint8_t **body_out);

// laci_wire_waited adds the time since `start` to the time spent waiting.
void laci_wire_waited(laci_group *g, double start);

// laci_wire_count counts one contribution that was sent.
void laci_wire_count(laci_group *g, size_t payload, size_t body);

// laci_wire_flip switches to the other set, if nothing has failed.
void laci_wire_flip(laci_group *g);

#endif
