// SPDX-License-Identifier: MIT
// The compressor handle and the functions that the framework's files share.
#ifndef LACONIC_COMPRESS_COMPRESSOR_H
#define LACONIC_COMPRESS_COMPRESSOR_H

#include <laconic/compress.h>

#include "base/pool.h"
#include "kernels/kernels.h"

struct lac_compressor {
    const lac_compressor_ops *ops; // the copy below
    lac_compressor_ops own_ops;    // zeroes where the caller's table is older
    lac_sparsifier_ops own_sparsifier;
    const char *name; // as in the spec: the alias if the user wrote one
    uint32_t wire_id; // 0 for a compressor that the caller brought
    lac_form form;
    const laci_kernels *kernels;
    laci_pool *pool;       // for large tensors: own_pool, or of an algorithm
    laci_pool *own_pool;   // of lac_compressor_use_threads
    lac_compressor *inner; // compresses the values of a sparsifier, or NULL
    void *scratch;
    size_t scratch_size;
    void *state; // the settings, in the same block as this struct
};

// laci_check_length fails with LAC_ERR_CORRUPT unless a payload of `name` has
// the expected length.
lac_status laci_check_length(const char *name, size_t len, size_t expected);

// laci_shape_accepted returns whether `c` accepts tensors of `shape`.
bool laci_shape_accepted(const lac_compressor *c, lac_shape shape);

// laci_shape_check does the same with a message.
// Fails with LAC_ERR_INVALID.
lac_status laci_shape_check(const lac_compressor *c, lac_shape shape);

// laci_call_make returns the argument that the ops of `c` get for a tensor.
lac_call laci_call_make(
    const lac_compressor *c, const lac_key *key, lac_shape shape);

// laci_encode_check checks the arguments of an encode.
// Fails with LAC_ERR_INVALID or LAC_ERR_SPACE.
lac_status laci_encode_check(
    const lac_compressor *c, const lac_key *key, lac_shape shape,
    const float *x, const uint8_t *out, size_t cap);

// The functions below work on payloads of any compressor, "A+B" included, and
// do what the ops of that name do. Arguments were checked, and there is at
// least one value.
//
// laci_payload_decode, _decode_add and _finite take a payload that
// laci_payload_check of the same handle accepted, or that
// laci_payload_encode wrote, and do not check it again. Other calls on the
// handle may come between. Only when none does, a sparsifier finds the indices
// in its scratch and does not read them a second time.
size_t laci_payload_bound(
    const lac_compressor *c, lac_shape shape, lac_scope_kind scope);
size_t laci_payload_scratch(const lac_compressor *c, lac_shape shape);
size_t laci_payload_encode(
    const lac_compressor *c, const lac_call *call, const float *x,
    uint8_t *out);
lac_status laci_payload_check(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len);
void laci_payload_decode(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len, float *x);
void laci_payload_decode_add(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len, float a, float *y);

// laci_payload_encodes_parts returns whether a payload can be encoded in parts.
// laci_payload_encode_part encodes one; threads may do so at once.
// laci_payload_encode_key writes what precedes them, and returns the length of
// the payload.
bool laci_payload_encodes_parts(const lac_compressor *c);
void laci_payload_encode_part(
    const lac_compressor *c, const lac_call *call, const float *x,
    lac_part part, uint8_t *out);
size_t laci_payload_encode_key(
    const lac_compressor *c, const lac_call *call, uint8_t *out);

// laci_payload_has_parts returns whether parts of a payload can be decoded,
// laci_payload_decode_add_part does so: see decode_add_part of the ops.
bool laci_payload_has_parts(const lac_compressor *c);
void laci_payload_decode_add_part(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len, lac_part part, float a, float *y);

// laci_payload_finite returns whether every value that the payload decodes to
// is finite.
bool laci_payload_finite(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len);

// laci_payload_growth returns a bound of max|x - C(x)| / max|x| over all
// finite tensors x, infinity when none is known.
double laci_payload_growth(const lac_compressor *c, lac_shape shape);

// laci_payload_largest returns the largest magnitude of x for which C(x) is
// finite.
float laci_payload_largest(const lac_compressor *c, lac_shape shape);

// laci_growth_one is the growth op of compressors that never make an error
// larger than the largest value.
double laci_growth_one(const void *state, lac_shape shape, lac_form form);

// laci_error_memory_size returns what lac_memory_size returns for `shape`.
size_t laci_error_memory_size(const lac_compressor *c, lac_shape shape);

// laci_error_memory_settle does what lac_memory_settle does, with a payload
// that is known to be valid: it does not check it.
void laci_error_memory_settle(
    lac_memory *m, const lac_key *key, const uint8_t *in, size_t len);

// laci_error_memory_decay multiplies a settled memory by `decay`, from 0 to 1.
void laci_error_memory_decay(lac_memory *m, float decay);

#endif
