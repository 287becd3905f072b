// SPDX-License-Identifier: MIT
// A group: the workers that run one algorithm together, seen by one of them.
// It owns the memory of messages, frames them, counts them, and offers the
// patterns that algorithms are made of. Nothing allocates after open.
//
//     w = laci_group_message(g, 0);
//     laci_writer_commit(w, encode(..., laci_writer_room(w, bound)));
//     laci_group_exchange(g, round, 0, edges, count, true, readers);
//     laci_reader_next(&readers[i], &payload, &len); ...
//     laci_reader_done(&readers[i]);
//
// Every call is made by all workers concerned, in the same order and with the
// same round and phase. When one of them finds something wrong, all of them
// fail with its sentence, now or in their next call; nothing works after that.
#ifndef LACONIC_COLLECTIVE_GROUP_H
#define LACONIC_COLLECTIVE_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/topology.h>
#include <laconic/transport.h>

#define LACI_CHECKED __attribute__((warn_unused_result))

// What went out, as users are told it: what this worker had to say. Gossip
// counts every neighbour; a collective counts the contribution once, however
// it is moved. Calls that failed do not count.
typedef struct laci_counts {
    uint64_t payload; // compressors' payload bytes
    uint64_t wire;    // the same with lengths, bookkeeping and frames
    uint64_t messages;
} laci_counts;

typedef struct laci_group laci_group;

typedef struct laci_group_options {
    lac_transport *transport; // see laci_group_close
    uint64_t session;
    uint64_t identity;     // hash of layout, algorithm and compressor
    double timeout;        // seconds an exchange may take
    uint32_t peers_max;    // most peers of one exchange
    uint32_t messages_max; // most different messages in one; 0: peers_max
    size_t message_max;    // most bytes of payloads in a message
    size_t tensors_max;    // most payloads in one message
    size_t sum_max;        // most floats in a sum; more are slower, not wrong
    bool native_sums;      // large ones may be the transport's own, if it has
                           // one: faster, but the last bits then depend on
                           // the transport and on what is summed together
    bool timing;           // measure laci_group_waited
} laci_group_options;

// laci_group_open fails with LAC_ERR_INVALID or LAC_ERR_NOMEM; `*out` is then
// NULL.
LACI_CHECKED lac_status
laci_group_open(laci_group **out, const laci_group_options *options);

// laci_group_close ends the group, before its worker leaves the transport or
// after. Peers may still be reading its messages, so the transport releases
// their memory. NULL is allowed.
void laci_group_close(laci_group *g);

uint32_t laci_group_rank(const laci_group *g);
uint32_t laci_group_world(const laci_group *g);
const laci_counts *laci_group_counts(const laci_group *g);

// laci_group_waited returns the seconds spent in exchanges, 0 without `timing`.
double laci_group_waited(const laci_group *g);

// laci_group_subject says what the messages from now on are about, a hash of
// the tensors of a call: workers that speak of something else are refused.
void laci_group_subject(laci_group *g, uint64_t subject);

// laci_group_set_timeout sets how many seconds an exchange may take, and
// returns what it was.
double laci_group_set_timeout(laci_group *g, double seconds);

// A message being written: payloads one after the other, each with its length.
// There is one for each peer of the next exchange, or one for all of them. The
// two sets of buffers alternate, since peers may still read the last one.
typedef struct laci_writer laci_writer;

// laci_group_message empties and returns message number `slot` of the next
// exchange or gather. One that is not asked for is sent empty. No other call
// may talk between the writing of messages and their sending.
laci_writer *laci_group_message(laci_group *g, uint32_t slot);

// laci_writer_room points at room for one payload of at most `bound` bytes;
// laci_writer_commit says how many of them were used.
uint8_t *laci_writer_room(laci_writer *w, size_t bound);
void laci_writer_commit(laci_writer *w, size_t len);

// laci_writer_note adds bytes that are read like a payload but do not count as
// one, such as flags and counts. They take of the room for payloads.
void laci_writer_note(laci_writer *w, const void *bytes, size_t len);

// One message that arrived: its payloads in the order they were written.
typedef struct laci_reader {
    const uint8_t *next;
    const uint8_t *end;
    uint32_t peer;
    uint32_t taken; // payloads so far
} laci_reader;

// laci_reader_next points at the next payload. Fails with LAC_ERR_CORRUPT when
// there is none, laci_reader_done when there are more.
LACI_CHECKED lac_status
laci_reader_next(laci_reader *r, const uint8_t **payload_out, size_t *len_out);
LACI_CHECKED lac_status laci_reader_done(const laci_reader *r);

// laci_group_exchange sends one message to each of peers[0..count): number i,
// or number 0 to all of them when `same`; and waits for one of each. Readers
// are valid until the next call that talks. Frames were checked, payloads were
// not.
// Fails with LAC_ERR_PEER or LAC_ERR_CORRUPT.
LACI_CHECKED lac_status laci_group_exchange(
    laci_group *g, uint64_t round, uint32_t phase, const lac_edge *peers,
    uint32_t count, bool same, laci_reader *readers_out);

// laci_group_gather sends message number 0 to all other workers and waits for
// theirs: readers_out[world], the own rank's included. Fails like an exchange.
LACI_CHECKED lac_status laci_group_gather(
    laci_group *g, uint64_t round, uint32_t phase, laci_reader *readers_out);

// laci_group_scatter sends message number k to worker k, for all of them, and
// waits for theirs: readers_out[world], the own rank's included. What the
// messages hold counts as one contribution. Fails like an exchange.
LACI_CHECKED lac_status laci_group_scatter(
    laci_group *g, uint64_t round, uint32_t phase, laci_reader *readers_out);

// laci_group_sum adds up x[0..n) over all workers, the same bits everywhere.
// It counts n floats of payload once. Fails like an exchange; x is then lost.
LACI_CHECKED lac_status laci_group_sum(
    laci_group *g, uint64_t round, uint32_t phase, float *x, size_t n);

// laci_group_sum_noting is the same for n floats of payload and `notes` more
// behind them that go along but do not count as payload.
LACI_CHECKED lac_status laci_group_sum_noting(
    laci_group *g, uint64_t round, uint32_t phase, float *x, size_t n,
    size_t notes);

// laci_group_sum_f64 is the same for a few doubles, which do not count: what
// is measured is not what is said.
LACI_CHECKED lac_status laci_group_sum_f64(
    laci_group *g, uint64_t round, uint32_t phase, double *x, size_t n);

// laci_group_broadcast copies bytes[0..len) of worker `root` to all. Only the
// root counts them, and not as payload. Fails like an exchange; the bytes are
// then lost.
LACI_CHECKED lac_status laci_group_broadcast(
    laci_group *g, uint64_t round, uint32_t phase, uint32_t root, void *bytes,
    size_t len);

// laci_group_abort_on_failure forwards `status`. When it is a failure, the
// other workers are made to fail with its sentence too: what arrived but cannot
// be used is refused by all.
LACI_CHECKED lac_status
laci_group_abort_on_failure(laci_group *g, lac_status status);

// laci_group_abort makes all workers fail with `why`. Any thread may call it.
void laci_group_abort(laci_group *g, const char *why);

#endif
