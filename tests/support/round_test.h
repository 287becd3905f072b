// SPDX-License-Identifier: MIT
// The tests of half and bfloat16, which both round a value to 16 bits. A struct
// holds the numbers in which they differ.
#ifndef LACONIC_TESTS_ROUND_TEST_H
#define LACONIC_TESTS_ROUND_TEST_H

#include "lac_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

enum { COUNT = 4096, FIVE = 5, BYTES = 2 * FIVE, SPECIALS_MAX = 16 };

// One format of 16 bits.
typedef struct round_format {
    const char *name;
    uint32_t wire_id;
    float golden[FIVE];
    uint8_t golden_payload[BYTES];
    size_t specials;
    uint32_t special[SPECIALS_MAX][2]; // input and result, by their bits
    float least_normal;
    double small_error;           // the most below the least normal number
    uint32_t first_field, fields; // exponents of its normal numbers
} round_format;

// The one that runs, set by run_round_tests.
static const round_format *format;

static const lac_key key = {1, 2, LAC_SCOPE_WORKER};

static inline lac_compressor *open_for(size_t n)
{
    lac_compressor *c;
    assert_ok(lac_compressor_open(&c, format->name, LAC_FORM_UNBIASED));
    assert_ok(lac_compressor_reserve(c, (lac_shape){n, 1}));
    return c;
}

static inline void pass(const float *x, float *y, size_t n)
{
    static uint8_t payload[2 * COUNT];
    const lac_shape shape = {n, 1};
    lac_compressor *const c = open_for(n);
    size_t len;
    assert_ok(lac_compressor_encode(
        c, &key, shape, x, payload, sizeof(payload), &len));
    assert_ok(lac_compressor_decode(c, &key, shape, payload, len, y));
    lac_compressor_close(c);
}

// The payload is a wire format: these bytes may never change.
static inline void payload_is_as_documented(void **state)
{
    (void)state;
    const lac_shape shape = {1, FIVE};
    uint8_t payload[BYTES];
    size_t len;
    lac_compressor *const c = open_for(FIVE);
    assert_ok(lac_compressor_encode(
        c, &key, shape, format->golden, payload, BYTES, &len));
    assert_int_equal(len, BYTES);
    assert_memory_equal(payload, format->golden_payload, BYTES);
    assert_int_equal(lac_compressor_wire_id(c), format->wire_id);
    lac_compressor_close(c);
}

static inline void special_values_are_rounded_as_documented(void **state)
{
    (void)state;
    float x[SPECIALS_MAX];
    float y[SPECIALS_MAX];
    for (size_t i = 0; i < format->specials; i++) {
        x[i] = laci_float_of(format->special[i][0]);
    }
    pass(x, y, format->specials);
    for (size_t i = 0; i < format->specials; i++) {
        assert_int_equal(laci_bits_of(y[i]), format->special[i][1]);
    }
}

// Below the least normal number all are equally far apart.
static inline void small_values_have_a_small_absolute_error(void **state)
{
    (void)state;
    float x[COUNT];
    float y[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        const float sign = i % 2 == 0 ? 1 : -1;
        x[i] = (float)i / COUNT * format->least_normal * sign;
    }
    pass(x, y, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(fabs((double)y[i] - (double)x[i]) <= format->small_error);
    }
}

// The claim holds for each value by itself: values of all exponents in the
// range, with random mantissas and signs.
static inline void error_is_as_claimed(void **state)
{
    (void)state;
    float x[COUNT];
    float y[COUNT];
    const lac_key data =
        lac_key_make(1, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t draw = lac_key_draw(&data, i);
        const uint32_t field =
            format->first_field + (draw >> 23) % format->fields;
        x[i] = laci_float_of((draw & 0x807fffff) | field << 23);
    }
    lac_compressor *const c = open_for(COUNT);
    const lac_guarantee law =
        lac_compressor_guarantee(c, (lac_shape){COUNT, 1});
    lac_compressor_close(c);
    assert_false(law.unbiased);
    double worst = 0;
    pass(x, y, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        const double error = ((double)y[i] - (double)x[i]) / (double)x[i];
        worst = fmax(worst, error * error);
    }
    assert_true(worst <= law.error);
    assert_true(worst > 0.9 * law.error);
}

static inline void decode_add_is_decoding_and_adding(void **state)
{
    (void)state;
    const float x[3] = {3.1f, -0.3f, 100.7f};
    const lac_shape shape = {3, 1};
    uint8_t payload[6];
    size_t len;
    float values[3];
    float y[3] = {0.1f, 0.2f, 0.3f};
    lac_compressor *const c = open_for(3);
    assert_ok(lac_compressor_encode(c, &key, shape, x, payload, 6, &len));
    assert_ok(lac_compressor_decode(c, &key, shape, payload, len, values));
    assert_ok(lac_compressor_decode_add(c, &key, shape, payload, len, 0.7f, y));
    assert_true(y[0] == 0.1f + 0.7f * values[0]);
    assert_true(y[1] == 0.2f + 0.7f * values[1]);
    assert_true(y[2] == 0.3f + 0.7f * values[2]);
    lac_compressor_close(c);
}

static inline void a_wrong_length_is_explained(void **state)
{
    (void)state;
    const uint8_t payload[7] = {0};
    char message[64];
    float y[3];
    (void)snprintf(
        message, sizeof(message), "%s: payload has 7 bytes, expected 6",
        format->name);
    lac_compressor *const c = open_for(3);
    assert_fails(
        lac_compressor_decode(c, &key, (lac_shape){3, 1}, payload, 7, y),
        LAC_ERR_CORRUPT, message);
    lac_compressor_close(c);
}

static inline void the_key_does_not_matter(void **state)
{
    (void)state;
    lac_compressor *const c = open_for(1);
    assert_int_equal(
        lac_compressor_traits(c, LAC_SCOPE_WORKER),
        LAC_TRAIT_DETERMINISTIC | LAC_TRAIT_ELEMENTWISE | LAC_TRAIT_FIXED_SIZE);
    lac_compressor_close(c);
}

static inline int run_round_tests(const round_format *tested)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payload_is_as_documented),
        cmocka_unit_test(special_values_are_rounded_as_documented),
        cmocka_unit_test(small_values_have_a_small_absolute_error),
        cmocka_unit_test(error_is_as_claimed),
        cmocka_unit_test(decode_add_is_decoding_and_adding),
        cmocka_unit_test(a_wrong_length_is_explained),
        cmocka_unit_test(the_key_does_not_matter),
    };
    format = tested;
    return cmocka_run_group_tests_name(tested->name, tests, NULL, NULL);
}

#endif
