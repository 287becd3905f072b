// SPDX-License-Identifier: MIT
// A group: the workers that run one algorithm together, seen by one of them.
// It owns the memory of messages, frames them, counts them, and offers the
// patterns that algorithms are made of. Nothing allocates after open.
#ifndef LACONIC_COLLECTIVE_GROUP_H
#define LACONIC_COLLECTIVE_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/topology.h>
#include <laconic/transport.h>

// What went out, as CONTRACT defines it: a worker's own sends.
typedef struct laci_counts {
    uint64_t payload; // compressors' payload bytes
    uint64_t wire;    // all bytes handed to the transport, frames included
    uint64_t messages;
} laci_counts;

typedef struct laci_group laci_group;

typedef struct laci_group_options {
    lac_transport *transport;
    uint64_t session;
    uint64_t identity;  // hash of layout, algorithm and compressor
    double timeout;     // seconds an exchange may take
    uint32_t peers_max; // most peers of one exchange
    size_t message_max; // most bytes of a body
    size_t tensors_max; // most payloads in one message
} laci_group_options;

lac_status laci_group_open(laci_group **out, const laci_group_options *options);
void laci_group_close(laci_group *g);
uint32_t laci_group_rank(const laci_group *g);
uint32_t laci_group_world(const laci_group *g);
const laci_counts *laci_group_counts(const laci_group *g);

// A message being written: payloads one after the other, each with its length.
// There is one for each peer of the next exchange, or one for all of them. The
// two sets of buffers alternate, since peers may still read the last one.
typedef struct laci_writer laci_writer;

// laci_group_message returns the empty message number `slot` of the next
// exchange.
laci_writer *laci_group_message(laci_group *g, uint32_t slot);

// laci_writer_room points at room for one payload of at most `bound` bytes;
// laci_writer_commit says how many of them were used. `payload` bytes count as
// payload unless `raw` says that they are bookkeeping.
uint8_t *laci_writer_room(laci_writer *w, size_t bound);
void laci_writer_commit(laci_writer *w, size_t len);

// One message that arrived: its payloads in the order they were written.
typedef struct laci_reader {
    const uint8_t *next;
    const uint8_t *end;
    uint32_t peer;
} laci_reader;

// laci_reader_next points at the next payload. Fails with LAC_ERR_CORRUPT when
// there is none, laci_reader_done when there are more.
lac_status laci_reader_next(
    laci_reader *r, const uint8_t **payload_out, size_t *len_out);
lac_status laci_reader_done(const laci_reader *r);

// laci_group_exchange sends one message to each of peers[0..count): number i,
// or number 0 to all of them when `same`; and waits for one of each. Readers
// are valid until the next exchange. Frames were checked, payloads were not.
// Fails with LAC_ERR_PEER or LAC_ERR_CORRUPT; the group is then closed to
// further exchanges.
lac_status laci_group_exchange(
    laci_group *g, uint64_t round, uint32_t phase, const lac_edge *peers,
    uint32_t count, bool same, laci_reader *readers_out);

// laci_group_gather is an exchange of one message with all other workers:
// readers_out[world], the own rank's included.
lac_status laci_group_gather(
    laci_group *g, uint64_t round, uint32_t phase, laci_reader *readers_out);

// laci_group_sum adds up x[0..n) over all workers, the same bits everywhere.
// It counts n floats of payload once.
lac_status laci_group_sum(
    laci_group *g, uint64_t round, uint32_t phase, float *x, size_t n);

// laci_group_sum_f64 is the same for a few doubles, which do not count.
lac_status laci_group_sum_f64(
    laci_group *g, uint64_t round, uint32_t phase, double *x, size_t n);

// laci_group_broadcast sends body bytes of `root` to all.
lac_status laci_group_broadcast(
    laci_group *g, uint64_t round, uint32_t phase, uint32_t root, void *bytes,
    size_t len);

// laci_group_abort makes all workers fail with `why`.
void laci_group_abort(laci_group *g, const char *why);

#endif
