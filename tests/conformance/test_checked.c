// SPDX-License-Identifier: MIT
// The internal functions for payloads that were checked: they decode without a
// second check, whatever happened in between, and know without decoding
// whether all values are finite. The growth that a compressor states holds.
#include "subjects.h"

#include <float.h>
#include <math.h>

#include "compress/compressor.h"

enum { ALTERED = 400 };

static const lac_shape shape = {24, 25};
static const size_t count = 600;

static bool all_finite(const float *x)
{
    bool finite = true;
    for (size_t i = 0; i < count; i++) {
        finite = finite && isfinite(x[i]);
    }
    return finite;
}

// Whether laci_payload_finite agrees with decoding. Payloads that are refused
// do not matter.
static void compare_finite(
    const subject *s, const lac_call *call, const uint8_t *in, size_t len)
{
    float x[VALUES_MAX];
    if (laci_payload_check(s->c, call, in, len) == LAC_OK) {
        const bool finite = laci_payload_finite(s->c, call, in, len);
        laci_payload_decode(s->c, call, in, len, x);
        assert_int_equal(finite, all_finite(x));
    }
}

// Tensors from 0 over normal numbers and the largest float to NaN, and
// payloads with bytes that were set to what an infinity has.
static void know_what_is_finite(subject *s)
{
    const float sizes[] = {0, 1, FLT_MAX / 6, FLT_MAX, INFINITY, NAN};
    const uint8_t bytes[] = {0xff, 0x7f, 0x80, 0x7c, 0x00};
    const lac_key draws = test_key(77, lac_scope_shared());
    const lac_key key = test_key(5, lac_scope_worker(0));
    const lac_call call = laci_call_make(s->c, &key, shape);
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        uint8_t payload[BYTES_MAX], altered[BYTES_MAX];
        float x[VALUES_MAX];
        fill_normal(x, VALUES_MAX, k);
        for (size_t i = 0; i < count; i++) {
            const float bounded = fminf(fmaxf(x[i], -1), 1);
            x[i] = k < 4 ? bounded * sizes[k] : x[i];
        }
        x[17] = sizes[k];
        const size_t len = encode_test(s, &key, shape, x, payload);
        compare_finite(s, &call, payload, len);
        memcpy(altered, payload, len);
        for (uint32_t i = 0; i < ALTERED; i++) {
            const uint32_t draw = lac_key_draw(&draws, i);
            // Headers are short: half of the changes are near the start.
            const size_t room = i % 2 == 0 ? len : len < 8 ? len : 8;
            altered[draw % room] = bytes[i % sizeof(bytes)];
            compare_finite(s, &call, altered, len);
            if (i % 5 == 4) {
                memcpy(altered, payload, len);
            }
        }
    }
}

// A payload that was checked decodes to the same bits right after the check,
// after the check of another, and after an encode.
static void decode_without_a_second_check(subject *s)
{
    const lac_key key = test_key(5, lac_scope_worker(0));
    const lac_key other_key = test_key(6, lac_scope_worker(0));
    const lac_call call = laci_call_make(s->c, &key, shape);
    const lac_call other = laci_call_make(s->c, &other_key, shape);
    uint8_t payload[2][BYTES_MAX], own[BYTES_MAX];
    float x[2][VALUES_MAX], y[VALUES_MAX] = {0}, expected[2][VALUES_MAX];
    size_t len[2];
    for (uint64_t k = 0; k < 2; k++) {
        fill_normal(x[k], VALUES_MAX, k);
        len[k] = encode_test(s, k ? &other_key : &key, shape, x[k], payload[k]);
        assert_ok(lac_compressor_decode(
            s->c, k ? &other_key : &key, shape, payload[k], len[k],
            expected[k]));
    }
    assert_ok(laci_payload_check(s->c, &call, payload[0], len[0]));
    assert_ok(laci_payload_check(s->c, &other, payload[1], len[1]));
    for (int again = 0; again < 2; again++) {
        laci_payload_decode(s->c, &call, payload[0], len[0], y);
        assert_memory_equal(y, expected[0], count * sizeof(*y));
        laci_payload_decode(s->c, &other, payload[1], len[1], y);
        assert_memory_equal(y, expected[1], count * sizeof(*y));
        encode_test(s, &key, shape, x[1], own);
        memset(y, 0, sizeof(y));
        laci_payload_decode_add(s->c, &call, payload[0], len[0], 1, y);
        for (size_t i = 0; i < count; i++) {
            assert_true(y[i] == expected[0][i]);
        }
    }
}

// max|x - C(x)| stays below the growth that the error memory relies on, for
// even and for very uneven values, which are the worst for dithering.
static void state_their_growth(subject *s)
{
    const double growth = laci_payload_growth(s->c, shape);
    for (uint64_t k = 0; k < 20; k++) {
        const lac_key key = test_key(k, lac_scope_worker(0));
        uint8_t payload[BYTES_MAX];
        float x[VALUES_MAX], y[VALUES_MAX];
        double error = 0, largest = 0;
        fill_normal(x, VALUES_MAX, k);
        for (size_t i = 0; i < count; i++) {
            x[i] = k % 4 == 1 ? copysignf(1, x[i]) : x[i];
            x[i] = k % 4 == 2 && i % 100 != 7 ? x[i] / 64 : x[i];
            x[i] = k % 4 == 3 ? powf(x[i], 5) : x[i];
        }
        const size_t len = encode_test(s, &key, shape, x, payload);
        assert_ok(lac_compressor_decode(s->c, &key, shape, payload, len, y));
        for (size_t i = 0; i < count; i++) {
            error = fmax(error, fabs((double)x[i] - (double)y[i]));
            largest = fmax(largest, fabs((double)x[i]));
        }
        assert_true(error <= growth * largest * (1 + 0x1p-16));
    }
}

#define TEST(run)                                                              \
    static void compressors_##run(void **state)                                \
    {                                                                          \
        (void)state;                                                           \
        for_all_subjects(run);                                                 \
    }
TEST(know_what_is_finite)
TEST(decode_without_a_second_check)
TEST(state_their_growth)
#undef TEST

int main(void)
{
#define TEST(run) cmocka_unit_test(compressors_##run)
    const struct CMUnitTest tests[] = {
        TEST(know_what_is_finite),
        TEST(decode_without_a_second_check),
        TEST(state_their_growth),
    };
    return cmocka_run_group_tests_name("checked", tests, NULL, NULL);
}
