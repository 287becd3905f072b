// SPDX-License-Identifier: MIT
// Shared by the conformance tests of dtypes: the values of all tensors, each in
// its own dtype. A rotation gives every tensor another one.
#ifndef LACONIC_TESTS_DTYPES_H
#define LACONIC_TESTS_DTYPES_H

#include "cases.h"

#include <stdalign.h>

#include "kernels/convert.h"

enum { DTYPES = 4 };

static const size_t dtype_sizes[DTYPES] = {4, 2, 2, 8};

// The values of tensor t begin at offsets[t] * 8, so that all dtypes are
// aligned.
typedef struct typed_values {
    alignas(8) uint8_t bytes[VALUES * sizeof(double)];
} typed_values;

static inline lac_dtype dtype_of(size_t rotation, size_t tensor)
{
    return (lac_dtype)((tensor + rotation) % DTYPES);
}

// Cases with settings have the first rotation only.
static inline size_t rotations(const algorithm_case *c)
{
    return c->plain ? DTYPES : 1;
}

static inline void *typed_tensor(typed_values *v, size_t tensor)
{
    return v->bytes + offsets[tensor] * sizeof(double);
}

// Rounds the values of all tensors to their dtypes.
static inline void typed_store(typed_values *v, size_t rotation, const float *x)
{
    for (size_t t = 0; t < TENSORS; t++) {
        const size_t n = offsets[t + 1] - offsets[t];
        const float *const from = x + offsets[t];
        void *const to = typed_tensor(v, t);
        switch (dtype_of(rotation, t)) {
        case LAC_F32:
            memcpy(to, from, n * sizeof(float));
            break;
        case LAC_F16:
            laci_convert_portable.half.store(from, to, n);
            break;
        case LAC_BF16:
            laci_convert_portable.bfloat16.store(from, to, n);
            break;
        case LAC_F64:
            laci_store_doubles(from, to, n);
            break;
        }
    }
}

static inline void typed_load(typed_values *v, size_t rotation, float *x_out)
{
    for (size_t t = 0; t < TENSORS; t++) {
        const size_t n = offsets[t + 1] - offsets[t];
        const void *const from = typed_tensor(v, t);
        float *const to = x_out + offsets[t];
        switch (dtype_of(rotation, t)) {
        case LAC_F32:
            memcpy(to, from, n * sizeof(float));
            break;
        case LAC_F16:
            laci_convert_portable.half.load(from, to, n);
            break;
        case LAC_BF16:
            laci_convert_portable.bfloat16.load(from, to, n);
            break;
        case LAC_F64:
            laci_load_doubles(from, to, n);
            break;
        }
    }
}

// Rounds floats as their tensors would be.
static inline void typed_round(size_t rotation, float *x)
{
    typed_values v;
    typed_store(&v, rotation, x);
    typed_load(&v, rotation, x);
}

static inline void typed_slices(
    typed_values *in, typed_values *out, size_t rotation, lac_slice *slices)
{
    for (size_t t = 0; t < TENSORS; t++) {
        slices[t] = (lac_slice){
            t, dtype_of(rotation, t), typed_tensor(in, t),
            typed_tensor(out, t)};
    }
}

#endif
