// SPDX-License-Identifier: MIT
// Opens a compressor for one shape, and passes a small tensor through it.
#ifndef LACONIC_TESTS_COMPRESSED_H
#define LACONIC_TESTS_COMPRESSED_H

#include "lac_test.h"

enum { COMPRESSED_CAP = 1024 }; // bytes of a payload

static inline lac_compressor *open_for(
    const char *spec, lac_form form, lac_shape shape)
{
    lac_compressor *c = NULL;
    assert_ok(lac_compressor_open(&c, spec, form));
    assert_ok(lac_compressor_reserve(c, shape));
    return c;
}

// y = C(x)
static inline void compress_with(
    lac_compressor *c, const lac_key *key, lac_shape shape, const float *x,
    float *y)
{
    uint8_t payload[COMPRESSED_CAP];
    size_t len = 0;
    assert_ok(
        lac_compressor_encode(c, key, shape, x, payload, COMPRESSED_CAP, &len));
    assert_ok(lac_compressor_decode(c, key, shape, payload, len, y));
}

#endif
