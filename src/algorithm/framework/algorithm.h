// SPDX-License-Identifier: MIT
// The interface between an algorithm and the framework. The framework reads
// the spec, opens the compressor in the form the algorithm asks for, allocates
// its fields, checks every slice, finds non-finite values, and saves and
// loads. The algorithm does the arithmetic of a round: round.h.
#ifndef LACONIC_ALGORITHM_FRAMEWORK_ALGORITHM_H
#define LACONIC_ALGORITHM_FRAMEWORK_ALGORITHM_H

#include <laconic/algorithm.h>
#include <laconic/compress.h>

#include "algorithm/framework/shards.h"
#include "base/pool.h"
#include "collective/listing.h"
#include "kernels/kernels.h"

typedef struct laci_round laci_round;

// The step by which an algorithm uses the rounds of its inner one: outer.c.
typedef struct laci_outer_step {
    double lr; // 0: there is no such step
    double momentum;
    bool nesterov;
    double alpha;
} laci_outer_step;

// One worker, constant from open to close.
typedef struct laci_worker {
    const char *algorithm; // its name, for messages
    const char *spec;      // of the algorithm
    const lac_layout *layout;
    const lac_topology *topology; // NULL in the gradient family
    lac_compressor *compressor;   // NULL where there is none
    const char *compressor_spec;  // "" where there is none
    lac_compressor *server;       // for the way back, where there is one
    lac_compressor *identity;     // sends values as they are
    lac_algorithm *inner;         // that this one calls: inner.h; or NULL
    laci_outer_step outer;        // of the algorithm that calls this one
    const laci_kernels *kernels;
    laci_pool *pool; // shares loops over values; NULL for one thread
    uint32_t rank;
    uint32_t world;
    uint64_t seed;
    bool training;
    const uint32_t *peers; // the neighbours of all rounds, in order of rank
    uint32_t peer_count;
    laci_shards shards; // of a sharded algorithm
} laci_worker;

// One array of an algorithm's memory. It belongs to a tensor and, if it is
// kept for a neighbour, to that neighbour.
typedef struct laci_field {
    const char *name; // under which it is saved; NULL for working memory
    uint32_t peer;    // LAC_RANK_ANY if it belongs to no neighbour
    bool shared;      // has the same bits on all workers
    size_t count;
    float *values;      // NULL where `errors` holds them, and of a low field
                        // that is not allocated yet
    lac_memory *errors; // of a field requested with laci_plan_errors
    bool is_errors;
    bool is_low;     // requested with laci_plan_low
    bool is_used;    // a low field that a round or a load has written
    lac_shape shape; // of the tensor
} laci_field;

// The fields that a plan collects, tensor by tensor.
typedef struct laci_plan laci_plan;

// laci_plan_working requests `count` floats of working memory, which is not
// saved. The other calls request fields that are saved under `name`:
// laci_plan_own one that belongs to this worker, laci_plan_peer one that it
// keeps for a neighbour, and laci_plan_shared one that has the same bits on all
// workers between rounds. Only shared fields are loaded from the state of
// another worker. All fields are zero at open.
void laci_plan_working(laci_plan *plan, size_t count);
void laci_plan_own(laci_plan *plan, const char *name, size_t count);
void laci_plan_peer(
    laci_plan *plan, const char *name, uint32_t peer, size_t count);
void laci_plan_shared(laci_plan *plan, const char *name, size_t count);

// laci_plan_low requests a field that belongs to this worker and exists only
// once the tensor has come in double, see keeps_doubles: for what another field
// has beyond the precision of floats. It is zero at first. Low fields come
// after all others of the tensor.
void laci_plan_low(laci_plan *plan, const char *name, size_t count);

// laci_plan_errors requests the error memory of the tensor for the worker's
// compressor. It belongs to this worker and is saved under `name` as plain
// values.
void laci_plan_errors(
    laci_plan *plan, const char *name, const laci_worker *w, size_t tensor);

static inline lac_shape laci_tensor_shape(const laci_worker *w, size_t tensor)
{
    return lac_layout_tensor(w->layout, tensor)->shape;
}

static inline size_t laci_tensor_values(const laci_worker *w, size_t tensor)
{
    return lac_shape_values(laci_tensor_shape(w, tensor));
}

// laci_tensor_bound returns the most bytes of a payload of `c` for a tensor.
static inline size_t laci_tensor_bound(
    const laci_worker *w, const lac_compressor *c, size_t tensor,
    lac_scope_kind scope)
{
    return lac_compressor_bound(c, laci_tensor_shape(w, tensor), scope);
}

// laci_body_size returns the bytes of a message with payloads of `c` for all
// tensors. laci_list_compressor marks the exchanges that are listed from now on
// as bounds if values decide about the bytes of such payloads.
size_t laci_body_size(
    const laci_worker *w, const lac_compressor *c, lac_scope_kind scope);
void laci_list_compressor(
    laci_listing *l, const lac_compressor *c, lac_scope_kind scope);

// A step size: a setting, or searched at the start. It is saved.
typedef struct laci_step_size {
    lac_number_or_word setting; // a number, or a word such as auto
    double value;               // in use; 0 until it is known
} laci_step_size;

