// SPDX-License-Identifier: MIT
// A round, as an algorithm sees it: the tensors of the call, the payloads that
// it sends and receives, and working memory. Gradient and gossip algorithms
// send payloads in the same way:
//
//     laci_put(round, c, scope, i, values, message)    encode into a message
//     ... exchange, gather or scatter of the group ...
//     laci_take(round, c, scope, k, i)                 check what arrived
//     laci_view_add(laci_received(round, k, i), a, y)  y += a * C(x)
//
// A payload is checked once, by laci_take. All payloads of a round are taken
// before any is applied, and applying cannot fail.
#ifndef LACONIC_ALGORITHM_FRAMEWORK_ROUND_H
#define LACONIC_ALGORITHM_FRAMEWORK_ROUND_H

#include <stdatomic.h>

#include "algorithm/framework/algorithm.h"
#include "collective/group.h"

// One tensor of a call.
typedef struct laci_item {
    size_t tensor; // its index in the layout
    const char *name;
    uint64_t name_hash;
    lac_shape shape;
    size_t n;
    size_t given_n;     // of source and target; fewer than n in folded tensors
    lac_dtype dtype;    // of source and target
    const void *source; // the caller's `in`
    void *target;       // the caller's `out`
    // The same as floats. An algorithm with any_dtype does not use them, and
    // one with keeps_doubles does not use the `out` of doubles.
    const float *in;    // zeros in place of non-finite values
    const float *given; // gradient family: `in` as the caller gave it
    float *out;
    const float *update; // or NULL
    float max_magnitude; // gradient family: of `in`, unless finds_nonfinite
    laci_field *fields;  // in the order of the plan
} laci_item;

// A valid payload in a message, with all that decoding needs.
typedef struct laci_view {
    const lac_compressor *compressor;
    lac_call call;
    const uint8_t *bytes;
    size_t len;
} laci_view;

struct laci_round {
    const laci_worker *worker;
    laci_group *group;
    uint64_t number;
    const laci_item *items;
    size_t count;

    // Model family: the neighbours of this round.
    const lac_edge *edges;
    uint32_t edge_count;
    double self_weight;

    double rate; // of the local steps: lac_algorithm_set_rate

    // Gradient family: how many items hold zeros in place of non-finite
    // values, and whether an infinite sum is a result: see infinite_sums.
    uint32_t nonfinite;
    bool infinite_sums;

    laci_writer *message; // being written by laci_gossip_put
    laci_reader *readers; // messages that arrived: of neighbours or of workers
    laci_view *views;     // of payloads that arrived: see laci_received
    laci_view *sent;      // of this worker's payloads: see laci_sent
    lac_slice *slices;    // room for a call of worker->inner
    float *scratch;       // room for the largest tensor, or for the largest
                    // shard of a sharded algorithm; for ops with `scratch`
    float *sums; // room for sum_bound of all tensors and for
                 // LACI_SUM_NOTES floats more, see streams_sums
    void *room;  // see laci_round_room
    size_t room_size;
};

// laci_round_room returns `size` bytes of working memory, aligned to 64, until
// its next call. It is for memory that only some callers need: it allocates
// when the room of earlier calls is too small.
// Fails with LAC_ERR_NOMEM.
LACI_CHECKED lac_status
laci_round_room(laci_round *round, size_t size, void **out);

// laci_received returns the payload for item `i` in the message of reader `k`,
// laci_sent the one that this worker sent.
static inline laci_view *laci_received(
    const laci_round *round, uint32_t k, size_t i)
{
    return &round->views[k * round->count + i];
}

static inline laci_view *laci_sent(const laci_round *round, size_t i)
{
    return &round->sent[i];
}

// laci_sent_at returns how many bytes of the message are between the payloads
// of item 0 and of item `i` that this worker sends: where threads write them.
static inline size_t laci_sent_at(const laci_round *round, size_t i)
{
    return (size_t)(laci_sent(round, i)->bytes - laci_sent(round, 0)->bytes);
}

