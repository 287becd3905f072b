// SPDX-License-Identifier: MIT
#ifndef LACONIC_ALGORITHM_H
#define LACONIC_ALGORITHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/exchange.h>
#include <laconic/layout.h>
#include <laconic/plugin.h>
#include <laconic/status.h>
#include <laconic/topology.h>
#include <laconic/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

// Algorithms average tensors over workers with little communication. A *model*
// algorithm gossips with its neighbours; a *gradient* algorithm gives all
// workers the same mean.
//
//     lac_algorithm_options o = lac_algorithm_options_default();
//     o.spec = "choco:gamma=0.4";
//     o.compressor = "sign";
//     o.layout = layout; o.topology = topology; o.transport = transport;
//     lac_algorithm_open(&a, &o);
//     lac_algorithm_start(a, slices, count);
//     for (round = 0; ; round++) {
//         lac_algorithm_mix(a, round, slices, NULL, count);
//     }
//     lac_algorithm_close(a);
//     lac_transport_leave(transport);
//
// All workers make the same calls in the same order.
//
// Memory: open allocates all of it; layout and topology must outlive the
// handle. Only conversions from another dtype than float32 need more: the first
// call with such slices allocates a copy of them, or fails with LAC_ERR_NOMEM.
// beer then has a larger state where they are float64; load allocates that too.
// The handle may be closed before its worker leaves the transport or after.
// Memory that peers may still read is then released by the next exchange of
// this worker on the transport, of whatever handle, or after it has left; after
// a failure only when it has left.
// Threads: a handle serves one thread at a time. It may move between threads
// if the transport may: see transport.h.

/// The types of values in a slice. Algorithms compute in float32 and keep their
/// state in it. Values of other types are converted to float32 when a call
/// reads them; results are rounded to nearest even when it writes them. Values
/// and results beyond the range of the new type become infinities, as by a
/// cast; NaN stays NaN. Two algorithms do more for doubles: allreduce sums them
/// in double, and beer changes them in double, by float32 steps. The replicas
/// that dcd and ecd keep of their neighbours do not have the rounding of a
/// float16 or bfloat16 model and drift from it: keep such a model in float32.
typedef enum lac_dtype {
    LAC_F32 = 0,
    LAC_F16 = 1,  ///< IEEE 754 binary16.
    LAC_BF16 = 2, ///< bfloat16, the upper half of a float32.
    LAC_F64 = 3,
} lac_dtype;

/// One tensor of a call. `in` and `out` have the dtype and its alignment; they
/// are the same array or do not overlap. Tensors of a call may have different
/// dtypes, but a tensor has the same one on all workers, and in begin and end.
typedef struct lac_slice {
    size_t tensor; ///< Its index in the layout.
    lac_dtype dtype;
    const void *in;
    void *out;
} lac_slice;

typedef enum lac_family {
    LAC_FAMILY_MODEL = 0,
    LAC_FAMILY_GRADIENT = 1,
} lac_family;

/// The policy of all workers when one of them has a tensor with a non-finite
/// value, or one that would make its error memory overflow, or when the sum of
/// a tensor over all workers overflows. Model algorithms can only stop. Such
/// tensors never reach an error memory.
typedef enum lac_nonfinite {
    /// Fail with LAC_ERR_INVALID; the message names the worker and the tensor,
    /// or the tensor whose sum overflows.
    /// A gradient algorithm can repeat the round with other gradients. The
    /// finite tensors of this call are already in the memory of error-feedback.
    LAC_NONFINITE_STOP = 0,
    /// Skip the round: results are zeros and the round is done. The finite
    /// tensors stay in the memory of error-feedback; powersgd, which writes its
    /// memory last, drops them.
    LAC_NONFINITE_SKIP = 1,
    /// Sum those tensors uncompressed, without touching their state, and reduce
    /// the others as usual. This needs memory for a copy of the model and of
    /// the memory of error-feedback, and a pass over that memory in every
    /// round.
    LAC_NONFINITE_RAW = 2,
    /// Make all results of the call NaN on all workers and leave the state as
    /// it was; the round is done. A loss scaler then skips the step everywhere.
    /// This needs a copy of the memory of error-feedback, and a pass over it in
    /// every round.
    LAC_NONFINITE_PROPAGATE = 3,
} lac_nonfinite;

