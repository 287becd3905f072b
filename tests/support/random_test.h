// SPDX-License-Identifier: MIT
// What the tests of random-k and random-block share.
#ifndef LACONIC_TESTS_RANDOM_TEST_H
#define LACONIC_TESTS_RANDOM_TEST_H

#include "compressed.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"

enum { CAP = 4096 };

static float numbers[CAP]; // 0, 1, 2, ...
static float decoded[CAP];
static uint8_t payload[4 * CAP];

// The setup of a group.
static inline int fill_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < CAP; i++) {
        numbers[i] = (float)i;
    }
    return 0;
}

static inline lac_key key_of(uint64_t seed, lac_scope scope)
{
    return lac_key_make(seed, LAC_PURPOSE_COMPRESS, 7, scope, 0);
}

static inline size_t encode(
    lac_compressor *c, lac_key key, lac_shape shape, const float *x)
{
    size_t len = 0;
    assert_ok(lac_compressor_encode(
        c, &key, shape, x, payload, sizeof(payload), &len));
    return len;
}

// A chi-square of d degrees of freedom exceeds d + 2 sqrt(10 d) + 20 with
// probability e^-10 at most (Laurent and Massart).
static inline void assert_chi_square(double sum, double freedom)
{
    assert_true(sum < freedom + 2 * sqrt(10 * freedom) + 20);
}

// Of 1, 2, 3, ... so many are kept, after so many bytes that code which. The
// second key decodes what the first has encoded.
static inline void check_kept(
    const char *spec, lac_shape shape, const lac_key keys[2], size_t head,
    size_t kept)
{
    const float *const x = numbers + 1;
    lac_compressor *const c = open_for(spec, LAC_FORM_PLAIN, shape);
    const size_t len = encode(c, keys[0], shape, x);
    assert_int_equal(len, head + 4 * kept);
    memset(decoded, 0xff, sizeof(decoded)); // no number
    assert_ok(lac_compressor_decode(c, &keys[1], shape, payload, len, decoded));
    size_t found = 0;
    for (size_t i = 0; i < lac_shape_values(shape); i++) {
        assert_true(decoded[i] == 0 || decoded[i] == x[i]);
        found += decoded[i] != 0;
    }
    assert_int_equal(found, kept);
    lac_compressor_close(c);
}

// Where all are kept, the payload is the values.
static inline void check_all_kept(const char *spec)
{
    const float x[5] = {1, NAN, -INFINITY, 0, -3};
    const lac_key key = key_of(1, lac_scope_worker(0));
    for (lac_form form = LAC_FORM_PLAIN; form <= LAC_FORM_UNBIASED; form++) {
        lac_compressor *const c = open_for(spec, form, (lac_shape){5, 1});
        assert_int_equal(encode(c, key, (lac_shape){5, 1}, x), 20);
        assert_memory_equal(payload, x, 20);
        assert_int_equal(encode(c, key, (lac_shape){1, 1}, x), 4);
        lac_compressor_close(c);
    }
}

// The unbiased form multiplies by n/k; the other one loses a part.
static inline void check_forms(
    const char *spec, size_t n, float factor, double lost)
{
    const float x[10] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3};
    const lac_shape shape = {n, 1};
    lac_compressor *const c = open_for(spec, LAC_FORM_UNBIASED, shape);
    const size_t len = encode(c, key_of(1, lac_scope_shared()), shape, x);
    assert_int_equal(len, 4 * (size_t)((float)n / factor));
    for (size_t at = 0; at < len; at += 4) {
        assert_true(laci_get_f32(payload + at) == 3 * factor);
    }
    const lac_guarantee g = lac_compressor_guarantee(c, shape);
    assert_true(g.unbiased && g.error == (double)factor - 1);
    lac_compressor_close(c);
    lac_compressor *const small = open_for(spec, LAC_FORM_CONTRACTIVE, shape);
    const lac_guarantee h = lac_compressor_guarantee(small, shape);
    assert_true(!h.unbiased && h.error == lost);
    lac_compressor_close(small);
}

static inline void check_bound(
    const char *spec, lac_shape shape, lac_scope_kind scope, size_t expected)
{
    lac_compressor *const c = open_for(spec, LAC_FORM_PLAIN, shape);
    assert_int_equal(lac_compressor_bound(c, shape, scope), expected);
    lac_compressor_close(c);
}

// The payload of 0, 1, ..., n - 1 is a wire format: these bytes may never
// change.
static inline void check_golden(
    const char *spec, size_t n, const uint8_t *expected, size_t len)
{
    const lac_key key = {0x0123456789abcdef, 42, LAC_SCOPE_WORKER};
    const lac_shape shape = {n, 1};
    lac_compressor *const c = open_for(spec, LAC_FORM_PLAIN, shape);
    assert_int_equal(encode(c, key, shape, numbers), len);
    assert_memory_equal(payload, expected, len);
    lac_compressor_close(c);
}

#endif
