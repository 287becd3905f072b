// SPDX-License-Identifier: MIT
// The framework of all sparsifiers. The values that a sparsifier keeps, as a
// tensor of one column, go through another compressor: the identity when the
// spec has no '+'.
//
// Payload: the code of the indices, then the inner compressor's payload.
#ifndef LACONIC_COMPRESS_SPARSE_H
#define LACONIC_COMPRESS_SPARSE_H

#include "compress/compressor.h"

// laci_sparse_kept returns the shape of the values kept of `shape`.
lac_shape laci_sparse_kept(const lac_compressor *c, lac_shape shape);

unsigned laci_sparse_traits(const lac_compressor *c, lac_scope_kind scope);
lac_guarantee laci_sparse_guarantee(const lac_compressor *c, lac_shape shape);
size_t laci_sparse_bound(
    const lac_compressor *c, lac_shape shape, lac_scope_kind scope);
double laci_sparse_growth(const lac_compressor *c, lac_shape shape);
float laci_sparse_largest(const lac_compressor *c, lac_shape shape);
size_t laci_sparse_scratch(const lac_compressor *c, lac_shape shape);

// Encode and check leave the indices of their payload in the scratch. Decoding
// the same payload next takes them from there: reading them again would take
// as long as all the rest.
size_t laci_sparse_encode(
    const lac_compressor *c, const lac_call *call, const float *x,
    uint8_t *out);
lac_status laci_sparse_check(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len);
void laci_sparse_decode(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len, float *x);
void laci_sparse_decode_add(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len, float a, float *y);
bool laci_sparse_finite(
    const lac_compressor *c, const lac_call *call, const uint8_t *in,
    size_t len);

#endif