/// The options of an algorithm. Start from lac_algorithm_options_default.
typedef struct lac_algorithm_options {
    size_t size;            ///< Of this struct, for later growth.
    const char *spec;       ///< Such as "choco:gamma=auto".
    const char *compressor; ///< NULL where the algorithm takes none.
    const lac_layout *layout;
    const lac_topology *topology; ///< Not needed by gradient algorithms.
    lac_transport *transport;
    uint64_t seed;    ///< Equal on all workers.
    uint64_t session; ///< Equal on all workers; differs between runs.
    double timeout;   ///< Seconds an exchange may take.
    bool training;    ///< gamma=auto then takes half of the fastest gamma.
    lac_nonfinite nonfinite;
    bool timing; ///< Measure lac_algorithm_waited.

    // For cost and exchanges without a transport.
    uint32_t workers;           ///< 0: those of the topology, or 1.
    const char *transport_name; ///< Such as "mpi" or "tcp"; NULL: one without
                                ///< an all-reduce of its own.

    uint32_t threads; ///< That compute the rounds of this worker, its own
                      ///< thread included; 0: one. All numbers give the same
                      ///< bits, and workers may differ.
} lac_algorithm_options;

/// lac_algorithm_options_init fills options[0..size) with the defaults: spec
/// "allreduce", seed 1, a timeout of 60 seconds, all else 0 or NULL. `size` is
/// sizeof(lac_algorithm_options) as the caller knows it, so that a program
/// works with a later library whose struct has grown.
LAC_API void lac_algorithm_options_init(
    lac_algorithm_options *options, size_t size);

/// lac_algorithm_options_default returns the defaults.
static inline lac_algorithm_options lac_algorithm_options_default(void)
{
    lac_algorithm_options options;
    lac_algorithm_options_init(&options, sizeof(options));
    return options;
}

typedef struct lac_algorithm lac_algorithm;

/// lac_algorithm_open prepares a worker. On failure `*out` is NULL.
/// Fails with LAC_ERR_NOTFOUND, LAC_ERR_INVALID (a setting, or an algorithm,
/// compressor and topology that do not fit together) or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status
lac_algorithm_open(lac_algorithm **out, const lac_algorithm_options *options);

/// lac_algorithm_close releases `a`, before its worker leaves the transport or
/// after. NULL is allowed.
LAC_API void lac_algorithm_close(lac_algorithm *a);

LAC_API lac_family lac_algorithm_family(const lac_algorithm *a);

/// lac_algorithm_gamma returns the step size in use, NaN where there is none.
LAC_API double lac_algorithm_gamma(const lac_algorithm *a);

/// lac_algorithm_warning returns a warning for the user about this choice of
/// algorithm and compressor, or NULL.
LAC_API const char *lac_algorithm_warning(const lac_algorithm *a);

/// lac_algorithm_use_kernels selects the kernels by name, like
/// lac_compressor_use_kernels. All give the same bits.
/// Fails with LAC_ERR_NOTFOUND, LAC_ERR_INVALID, or with LAC_ERR_UNSUPPORTED if
/// this machine cannot run them.
LAC_FALLIBLE lac_status
lac_algorithm_use_kernels(lac_algorithm *a, const char *name);

/// lac_algorithm_set_rate sets the learning rate of the local steps, for the
/// rounds that begin from now on; it is 1 at first. beer needs it; choco with a
/// trigger uses it, and powersgd with `high`, where all workers must set the
/// same. A program that calls this for every algorithm, before each round or
/// when the rate changes, loses nothing. It is not saved.
/// Fails with LAC_ERR_INVALID if it is not finite, or negative.
LAC_FALLIBLE lac_status lac_algorithm_set_rate(lac_algorithm *a, double rate);

/// lac_algorithm_start starts from the values in `slices`, which must be all
/// tensors of the layout. Some algorithms exchange them once.
/// Fails with LAC_ERR_INVALID, LAC_ERR_PEER or LAC_ERR_CORRUPT.
LAC_FALLIBLE lac_status
lac_algorithm_start(lac_algorithm *a, const lac_slice *slices, size_t count);