// laci_view_make returns a view without bytes: of item `i`, compressed by `c`
// with a key of this scope; laci_view_shard that of a shard.
laci_view laci_view_make(
    const laci_round *round, const lac_compressor *c, size_t i,
    lac_scope scope);
laci_view laci_view_shard(
    const laci_round *round, const lac_compressor *c, const laci_shard *shard,
    lac_scope scope);

// laci_view_put encodes `values` into `message` and points the view at the
// payload. Encoding cannot fail: open reserved every shape. laci_put does the
// same for item `i`, with laci_sent(round, i) as the view.
void laci_view_put(laci_view *view, const float *values, laci_writer *message);
void laci_put(
    laci_round *round, const lac_compressor *c, lac_scope scope, size_t i,
    const float *values, laci_writer *message);

// laci_put_nothing appends an empty payload for item `i` instead: the receiver
// takes it with laci_take_some. The view is then of no values, so that adding
// it does nothing. laci_view_omitted returns whether a view is such a one.
void laci_put_nothing(
    laci_round *round, const lac_compressor *c, lac_scope scope, size_t i,
    laci_writer *message);
bool laci_view_omitted(
    const laci_round *round, const laci_view *view, size_t i);

// laci_take points laci_received(round, k, i) at the next payload of reader
// `k` and checks it, its values included: they must be finite.
// Fails with LAC_ERR_CORRUPT; the message names the sender and the tensor.
LACI_CHECKED lac_status laci_take(
    laci_round *round, const lac_compressor *c, lac_scope scope, uint32_t k,
    size_t i);

// laci_view_take does the same for a view of the caller, which has all but its
// bytes.
LACI_CHECKED lac_status
laci_view_take(const laci_round *round, laci_view *view, uint32_t k, size_t i);

// laci_view_take_bytes does the same without looking at the values: the caller
// calls laci_view_expect_finite where they turn out not to be finite.
LACI_CHECKED lac_status laci_view_take_bytes(
    const laci_round *round, laci_view *view, uint32_t k, size_t i);
LACI_CHECKED lac_status laci_view_expect_finite(
    const laci_round *round, const laci_view *view, uint32_t k, size_t i);

// laci_view_read writes the values of a payload to x, laci_view_add adds `a`
// times them to y. laci_view_finite returns whether all of them are finite.
void laci_view_read(const laci_view *view, float *x);
void laci_view_add(const laci_view *view, float a, float *y);
bool laci_view_finite(const laci_view *view);

// Parts of a tensor that stay in the cache while a round works on them.
// laci_part_size returns the most values of one: SIZE_MAX, which makes a tensor
// one part, if `c` cannot decode parts.
size_t laci_part_size(const lac_compressor *c);

// laci_part_values returns the values of the part of a tensor of n values that
// begins at `first`, of which there are at most `part`.
static inline size_t laci_part_values(size_t n, size_t first, size_t part)
{
    return n - first < part ? n - first : part;
}

// A loop over the values of items, which the threads of a worker share.
typedef struct laci_loop {
    void *context;
    const laci_round *round;
    atomic_size_t failed; // the first item that laci_loop_fail was called for
} laci_loop;

// The body of a loop: one part of item `i`, values [first, first + n).
typedef void laci_loop_body(laci_loop *loop, size_t i, size_t first, size_t n);

// laci_split calls `body` for every part of the items [from, to); parts have at
// most `part` values. It returns the first item that failed, `to` if none did.
size_t laci_split(
    void *context, const laci_round *round, size_t from, size_t to, size_t part,
    laci_loop_body *body);
void laci_loop_fail(laci_loop *loop, size_t i);

// laci_view_add_part adds `a` times the values of the part that begins at
// `first` to y[0..n).
void laci_view_add_part(
    const laci_view *view, size_t first, size_t n, float a, float *y);

