// SPDX-License-Identifier: MIT
// Values in the dtypes of slices, and the floats that algorithms compute with.
// The framework converts the values of a call to floats before it calls the
// algorithm, and rounds the results when the call has succeeded. An algorithm
// with any_dtype uses laci_dtype_load and laci_dtype_store itself. One with
// keeps_doubles writes the results of double slices itself.
#ifndef LACONIC_ALGORITHM_FRAMEWORK_DTYPE_H
#define LACONIC_ALGORITHM_FRAMEWORK_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

#include <laconic/algorithm.h>

#include "kernels/kernels.h"

// laci_dtype_size returns the bytes of a value, 0 for an unknown dtype.
size_t laci_dtype_size(lac_dtype dtype);

const char *laci_dtype_name(lac_dtype dtype);

// laci_dtype_load converts values [at, at + n) of `in` to floats.
// laci_dtype_store rounds floats to nearest even and writes them there.
void laci_dtype_load(
    const laci_kernels *kernels, lac_dtype dtype, const void *in, size_t at,
    float *x_out, size_t n);
void laci_dtype_store(
    const laci_kernels *kernels, lac_dtype dtype, const float *x, void *out,
    size_t at, size_t n);

// laci_dtype_finite returns whether no value is an infinity or NaN.
bool laci_dtype_finite(
    const laci_kernels *kernels, lac_dtype dtype, const void *in, size_t n);

void laci_dtype_fill(
    const laci_kernels *kernels, lac_dtype dtype, float value, void *out,
    size_t n);

// laci_stage_load points `in`, `out` and `update` of the round's items at
// floats: those of the caller, or a copy of values with another dtype or of
// folded tensors, in which zeros follow. It also allocates the low fields of
// tensors in double, where the algorithm keeps doubles. laci_stage_store writes
// the results to the caller, except such doubles. load fails with
// LAC_ERR_NOMEM. laci_stage_room returns the bytes of a copy of n values.
size_t laci_stage_room(size_t n);
lac_status laci_stage_load(lac_algorithm *a);
void laci_stage_store(const lac_algorithm *a);

#endif