/// lac_algorithm_begin runs the part of a round that may overlap with the
/// gradient computation: it reads `in` and writes only the algorithm's state.
/// lac_algorithm_end finishes the round and writes the new values to `out`.
/// `updates`, if not NULL, holds for each slice the local step, which is added
/// to the values, or NULL; it is float32 for every dtype and must not overlap
/// `out`. Rounds count from 0
/// without gaps. A tensor is in a call once, and each of its rounds is begun
/// and ended once. Both fail with LAC_ERR_INVALID, LAC_ERR_PEER or
/// LAC_ERR_CORRUPT. A failed round leaves state and values as they were before
/// begin. Only the begin of choco, and of outer with a delay, changes saved
/// state: if its end fails, the round stays begun and can be ended with other
/// updates. outer with a delay allows any number of local steps between the
/// two: end reads `in` again, and the state may be saved.
LAC_FALLIBLE lac_status lac_algorithm_begin(
    lac_algorithm *a, uint64_t round, const lac_slice *slices, size_t count);
LAC_FALLIBLE lac_status lac_algorithm_end(
    lac_algorithm *a, uint64_t round, const lac_slice *slices,
    const float *const *updates, size_t count);

/// lac_algorithm_mix does begin and end in one call.
LAC_FALLIBLE lac_status lac_algorithm_mix(
    lac_algorithm *a, uint64_t round, const lac_slice *slices,
    const float *const *updates, size_t count);

/// lac_algorithm_takes_update returns whether the local step must be given as
/// `updates` (dcd, ecd, beer); otherwise it may also be applied after the
/// round.
LAC_API bool lac_algorithm_takes_update(const lac_algorithm *a);

/// lac_algorithm_reduce writes the mean over all workers, as the algorithm
/// approximates it, to every slice, with the same bits on all workers. It needs
/// no start. A call may have any of the tensors, the same on all workers. Their
/// grouping into calls does not change the results, except for the last bits of
/// allreduce where the transport has its own all-reduce for sums above 16 KiB.
/// A sum of finite values over all workers that overflows is handled by the
/// policy for non-finite values, on all workers alike. With LAC_NONFINITE_RAW
/// allreduce and error-feedback return an infinite sum, the others fail as with
/// LAC_NONFINITE_STOP. error-feedback empties the memory of a tensor whose sum
/// overflows. compressed adds shares of the mean, which do not overflow; it
/// makes the group fail if a compressor itself turns a finite value into an
/// infinity, as the scaling of random-k does near the largest float.
/// A worker that sends an infinity or NaN makes all workers fail with
/// LAC_ERR_CORRUPT and its name. In sums there are two exceptions: where the
/// transport sums by itself this counts as an overflow, and policies that pass
/// such values on (LAC_NONFINITE_PROPAGATE, and LAC_NONFINITE_RAW in allreduce
/// and error-feedback) do so.
/// Fails like lac_algorithm_end, and by LAC_NONFINITE_STOP. After a failure the
/// undelivered values stay in the memory of error-feedback; the rest of the
/// state and the values are unchanged. One exception: a failure of the network,
/// or a sum that overflows, in the middle of an allreduce over tcp may leave
/// some results written, also where they replace the gradient.
LAC_FALLIBLE lac_status lac_algorithm_reduce(
    lac_algorithm *a, uint64_t round, const lac_slice *slices, size_t count);

/// lac_algorithm_round returns the number of the next round of a tensor, whose
/// index must be below the count of the layout.
LAC_API uint64_t lac_algorithm_round(const lac_algorithm *a, size_t tensor);

/// lac_algorithm_begun returns whether this round was begun and not ended.
/// Rounds of a state that was loaded may be.
LAC_API bool lac_algorithm_begun(const lac_algorithm *a, size_t tensor);

/// The traffic that this worker has sent so far.
typedef struct lac_traffic {
    uint64_t payload_bytes;
    uint64_t wire_bytes;
    uint64_t messages;
} lac_traffic;

LAC_API lac_traffic lac_algorithm_traffic(const lac_algorithm *a);

/// lac_algorithm_waited returns the seconds this worker has spent in exchanges,
/// or 0 without the option `timing`.
LAC_API double lac_algorithm_waited(const lac_algorithm *a);

/// lac_algorithm_state_size returns the bytes of the saved state.
LAC_API size_t lac_algorithm_state_size(const lac_algorithm *a);

/// lac_algorithm_save writes the state to out[0..cap), between rounds.
/// Fails with LAC_ERR_SPACE, or with LAC_ERR_INVALID for a state that load
/// would refuse, between begin and end of choco or with a non-finite value, and
/// before the start of an algorithm that exchanges something there.
LAC_FALLIBLE lac_status
lac_algorithm_save(const lac_algorithm *a, uint8_t *out, size_t cap);

