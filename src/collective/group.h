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
// All workers concerned make the same calls, in the same order and with the
// same round and phase. When one of them fails, all of them fail with its
// message, now or in their next call. Every call after that fails too.
#ifndef LACONIC_COLLECTIVE_GROUP_H
#define LACONIC_COLLECTIVE_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/topology.h>
#include <laconic/transport.h>

#include "collective/number.h"

#define LACI_CHECKED __attribute__((warn_unused_result))

// The traffic this worker sent, as it is reported to users. Gossip counts every
// neighbour; a collective counts the contribution once, however it is moved.
// Calls that failed do not count.
typedef struct laci_counts {
    uint64_t payload; // compressors' payload bytes
    uint64_t wire;    // the same with lengths, bookkeeping and frames
    uint64_t messages;
} laci_counts;

typedef struct laci_group laci_group;

typedef struct laci_group_options {
    lac_transport *transport;              // see laci_group_close
    const struct laci_transport_ops *like; // see laci_sum_rules_make
    uint64_t session;
    uint64_t identity;     // hash of layout, algorithm and compressor
    double timeout;        // seconds an exchange may take
    uint32_t peers_max;    // most peers of one exchange
    uint32_t messages_max; // most different messages in one; 0: peers_max
    size_t message_max;    // most bytes of payloads in a message
    size_t tensors_max;    // most payloads in one message
    size_t sum_max;        // most floats in a sum; more are slower, not wrong
    size_t floats;         // of laci_group_floats
    bool native_sums;      // large sums may use the transport's all-reduce:
                           // faster, but the last bits then depend on the
                           // transport and on the values summed together
    bool timing;           // measure laci_group_waited
} laci_group_options;

// laci_group_open fails with LAC_ERR_INVALID or LAC_ERR_NOMEM; `*out` is then
// NULL.
LACI_CHECKED lac_status
laci_group_open(laci_group **out, const laci_group_options *options);

// laci_group_close ends the group, before its worker leaves the transport or
// after. Peers may still be reading its messages, so the transport releases
// their memory, see laci_transport_release. NULL is allowed.
void laci_group_close(laci_group *g);

// laci_group_floats returns options.floats zeroed floats for sums. After a
// failure a transport may write to them until its worker leaves, so they live
// as long as the messages.
float *laci_group_floats(laci_group *g);

// laci_group_sum_bytes returns the bytes of a group that its sums touch, for a
// world of this size, beside laci_group_floats.
size_t laci_group_sum_bytes(const laci_group_options *options, uint32_t world);

const laci_counts *laci_group_counts(const laci_group *g);

// laci_group_waited returns the seconds spent in exchanges, 0 without `timing`.
double laci_group_waited(const laci_group *g);

// laci_group_subject sets the subject of all later messages, a hash of the
// tensors of a call: messages of workers with another subject are refused.
void laci_group_subject(laci_group *g, uint64_t subject);

// laci_group_set_timeout sets the seconds that an exchange may take, and
// returns the old value.
double laci_group_set_timeout(laci_group *g, double seconds);

// A message being written: payloads one after the other, each with its length.
// There is one for each peer of the next exchange, or one for all of them. Two
// sets of buffers alternate, since peers may still read the last one.
typedef struct laci_writer laci_writer;

enum { LACI_LENGTH_SIZE = 8 }; // bytes of the length before a payload

// laci_group_message empties and returns message number `slot` of the next
// exchange or gather. One that is never requested is sent empty. No other
// exchange may come between the writing of messages and their sending.
// laci_group_writer returns the message as it is, so that several can be
// written in turns.
laci_writer *laci_group_message(laci_group *g, uint32_t slot);
laci_writer *laci_group_writer(laci_group *g, uint32_t slot);

// laci_writer_room returns room for one payload of at most `bound` bytes;
// laci_writer_commit appends the first `len` of them.
uint8_t *laci_writer_room(laci_writer *w, size_t bound);
void laci_writer_commit(laci_writer *w, size_t len);

// laci_writer_note appends bytes that are read like a payload but do not count
// as one, such as flags and counts. They use the room for payloads.
void laci_writer_note(laci_writer *w, const void *bytes, size_t len);

// One message that arrived: its payloads in the order they were written.
typedef struct laci_reader {
    const uint8_t *next;
    const uint8_t *end;
    uint32_t peer;
    uint32_t taken; // payloads so far
} laci_reader;

// laci_reader_next returns the next payload. Fails with LAC_ERR_CORRUPT when
// there is none, laci_reader_done when there are more.
LACI_CHECKED lac_status
laci_reader_next(laci_reader *r, const uint8_t **payload_out, size_t *len_out);
LACI_CHECKED lac_status laci_reader_done(const laci_reader *r);

// laci_reader_at_empty returns whether the next payload has no bytes.
bool laci_reader_at_empty(const laci_reader *r);

