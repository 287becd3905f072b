// SPDX-License-Identifier: MIT
#ifndef LACONIC_RANDOM_H
#define LACONIC_RANDOM_H

#include <stdint.h>

#include <laconic/status.h>

#ifdef __cplusplus
extern "C" {
#endif

// Random numbers without state: a draw is a function of a key and an index.
//
//     key = lac_key_make(seed, LAC_PURPOSE_COMPRESS, round,
//                        lac_scope_worker(rank),
//                        lac_name_hash("conv1.weight"));
//     u = lac_key_draw(&key, 17);
//
// Equal arguments give equal numbers on every machine, whatever was drawn
// before and however many threads draw. docs/format.md defines the bits: where
// two ends derive the same numbers, they are part of the wire format.

/// Which workers can derive a key. Numbers drawn with a key need not be sent to
/// a worker that can derive it: random indices are then not part of a payload.
typedef enum lac_scope_kind {
    LAC_SCOPE_WORKER = 0, ///< One worker: independent noise.
    LAC_SCOPE_EDGE = 1,   ///< The two workers at the ends of an edge.
    LAC_SCOPE_SHARED = 2, ///< All workers.
} lac_scope_kind;

/// A scope with the ranks of its workers. The three functions below make it.
typedef struct lac_scope {
    lac_scope_kind kind;
    uint32_t low;
    uint32_t high;
} lac_scope;

/// lac_scope_worker is the scope of worker `rank` alone.
LAC_API lac_scope lac_scope_worker(uint32_t rank);

/// lac_scope_edge is the scope of two workers, in either order.
LAC_API lac_scope lac_scope_edge(uint32_t rank, uint32_t other);

/// lac_scope_shared is the scope of all workers.
LAC_API lac_scope lac_scope_shared(void);

/// The purpose of a key. Two uses of one seed thus draw different numbers.
typedef enum lac_purpose {
    LAC_PURPOSE_COMPRESS = 1, ///< Rounding and choices inside a compressor.
    LAC_PURPOSE_INNER = 2,    ///< B of a compressor "A+B".
    LAC_PURPOSE_CHOICE = 3,   ///< The values that a random sparsifier keeps.
    LAC_PURPOSE_DATA = 4,     ///< Synthetic data for tests and measurements.
    LAC_PURPOSE_TOPOLOGY = 5, ///< The edges of a random network.
    LAC_PURPOSE_FACTOR = 6,   ///< The initial factors of an edge.
    LAC_PURPOSE_SPLIT = 7,    ///< The split of a data set over workers.
    LAC_PURPOSE_INITIAL = 8,  ///< The initial parameters of a model.
    LAC_PURPOSE_DROPOUT = 9,  ///< Dropout.
    LAC_PURPOSE_USER = 256,   ///< From here on for programs.
} lac_purpose;

/// 128 mixed bits, and which workers can derive them.
typedef struct lac_key {
    uint64_t low;
    uint64_t high;
    lac_scope_kind scope;
} lac_key;

/// lac_name_hash returns the hash of a tensor's name that keys use.
LAC_API uint64_t lac_name_hash(const char *name);

/// lac_key_make mixes its arguments into a key.
LAC_API lac_key lac_key_make(
    uint64_t seed, uint32_t purpose, uint64_t round, lac_scope scope,
    uint64_t name_hash);

/// lac_key_draw returns 32 uniform bits: draw number `index` of `key`. The 2^32
/// draws of a key are all different.
LAC_API uint32_t lac_key_draw(const lac_key *key, uint32_t index);

/// lac_key_normal returns nearly normal deviate number `index` of `key`, with
/// mean 0 and variance 1. It is a sum of twelve uniform bytes, so its magnitude
/// is at most 6. It uses draws 3*index to 3*index + 2.
LAC_API float lac_key_normal(const lac_key *key, uint32_t index);

#ifdef __cplusplus
}
#endif

#endif