// laci_take_all takes the payloads of all items, in order, from the first
// `count` readers, each with its worker's scope, and checks that no message has
// more. Without `scan` it does not look at the values: see
// laci_view_take_bytes. When it fails, all workers fail.
LACI_CHECKED lac_status laci_take_all(
    laci_round *round, const lac_compressor *c, uint32_t count, bool scan);

// laci_take_some does the same, with `scan`, where payloads may be empty.
LACI_CHECKED lac_status
laci_take_some(laci_round *round, const lac_compressor *c, uint32_t count);

// For algorithms of the model family with `scans`: laci_nonfinite_refuse fails
// with LAC_ERR_INVALID, on all workers, since item `i` has a value that is not
// finite. laci_nonfinite_find does so if a value or an update of the item is
// not finite: for results that are not.
LACI_CHECKED lac_status
laci_nonfinite_refuse(const laci_round *round, size_t i);
LACI_CHECKED lac_status laci_nonfinite_find(const laci_round *round, size_t i);

// Non-finite values in the gradient family. Before `reduce` sees a round, the
// framework replaces every tensor with such a value by zeros and counts them in
// round->nonfinite. The first exchange of `reduce` carries the count, by one of
// the calls below. If the sum over all workers is not zero, that call returns
// LACI_NONFINITE on all of them and `reduce` forwards it. The framework then
// acts by the user's policy (nonfinite.c).
//
// These results are greater than LAC_OK, so that LAC_TRY forwards them. They
// never reach a caller of the library.
#define LACI_NONFINITE ((lac_status)1)
#define LACI_SCAN      ((lac_status)2) // see finds_nonfinite

// A sum of finite values over all workers overflowed. `reduce` returns it, with
// a message by lac_fail, on all workers alike and before it changes any field.
// The sums below do so with a message of their own, and laci_nonfinite_later
// after any later sum of the round. laci_nonfinite_overflows writes a message
// that names item `i`.
#define LACI_OVERFLOW ((lac_status)3)

LACI_CHECKED lac_status laci_nonfinite_later(const laci_round *round);
LACI_CHECKED lac_status
laci_nonfinite_overflows(const laci_round *round, size_t i);

// Floats that the first sum carries after its payload.
enum { LACI_SUM_NOTES = 1 };

// laci_nonfinite_sum is laci_group_sum in phase 0. x has room for
// LACI_SUM_NOTES floats after the n values. laci_nonfinite_list_sum lists it.
LACI_CHECKED lac_status
laci_nonfinite_sum(const laci_round *round, float *x, size_t n);
void laci_nonfinite_list_sum(laci_listing *l, size_t n);

// laci_nonfinite_max does the same with laci_group_max.
LACI_CHECKED lac_status
laci_nonfinite_max(const laci_round *round, float *x, size_t n);
void laci_nonfinite_list_max(laci_listing *l, size_t n);

// laci_nonfinite_stream is laci_group_sum_stream in phase 0. It stores nothing
// where it returns LACI_NONFINITE.
LACI_CHECKED lac_status laci_nonfinite_stream(
    const laci_round *round, const laci_number_stream *stream, size_t n);

// laci_nonfinite_message empties and returns message number `slot`, which then
// begins with the count. laci_nonfinite_gather is laci_group_gather in phase 0
// into round->readers; it reads the counts.
laci_writer *laci_nonfinite_message(const laci_round *round, uint32_t slot);
LACI_CHECKED lac_status laci_nonfinite_gather(const laci_round *round);

// laci_nonfinite_list_gather lists the gather of messages that have `body`
// bytes without the count.
void laci_nonfinite_list_gather(laci_listing *l, size_t body);

// laci_nonfinite_counts is for first exchanges of another pattern, with
// messages from laci_nonfinite_message: it reads the counts from the readers of
// all workers. laci_nonfinite_count_size returns the bytes of a count in such a
// message.
LACI_CHECKED lac_status laci_nonfinite_counts(const laci_round *round);
size_t laci_nonfinite_count_size(void);

#endif
