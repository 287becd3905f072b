// SPDX-License-Identifier: MIT
// What the files of the compressor framework share.
#ifndef LACONIC_COMPRESS_COMPRESSOR_H
#define LACONIC_COMPRESS_COMPRESSOR_H

#include <laconic/compress.h>

#include "kernels/kernels.h"

struct lac_compressor {
    const lac_compressor_ops *ops; // the copy below
    lac_compressor_ops own_ops;    // whole, even where the caller's are older
    lac_sparsifier_ops own_sparsifier;
    const char *name; // as the user wrote it: the alias, if it was one
    uint32_t wire_id; // 0 for a compressor the caller brought
    lac_form form;
    const laci_kernels *kernels;
    lac_compressor *inner; // where the values of a sparsifier go, else NULL
    void *scratch;
    size_t scratch_size;
    void *state; // the settings, in the same block as this struct
};

// laci_check_length fails with LAC_ERR_CORRUPT unless a payload of `name` has
// the expected length.
lac_status laci_check_length(const char *name, size_t len, size_t expected);

// laci_shape_check tells whether `c` takes tensors of `shape`.
// Fails with LAC_ERR_INVALID.
lac_status laci_shape_check(const lac_compressor *c, lac_shape shape);

// laci_error_memory_size is what lac_memory_size will be for `shape`.
size_t laci_error_memory_size(const lac_compressor *c, lac_shape shape);

// laci_call_make is what the ops of `c` are told about a tensor.
lac_call laci_call_make(
    const lac_compressor *c, const lac_key *key, lac_shape shape);

// laci_encode_check looks at the arguments of an encode.
// Fails with LAC_ERR_INVALID or LAC_ERR_SPACE.
lac_status laci_encode_check(
    const lac_compressor *c, const lac_key *key, lac_shape shape,
    const float *x, const uint8_t *out, size_t cap);

// Payloads of any compressor, "A+B" included. Arguments were checked, and
// there is at least one value. They do what the ops of that name do.
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

#endif