// The operations of one algorithm. `state` holds the settings and what
// `configure` computes from them. A failed operation leaves fields and slices
// unchanged. Members that a family does not use are NULL.
typedef struct laci_algorithm_ops {
    lac_plugin plugin; // must be first
    lac_family family;
    bool takes_compressor;
    lac_form form;         // of the compressor
    bool fixed_graph;      // refuses topologies that vary
    bool takes_update;     // the local step must go through end
    bool plain_updates;    // which must be -rate times a gradient
    bool begin_saves;      // begin writes saved fields: a round that was begun
                           // must be ended
    bool scans;            // looks for non-finite values of `in` itself, before
                           // it sends anything: begin and mix or, without a
                           // begin, end, which then looks at updates too
    uint32_t payloads;     // of a tensor in a message; 0: one
    bool message_per_peer; // model family: each neighbour gets its own message
    bool scratch;          // uses round->scratch
    bool native_sums;      // gradient family: see laci_group_options
    bool streams_sums;     // gradient family: round->sums has no room for sums
                           // that laci_group_streams
    bool sharded;          // gradient family: every worker serves shards, and
                           // messages go to owners: laci_group_scatter
    bool keeps_doubles;    // model family: `end` reads the values of a double
                           // slice from `source`, changes them and writes
                           // them to `target`, so that they are not rounded
                           // to floats; all else sees the floats of `in`
    bool any_dtype;        // gradient family: converts the values of slices
                           // itself, has no state, and sums non-finite values
                           // like others; `in` that is not `given` marks an
                           // item that is zero in this sum
    bool infinite_sums;    // gradient family: a sum that overflows is a result
                           // where the policy is raw

    // Claims that the conformance suite tests.
    bool baseline;   // takes no compressor and is exact gossip, or the mean
    bool keeps_mean; // preserves the mean of workers with every compressor
    bool converges;  // brings workers close together with every compressor
    bool control;    // a negative control: promises neither, except with the
                     // identity
    bool inexact;    // is not exact with the identity either, because of a
                     // memory such as a momentum; updates move the mean at
                     // least as far as they reach
    bool rescales;   // updates move the mean along, by a factor of the settings

    const char *coarsens; // the setting, if any, with which workers may stay
                          // apart, as it ignores or leaves out values

    const char *groups; // a setting, if any, that changes no value: how the
                        // caller should divide the tensors into calls

    const char *late; // a setting that matters only after more rounds than the
                      // suite makes, if there is one

    // Gradient family: `reduce` detects non-finite values itself, in its first
    // message, and then returns LACI_SCAN before it sends anything. The
    // framework scans all values and calls it again. No field changes before
    // the first exchange has succeeded.
    bool finds_nonfinite;

    // Gradient family, optional: returns whether an item whose values are
    // finite can be reduced without overflow. Part of a scan.
    bool (*accepts)(const void *state, const laci_round *round, size_t i);

    // Optional: the form of the compressor, where settings decide about it.
    lac_form (*form_of)(const void *state);

    // Optional: the spec of a second compressor, for the way back. The
    // framework opens it like the first; "" means the same.
    const char *(*server)(const void *state);

    // Optional: the spec of another algorithm, worker->inner. The framework
    // opens it with the compressor that the user gives: see inner.h.
    const char *(*inner)(const void *state);

    // Exact gossip, optional: the factor r of x += r (W - I) x in a round.
    double (*gossip_rate)(const void *state);

    // Optional: returns whether a vector of n values is viewed as the matrix
    // `folded`, see laci_fold. The worker's layout and the items then have that
    // shape.
    bool (*folds)(const void *state, size_t n, lac_shape folded);

    // Optional: checks the settings together with the worker.
    lac_status (*configure)(void *state, const laci_worker *w);

    // Requests the fields of one tensor.
    void (*plan)(
        const void *state, const laci_worker *w, size_t tensor,
        laci_plan *plan);

    // The most payload bytes of a tensor in a message of a round, and of the
    // start. NULL where nothing is sent in messages, or only shards are.
    size_t (*message_bound)(
        const void *state, const laci_worker *w, size_t tensor);
    size_t (*start_bound)(
        const void *state, const laci_worker *w, size_t tensor);

    // Gradient family: the most floats of a tensor in round->sums. NULL where
    // nothing is summed.
    size_t (*sum_bound)(const void *state, const laci_worker *w, size_t tensor);

    // Optional: starts from the values of all tensors.
    lac_status (*start)(void *state, laci_round *round);

    // Optional: returns whether begin makes the exchange of the round and
    // leaves its result in saved fields. Then a round that was begun is saved
    // and loaded as such, and may be ended with other values: the caller may
    // make any number of local steps before. Otherwise begin does nothing.
    bool (*holds)(const void *state);

    // Model family. `begin` writes only fields, and only those that are not
    // saved unless begin_saves is set or the algorithm holds rounds.
    lac_status (*begin)(void *state, laci_round *round);
    lac_status (*end)(void *state, laci_round *round);

    // Model family, optional: begin and end in one, where each item's `in` and
    // `out` are the same array, with the same bits and fewer passes over it.
    lac_status (*mix)(void *state, laci_round *round);

    // Gradient family. Its first exchange uses the laci_nonfinite_* calls. When
    // it fails there, fields are unchanged, but error memories may have had the
    // values added: what was not delivered stays in them.
    lac_status (*reduce)(void *state, laci_round *round);

    // The cost of a round. The framework adds the memory.
    void (*cost)(const void *state, const laci_worker *w, lac_cost *out);

    // Lists the exchanges of round out->round, from shapes alone.
    void (*exchanges)(
        const void *state, const laci_worker *w, laci_listing *out);

    // Optional: the rounds after which these repeat, if they do not repeat
    // with the topology.
    uint32_t (*period)(const void *state, const laci_worker *w);

    // Optional: the step size of the algorithm.
    laci_step_size *(*step)(void *state);

    // Optional: writes a warning for the user about settings that do not suit
    // the worker, see lac_algorithm_warning.
    void (*warn)(
        const void *state, const laci_worker *w, char *out, size_t size);
} laci_algorithm_ops;

#endif
