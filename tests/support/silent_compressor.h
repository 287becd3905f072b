// SPDX-License-Identifier: MIT
// A compressor that a caller brings: it sends nothing and decodes zeros.
#ifndef LACONIC_TESTS_SILENT_COMPRESSOR_H
#define LACONIC_TESTS_SILENT_COMPRESSOR_H

#include <string.h>

#include <laconic/compress.h>

static inline lac_guarantee silent_guarantee(
    const void *state, lac_shape shape, lac_form form)
{
    (void)state, (void)shape, (void)form;
    return (lac_guarantee){.unbiased = false, .error = 1};
}

static inline size_t silent_bound(const void *state, lac_shape shape)
{
    (void)state, (void)shape;
    return 0;
}

static inline size_t silent_encode(
    const void *state, const lac_call *call, const float *x, uint8_t *out)
{
    (void)state, (void)call, (void)x, (void)out;
    return 0;
}

static inline lac_status silent_check(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)state, (void)call, (void)in;
    return len == 0 ? LAC_OK : lac_fail(LAC_ERR_CORRUPT, "length");
}

static inline void silent_decode(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float *x)
{
    (void)state, (void)in, (void)len;
    memset(x, 0, lac_shape_values(call->shape) * sizeof(*x));
}

static const lac_compressor_ops silent = {
    .plugin.size = sizeof(lac_compressor_ops),
    .plugin.name = "silent",
    .guarantee = silent_guarantee,
    .bound = silent_bound,
    .encode = silent_encode,
    .check = silent_check,
    .decode = silent_decode,
};

#endif
