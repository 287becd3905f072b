// SPDX-License-Identifier: MIT
// What an algorithm is made of. The framework reads the spec, opens the
// compressor in the form the algorithm asks for, lays out its state, checks
// every slice, scans for values that are not finite, and saves and loads; the
// algorithm does the arithmetic of a round.
#ifndef LACONIC_ALGORITHM_ALGORITHM_H
#define LACONIC_ALGORITHM_ALGORITHM_H

#include <laconic/algorithm.h>
#include <laconic/compress.h>

#include "collective/group.h"
#include "kernels/kernels.h"

// One array of an algorithm's memory: of a tensor and, where it is kept for a
// neighbour, of that neighbour.
typedef struct laci_field {
    const char *name; // under which it is saved; NULL for working memory
    uint32_t peer;    // LAC_RANK_ANY where it is not a neighbour's
    size_t count;
    float *values;      // NULL where they are in `errors`
    lac_memory *errors; // of a field asked for with laci_plan_errors, at open
    bool is_errors;
    lac_shape shape; // of the tensor
} laci_field;

// A payload where it lies in a message.
typedef struct laci_view {
    const uint8_t *bytes;
    size_t len;
} laci_view;

// What one worker works with. Everything lives until close.
typedef struct laci_worker {
    const lac_layout *layout;
    const lac_topology *topology; // NULL in the gradient family
    laci_group *group;            // NULL while only the cost is wanted
    lac_compressor *compressor;   // NULL where there is none
    const char *compressor_spec;  // to open another one like it
    const char *spec;             // of the algorithm
    lac_compressor *server;       // for the way back, where there is one
    lac_compressor *raw;          // the identity
    const laci_kernels *kernels;
    uint32_t rank;
    uint32_t world;
    uint64_t seed;
    bool training;
    const uint32_t *peers; // all that this worker ever talks to, in order
    uint32_t peer_count;
    laci_reader *readers; // room for one of every peer, or of every worker
    laci_view *views;     // of payloads that arrived: neighbour by neighbour
    laci_view *own;       // of payloads that this worker sent
    laci_writer *message; // being written by laci_gossip_put
    float *scratch;       // two tensors of the largest size
    float *sums;          // room for what sum_bound says of all tensors, and
                          // for LACI_SUM_NOTES floats more
    bool not_finite;      // some worker's values, found in this round
    bool must_look;       // set by an algorithm with finds_unfit
    laci_field *fields;
    size_t *first_field; // of each tensor
} laci_worker;

// Floats that a sum takes along behind its payload.
enum { LACI_SUM_NOTES = 1 };

// Collects the fields of one tensor while memory is planned.
typedef struct laci_plan laci_plan;

// laci_plan_field asks for `count` floats that are saved under `name`, or
// that are working memory if it is NULL. They are zeroed at open.
void laci_plan_field(
    laci_plan *plan, const char *name, uint32_t peer, size_t count);

// laci_plan_errors asks for the error memory of the tensor and the worker's
// compressor, saved under `name` as the values it stands for.
void laci_plan_errors(
    laci_plan *plan, const char *name, const laci_worker *w, size_t tensor);

// laci_fields returns the fields of a tensor in the order they were planned.
static inline laci_field *laci_fields(const laci_worker *w, size_t tensor)
{
    return &w->fields[w->first_field[tensor]];
}

// laci_tensor_key is the key of a tensor's compressor in a round.
lac_key laci_tensor_key(
    const laci_worker *w, size_t tensor, uint64_t round, lac_scope scope);

// laci_owner is the worker that serves a tensor in sharded algorithms.
static inline uint32_t laci_owner(const laci_worker *w, size_t tensor)
{
    return (uint32_t)(tensor % w->world);
}

// laci_worker_edges points at the neighbours of a round, as
// lac_topology_edges does.
uint32_t laci_worker_edges(
    const laci_worker *w, uint64_t round, const lac_edge **edges_out);

// A call's tensors, with the pointers typed.
typedef struct laci_item {
    size_t tensor;
    lac_shape shape;
    size_t n;
    const float *in;
    float *out;
    const float *update; // or NULL
} laci_item;

typedef struct laci_round {
    uint64_t number;
    const laci_item *items;
    size_t count;
    uint32_t unfit; // gradient family: of these, zeros in place of values that
                    // are not finite. Told in the first exchange: nonfinite.h
} laci_round;

// The operations of one algorithm. `state` holds the settings and what
// `configure` computes from them. A failed op leaves fields and slices as they
// were. Members that a family does not use are NULL.
typedef struct laci_algorithm_ops {
    lac_plugin plugin; // must be first
    lac_family family;
    bool takes_compressor;
    lac_form form;     // of the compressor
    bool fixed_graph;  // refuses topologies that vary
    bool takes_update; // the local step goes through end
    bool begin_saves;  // begin writes fields that are saved: a round that was
                       // begun has to be ended
    bool native_sums;  // gradient family: as laci_group_options has it
    bool sharded;      // gradient family: every tensor has an owner, and
                       // messages go to owners: laci_group_scatter

    // Gradient family: `reduce` finds values that are not finite by itself,
    // while it makes its first message. It then sets w->must_look and fails
    // before it has talked; the framework looks at all values and calls it
    // again. No field changes before the first exchange has succeeded.
    bool finds_unfit;

    // Optional: the spec of a second compressor, for the way back, that the
    // framework opens like the first; "" for the same.
    const char *(*server)(const void *state);

    // Optional: looks at the settings together with the worker.
    lac_status (*configure)(void *state, const laci_worker *w);

    // Asks for the fields of one tensor.
    void (*plan)(
        const void *state, const laci_worker *w, size_t tensor,
        laci_plan *plan);

    // The most bytes of payload a message has for one tensor.
    size_t (*message_bound)(
        const void *state, const laci_worker *w, size_t tensor);

    // The gradient family: the most floats of a tensor in one sum. NULL where
    // nothing is summed.
    size_t (*sum_bound)(const void *state, const laci_worker *w, size_t tensor);

    // Optional: starts from the values of all tensors.
    lac_status (*start)(void *state, laci_worker *w, const laci_round *round);

    // The model family. `begin` writes fields only, and only those that are
    // not saved unless begin_saves.
    lac_status (*begin)(void *state, laci_worker *w, const laci_round *round);
    lac_status (*end)(void *state, laci_worker *w, const laci_round *round);

    // The gradient family. Its first exchange goes through nonfinite.h. When
    // it fails there, fields are as they were, but error memories may have had
    // the values added: what was not delivered stays in them.
    lac_status (*reduce)(void *state, laci_worker *w, const laci_round *round);

    // What a round costs; memory is the framework's to add.
    void (*cost)(const void *state, const laci_worker *w, lac_cost *out);

    // Optional: where the step size in use is kept, 0 until it is known. It is
    // saved with the state.
    double *(*step)(void *state);
} laci_algorithm_ops;

#endif