/// lac_algorithm_load replaces the state by a saved one and continues bit for
/// bit. The algorithm must be open with the settings of the saved one; it may
/// have started and done rounds, but none may be begun, except in outer with a
/// delay. The traffic is counted on.
/// Fails, having changed nothing, with LAC_ERR_CORRUPT or LAC_ERR_INVALID; the
/// message names the setting, tensor or worker that differs.
LAC_FALLIBLE lac_status
lac_algorithm_load(lac_algorithm *a, const uint8_t *in, size_t len);

/// Flags of lac_algorithm_load_with.
enum {
    /// Gradient algorithms only: accept the state of another worker, or of
    /// another number of workers. Rounds and what all workers share, such as
    /// the factors of powersgd, are loaded; what belongs to one worker, its
    /// error memory or momentum, becomes zero. The worker that saved the state
    /// loads all of it, if the number of workers is the same. After all workers
    /// have loaded the same state, they can continue.
    LAC_LOAD_OTHER_WORLD = 1,
};

/// lac_algorithm_load_with does the same with flags, or with 0.
LAC_FALLIBLE lac_status lac_algorithm_load_with(
    lac_algorithm *a, const uint8_t *in, size_t len, unsigned flags);

/// Flags of lac_cost.
enum {
    /// Updates must be -rate times a gradient, as of SGD without momentum, with
    /// the rate of lac_algorithm_set_rate (beer).
    LAC_COST_PLAIN_UPDATES = 1,
    /// Any number of local steps may come between two rounds. Without it every
    /// step is a round, of gradients.
    LAC_COST_LOCAL_STEPS = 2,
};

/// The cost of a round for one worker, from shapes alone, with all slices in
/// float32.
typedef struct lac_cost {
    double payload_bytes; ///< To one neighbour, or one contribution; a mean
                          ///< where rounds differ, a bound where it depends on
                          ///< the values.
    double messages;      ///< To all neighbours.
    double phases;        ///< Exchanges one after the other.
    size_t memory_bytes;  ///< State, messages and working memory that rounds
                          ///< of float32 touch.
    lac_family family;    ///< Only model algorithms need a topology. Of outer,
                          ///< that of its inner algorithm.
    uint64_t flags;       ///< Such as LAC_COST_PLAIN_UPDATES.
    uint32_t fragments;   ///< Of the tensors, for lac_algorithm_fragments. The
                          ///< rest is the cost of a round of all tensors in
                          ///< one call.
    uint32_t delay;       ///< Local steps from begin to end of a round.
    uint64_t reserved[2]; ///< 0. Room to grow.
} lac_cost;

/// lac_algorithm_cost writes the cost to `*out`. It needs no transport. Fails
/// like lac_algorithm_open.
LAC_FALLIBLE lac_status
lac_algorithm_cost(const lac_algorithm_options *options, lac_cost *out);

/// lac_algorithm_fragments writes the fragment of every tensor of the layout,
/// from 0 to `fragments` of the cost, to `out`, which has room for them. They
/// have about as many values each, and do not depend on the order of tensors.
/// outer is meant to be called for the tensors of one fragment at a time, each
/// at its own time within the local steps. It needs no transport. Fails like
/// lac_algorithm_open.
LAC_FALLIBLE lac_status
lac_algorithm_fragments(const lac_algorithm_options *options, uint32_t *out);

/// lac_algorithm_exchanges lists what the workers send in a round of all
/// tensors in float32, from shapes alone. Round r is that of number r modulo
/// `*period_out`; `*count_out` is the number of exchanges in a period, of which
/// the first `cap` are written to `out`, in order. The start, and
/// rounds of powersgd before start-iteration, are not listed. It needs no
/// transport; one that is given, or named, decides how sums are made.
/// Fails like lac_algorithm_open.
LAC_FALLIBLE lac_status lac_algorithm_exchanges(
    const lac_algorithm_options *options, lac_exchange *out, size_t cap,
    size_t *count_out, uint32_t *period_out);

/// lac_algorithms returns the algorithms, `*count_out` of them.
LAC_API const lac_plugin *const *lac_algorithms(size_t *count_out);

#ifdef __cplusplus
}
#endif

#endif