// laci_group_exchange sends one message to each of peers[0..count): number i,
// or number 0 to all of them when `same`; and receives one from each. Readers
// are valid until the next exchange of any kind. Frames are checked, payloads
// are not.
// Fails with LAC_ERR_PEER or LAC_ERR_CORRUPT.
LACI_CHECKED lac_status laci_group_exchange(
    laci_group *g, uint64_t round, uint32_t phase, const lac_edge *peers,
    uint32_t count, bool same, laci_reader *readers_out);

// laci_group_gather sends message number 0 to all other workers and receives
// theirs: readers_out[world], this worker's own included. Fails like an
// exchange.
LACI_CHECKED lac_status laci_group_gather(
    laci_group *g, uint64_t round, uint32_t phase, laci_reader *readers_out);

// laci_group_scatter sends message number k to worker k, for all workers, and
// receives theirs: readers_out[world], this worker's own included. All messages
// together count as one contribution. Fails like an exchange.
LACI_CHECKED lac_status laci_group_scatter(
    laci_group *g, uint64_t round, uint32_t phase, laci_reader *readers_out);

// laci_group_sum sums x[0..n + notes) over all workers, the same bits
// everywhere. It counts n floats of payload once; the `notes` after them travel
// along but are no payload. Fails like an exchange; x is then lost.
LACI_CHECKED lac_status laci_group_sum(
    laci_group *g, uint64_t round, uint32_t phase, float *x, size_t n,
    size_t notes);

// laci_group_expect_finite sets whether the values of sums are finite on all
// workers, which they are not at first. Then a peer that sends one that is not
// makes all workers fail with LAC_ERR_CORRUPT and its name; see finite.h. It
// returns the old value. All workers of a group have the same.
bool laci_group_expect_finite(laci_group *g, bool expected);

// laci_group_nonfinite returns the index of the first number of the last sum,
// notes included, that is not finite on any worker: SIZE_MAX if there is none.
// Where values are expected to be finite, it is the first that overflowed.
size_t laci_group_nonfinite(const laci_group *g);

// The values of a sum where their owner has them. load writes values
// [at, at + n) to x_out as numbers of the type, store takes their sums; both
// are called once for each value, in blocks of any order, and store after load.
typedef struct laci_number_stream {
    const laci_number *type;
    void *context;
    void (*load)(void *context, size_t at, size_t n, void *x_out);
    void (*store)(void *context, size_t at, size_t n, const void *sums);
} laci_number_stream;

// laci_group_streams returns whether a sum of n numbers can be streamed:
// whether the transport asks for pieces of sums, and it is larger than one of
// LACI_SUM_PIECE.
bool laci_group_streams(const laci_group *g, const laci_number *type, size_t n);

// laci_group_copied returns the most floats, without notes, that a sum of a
// group with these options may have and not be streamed: sum_max where none is.
size_t laci_group_copied(const laci_group_options *options, uint32_t world);

// laci_group_sum_stream is laci_group_sum of the n numbers of a stream and of
// one note, with the same bits, and without memory for a copy of them. If the
// sum of the notes is not zero, nothing is stored. Without a note, `note` is
// NULL. Fails like an exchange; some sums may then be stored.
LACI_CHECKED lac_status laci_group_sum_stream(
    laci_group *g, uint64_t round, uint32_t phase,
    const laci_number_stream *stream, size_t n, float *note);

// laci_group_sum_f64 is laci_group_sum of doubles, without notes. It never uses
// the transport's own all-reduce.
LACI_CHECKED lac_status laci_group_sum_f64(
    laci_group *g, uint64_t round, uint32_t phase, double *x, size_t n);

// laci_group_sum_numbers is the same for numbers of any type. laci_group_max
// writes the largest of x[i] over all workers, floats from 0 up, with notes as
// in laci_group_sum.
LACI_CHECKED lac_status laci_group_sum_numbers(
    laci_group *g, uint64_t round, uint32_t phase, const laci_number *type,
    void *x, size_t n);
LACI_CHECKED lac_status laci_group_max(
    laci_group *g, uint64_t round, uint32_t phase, float *x, size_t n,
    size_t notes);

// laci_group_broadcast copies bytes[0..len) of worker `root` to all. Only the
// root counts them, and not as payload. Fails like an exchange; the bytes are
// then lost.
LACI_CHECKED lac_status laci_group_broadcast(
    laci_group *g, uint64_t round, uint32_t phase, uint32_t root, void *bytes,
    size_t len);

// laci_group_abort_on_failure forwards `status`. If it is a failure, the other
// workers fail with its message too, such as for a message that arrived but
// cannot be used.
LACI_CHECKED lac_status
laci_group_abort_on_failure(laci_group *g, lac_status status);

// laci_group_abort makes all workers fail with `why`. Any thread may call it.
void laci_group_abort(laci_group *g, const char *why);

#endif
