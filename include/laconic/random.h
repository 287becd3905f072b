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

/// Who can derive a key. Whoever can need not be told what was drawn with it:
/// a random choice of indices is then never sent.
typedef enum lac_scope_kind {
    LAC_SCOPE_WORKER = 0, ///< One worker: independent noise.
    LAC_SCOPE_EDGE = 1,   ///< The two workers at the ends of an edge.
    LAC_SCOPE_SHARED = 2, ///< All workers.
} lac_scope_kind;

/// A scope with its owners' ranks, made by the three functions below.
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

/// What a key is for, so that two uses of one seed do not meet.
typedef enum lac_purpose {
    LAC_PURPOSE_COMPRESS = 1, ///< Rounding and choices inside a compressor.
    LAC_PURPOSE_INNER = 2,    ///< B of a compressor "A+B".
    LAC_PURPOSE_CHOICE = 3,   ///< Which values a random sparsifier keeps.
    LAC_PURPOSE_DATA = 4,     ///< Data made up for tests and measurements.
    LAC_PURPOSE_TOPOLOGY = 5, ///< Who is connected in a random network.
    LAC_PURPOSE_FACTOR = 6,   ///< Where factors of an edge begin.
    LAC_PURPOSE_SPLIT = 7,    ///< Which worker trains on which examples.
    LAC_PURPOSE_INITIAL = 8,  ///< Where the training of a model begins.
    LAC_PURPOSE_DROPOUT = 9,  ///< What a network leaves out in a step.
    LAC_PURPOSE_USER = 256,   ///< This and above are never used by laconic.
} lac_purpose;

/// 128 mixed bits, and who can derive them.
typedef struct lac_key {
    uint64_t low;
    uint64_t high;
    lac_scope_kind scope;
} lac_key;

/// lac_name_hash returns the number that stands for a tensor's name in keys.
LAC_API uint64_t lac_name_hash(const char *name);

/// lac_key_make mixes all that a draw may depend on.
LAC_API lac_key lac_key_make(
    uint64_t seed, uint32_t purpose, uint64_t round, lac_scope scope,
    uint64_t name_hash);

/// lac_key_draw returns 32 uniform bits: number `index` of `key`. The draws of
/// one key are all different.
LAC_API uint32_t lac_key_draw(const lac_key *key, uint32_t index);

/// lac_key_normal returns number `index` of nearly normal deviates of mean 0
/// and variance 1 (a sum of twelve uniform bytes, so never beyond 6). It uses
/// draws 3*index to 3*index + 2.
LAC_API float lac_key_normal(const lac_key *key, uint32_t index);

#ifdef __cplusplus
}
#endif

#endif
