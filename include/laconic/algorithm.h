// SPDX-License-Identifier: MIT
#ifndef LACONIC_ALGORITHM_H
#define LACONIC_ALGORITHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/layout.h>
#include <laconic/plugin.h>
#include <laconic/status.h>
#include <laconic/topology.h>
#include <laconic/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

// Algorithms make workers agree while they say little. A *model* algorithm
// gossips with its neighbours; a *gradient* algorithm gives all workers the
// same mean.
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
// All workers make the same calls in the same order. Memory: open allocates
// all of it; layout and topology must outlive the handle. The transport may be
// left before the handle is closed or after. Threads: a handle serves one
// thread at a time.

/// The kinds of values a slice may have.
typedef enum lac_dtype {
    LAC_F32 = 0,
} lac_dtype;

/// One tensor of a call. `in` and `out` may be the same.
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

/// What all workers do when one of them has a value that is not finite. Model
/// algorithms can only stop. Such values never reach an error memory.
typedef enum lac_nonfinite {
    /// Fail with LAC_ERR_INVALID and a sentence that names the worker and the
    /// tensor. A gradient algorithm can go on with the same round and other
    /// gradients; error-feedback has taken the finite tensors of this call into
    /// its memory.
    LAC_NONFINITE_STOP = 0,
    /// Leave the round out: results are zeros and the round is done. The
    /// finite tensors stay in the memory of error-feedback; powersgd, which
    /// writes its memory last, leaves them out as well.
    LAC_NONFINITE_SKIP = 1,
    /// Exchange those tensors as they are, their state untouched, and the
    /// others as usual. Needs memory for a copy of the state and of the model,
    /// and a pass over the state in every round.
    LAC_NONFINITE_RAW = 2,
} lac_nonfinite;

/// How an algorithm is set up. Fill one from lac_algorithm_options_default.
typedef struct lac_algorithm_options {
    size_t size;            ///< Of this struct, for later growth.
    const char *spec;       ///< Such as "choco:gamma=auto".
    const char *compressor; ///< NULL where the algorithm takes none.
    const lac_layout *layout;
    const lac_topology *topology; ///< Not needed by gradient algorithms.
    lac_transport *transport;
    uint64_t seed;    ///< Equal on all workers.
    uint64_t session; ///< Equal on all workers; tells runs apart.
    double timeout;   ///< Seconds an exchange may take.
    bool training;    ///< gamma=auto then takes half of what it finds.
    lac_nonfinite nonfinite;
    bool timing; ///< Measure lac_algorithm_waited.
} lac_algorithm_options;

/// lac_algorithm_options_init fills options[0..size) with the defaults: seed 1,
/// a timeout of 60 seconds, all else 0 or NULL. `size` is
/// sizeof(lac_algorithm_options) as the caller knows it, so that a program goes
/// on working with a library whose struct has grown.
LAC_API void lac_algorithm_options_init(
    lac_algorithm_options *options, size_t size);

/// lac_algorithm_options_default returns what lac_algorithm_options_init fills.
static inline lac_algorithm_options lac_algorithm_options_default(void)
{
    lac_algorithm_options options;
    lac_algorithm_options_init(&options, sizeof(options));
    return options;
}

typedef struct lac_algorithm lac_algorithm;

/// lac_algorithm_open prepares a worker. On failure `*out` is NULL.
/// Fails with LAC_ERR_NOTFOUND, LAC_ERR_INVALID (settings, or an algorithm,
/// compressor and topology that do not go together) or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status
lac_algorithm_open(lac_algorithm **out, const lac_algorithm_options *options);

/// lac_algorithm_close releases `a`, after the transport was left (or when it
/// never sent anything). NULL is allowed.
LAC_API void lac_algorithm_close(lac_algorithm *a);

LAC_API lac_family lac_algorithm_family(const lac_algorithm *a);

/// lac_algorithm_gamma returns the step size in use, NaN where there is none.
LAC_API double lac_algorithm_gamma(const lac_algorithm *a);

/// lac_algorithm_warning returns a sentence for the user about this choice of
/// algorithm and compressor, or NULL.
LAC_API const char *lac_algorithm_warning(const lac_algorithm *a);

/// lac_algorithm_use_kernels chooses the kernels by name: "portable", "avx2" or
/// "best", which is the default. All give the same bits.
/// Fails with LAC_ERR_NOTFOUND, or LAC_ERR_UNSUPPORTED on a machine without.
LAC_FALLIBLE lac_status
lac_algorithm_use_kernels(lac_algorithm *a, const char *name);

