// SPDX-License-Identifier: MIT
// bfloat16: payload, special values, law.
#include "lac_test.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"

enum { COUNT = 4096 };

static const lac_key key = {1, 2, LAC_SCOPE_WORKER};

static lac_compressor *open_for(size_t n)
{
    lac_compressor *c;
    assert_ok(lac_compressor_open(&c, "bfloat16", LAC_FORM_UNBIASED));
    assert_ok(lac_compressor_reserve(c, (lac_shape){n, 1}));
    return c;
}

static void pass(const float *x, float *y, size_t n)
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
static void payload_is_as_documented(void **state)
{
    (void)state;
    const float x[5] = {1, -2, 0.1f, FLT_MAX, 0x1p-133f};
    const uint8_t expected[10] = {0x80, 0x3f, 0x00, 0xc0, 0xcd,
                                  0x3d, 0x7f, 0x7f, 0x01, 0x00};
    const lac_shape shape = {1, 5};
    uint8_t payload[10];
    size_t len;
    lac_compressor *const c = open_for(5);
    assert_ok(lac_compressor_encode(c, &key, shape, x, payload, 10, &len));
    assert_int_equal(len, 10);
    assert_memory_equal(payload, expected, 10);
    assert_int_equal(lac_compressor_wire_id(c), 3);
    lac_compressor_close(c);
}

// Inputs and results, by their bits.
static void special_values_become_what_is_documented(void **state)
{
    (void)state;
    static const uint32_t table[][2] = {
        {0x00000000, 0x00000000}, // 0
        {0x80000000, 0x80000000}, // -0
        {0x00000001, 0x00000000}, // the least subnormal float
        {0x00008000, 0x00000000}, // a tie
        {0x00008001, 0x00010000}, // above it
        {0x3f808000, 0x3f800000}, // ties go to even
        {0x3f818000, 0x3f820000}, {0x7f7f0000, 0x7f7f0000}, // the largest
        {0x7f7f8000, 0x7f7f0000}, // would round to infinity
        {0xff7fffff, 0xff7f0000}, // -FLT_MAX
        {0x7f800000, 0x7f800000}, // infinity
        {0xff800000, 0xff800000}, {0x7fc00000, 0x7fc00000}, // NaN
        {0xff800001, 0xffc00000},                           // made quiet
    };
    enum { ROWS = sizeof(table) / sizeof(table[0]) };
    float x[ROWS];
    float y[ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        x[i] = laci_float_of(table[i][0]);
    }
    pass(x, y, ROWS);
    for (size_t i = 0; i < ROWS; i++) {
        assert_int_equal(laci_bits_of(y[i]), table[i][1]);
    }
}

// Below 2^-126 they are 2^-133 apart.
static void small_values_have_a_small_absolute_error(void **state)
{
    (void)state;
    float x[COUNT];
    float y[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        x[i] = (float)i / COUNT * 0x1p-126f * (i % 2 == 0 ? 1.0f : -1.0f);
    }
    pass(x, y, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(fabs((double)y[i] - (double)x[i]) <= 0x1p-134);
    }
}

// The claim holds for each value by itself: values of all exponents in the
// range, with random mantissas and signs.
static void error_is_as_claimed(void **state)
{
    (void)state;
    float x[COUNT];
    float y[COUNT];
    const lac_key data =
        lac_key_make(1, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t draw = lac_key_draw(&data, i);
        const uint32_t field = 1 + (draw >> 23) % 254;
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

static void decode_add_is_decoding_and_adding(void **state)
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

static void a_wrong_length_is_explained(void **state)
{
    (void)state;
    const uint8_t payload[7] = {0};
    float y[3];
    lac_compressor *const c = open_for(3);
    assert_fails(
        lac_compressor_decode(c, &key, (lac_shape){3, 1}, payload, 7, y),
        LAC_ERR_CORRUPT, "bfloat16: payload has 7 bytes, expected 6");
    lac_compressor_close(c);
}

static void the_key_does_not_matter(void **state)
{
    (void)state;
    lac_compressor *const c = open_for(1);
    assert_int_equal(
        lac_compressor_traits(c, LAC_SCOPE_WORKER), LAC_TRAIT_DETERMINISTIC);
    lac_compressor_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payload_is_as_documented),
        cmocka_unit_test(special_values_become_what_is_documented),
        cmocka_unit_test(small_values_have_a_small_absolute_error),
        cmocka_unit_test(error_is_as_claimed),
        cmocka_unit_test(decode_add_is_decoding_and_adding),
        cmocka_unit_test(a_wrong_length_is_explained),
        cmocka_unit_test(the_key_does_not_matter),
    };
    return cmocka_run_group_tests_name("compress.bfloat16", tests, NULL, NULL);
}