/// lac_algorithm_start begins from the values in `slices`, all tensors of the
/// layout. Some algorithms exchange them once.
/// Fails with LAC_ERR_INVALID, LAC_ERR_PEER or LAC_ERR_CORRUPT.
LAC_FALLIBLE lac_status
lac_algorithm_start(lac_algorithm *a, const lac_slice *slices, size_t count);

/// lac_algorithm_begin does what of a round can run beside the computation of
/// a gradient: it reads `in` and touches nothing but the algorithm's state.
/// lac_algorithm_end finishes the round: `out` becomes the new value of `in`.
/// `updates`, when not NULL, holds for each slice what the local step adds to
/// the values, or NULL. Rounds count from 0 and without gaps; a tensor comes
/// once in a call, and every round of it is begun and ended once.
/// Both fail with LAC_ERR_INVALID, LAC_ERR_PEER or LAC_ERR_CORRUPT; a failed
/// round leaves state and values as they were before it was begun. Only the
/// begin of choco has changed its state by the time an end may fail: that round
/// stays begun and can be ended with other updates.
LAC_FALLIBLE lac_status lac_algorithm_begin(
    lac_algorithm *a, uint64_t round, const lac_slice *slices, size_t count);
LAC_FALLIBLE lac_status lac_algorithm_end(
    lac_algorithm *a, uint64_t round, const lac_slice *slices,
    const float *const *updates, size_t count);

/// lac_algorithm_mix is begin and end.
LAC_FALLIBLE lac_status lac_algorithm_mix(
    lac_algorithm *a, uint64_t round, const lac_slice *slices,
    const float *const *updates, size_t count);

/// lac_algorithm_takes_update tells whether the local step has to go through
/// `updates` (dcd, ecd) or may as well follow the round.
LAC_API bool lac_algorithm_takes_update(const lac_algorithm *a);

/// lac_algorithm_reduce replaces every slice by the mean over all workers, as
/// far as the algorithm sends it, with the same bits everywhere. It needs no
/// start. Calls of a round may have any of the tensors, the same on all
/// workers: how they are grouped does not change results, but for the last bits
/// of allreduce where a transport does sums of more than 16 KiB by itself.
/// Fails like lac_algorithm_end, and by LAC_NONFINITE_STOP. What a failed round
/// did not deliver stays in the memory of error-feedback; the rest of the state
/// and the values are as they were.
LAC_FALLIBLE lac_status lac_algorithm_reduce(
    lac_algorithm *a, uint64_t round, const lac_slice *slices, size_t count);

/// What this worker has sent so far.
typedef struct lac_traffic {
    uint64_t payload_bytes;
    uint64_t wire_bytes;
    uint64_t messages;
} lac_traffic;

LAC_API lac_traffic lac_algorithm_traffic(const lac_algorithm *a);

/// lac_algorithm_waited returns the seconds this worker has spent in exchanges
/// with others; 0 unless the options asked for `timing`.
LAC_API double lac_algorithm_waited(const lac_algorithm *a);

/// lac_algorithm_state_size returns the bytes of the saved state.
/// lac_algorithm_save writes them, after the start and between rounds (load
/// refuses a state of choco from between begin and end);
/// lac_algorithm_load takes them up again, in an algorithm opened with the same
/// settings that was not started, and continues bit for bit.
/// Load fails, having changed nothing, with LAC_ERR_CORRUPT or LAC_ERR_INVALID
/// (the sentence says which setting, tensor or worker differs).
LAC_API size_t lac_algorithm_state_size(const lac_algorithm *a);
LAC_API void lac_algorithm_save(const lac_algorithm *a, uint8_t *out);
LAC_FALLIBLE lac_status
lac_algorithm_load(lac_algorithm *a, const uint8_t *in, size_t len);

/// What a round costs one worker, from shapes alone.
typedef struct lac_cost {
    double payload_bytes; ///< To one neighbour, or one's contribution; a mean
                          ///< where rounds differ, a bound where data decides.
    double messages;      ///< To all neighbours.
    double phases;        ///< Exchanges one after the other.
    size_t memory_bytes;  ///< State and working memory.
    lac_family family;    ///< Decides whether a topology matters.
} lac_cost;

/// lac_algorithm_cost needs no transport. Fails like lac_algorithm_open.
LAC_FALLIBLE lac_status
lac_algorithm_cost(const lac_algorithm_options *options, lac_cost *out);

/// lac_algorithms returns what can be named, `*count_out` of them.
LAC_API const lac_plugin *const *lac_algorithms(size_t *count_out);

#ifdef __cplusplus
}
#endif

#endif
