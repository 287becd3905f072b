// SPDX-License-Identifier: MIT
// Signs with a scale: payload, law, and an error memory that does the work of
// two passes in one.
#include "lac_test.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"

enum { CAP = 1024, LARGE = 1300 };

static const lac_key key = {1, 2, LAC_SCOPE_WORKER};

static lac_compressor *open_for(size_t n)
{
    lac_compressor *c;
    assert_ok(lac_compressor_open(&c, "sign", LAC_FORM_PLAIN));
    assert_ok(lac_compressor_reserve(c, (lac_shape){n, 1}));
    return c;
}

static void pass(const float *x, float *y, size_t n)
{
    uint8_t payload[CAP];
    const lac_shape shape = {n, 1};
    lac_compressor *const c = open_for(n);
    size_t len;
    assert_ok(lac_compressor_encode(c, &key, shape, x, payload, CAP, &len));
    assert_ok(lac_compressor_decode(c, &key, shape, payload, len, y));
    lac_compressor_close(c);
}

// The payload is a wire format: these bytes may never change. The magnitudes
// add up to 18, the scale is 2.
static void payload_is_as_documented(void **state)
{
    (void)state;
    const float x[9] = {1, -2, 3, -0.0f, 0, -6, 1, 1, -4};
    const uint8_t expected[6] = {0x00, 0x00, 0x00, 0x40, 0x22, 0x01};
    uint8_t payload[CAP];
    size_t len;
    lac_compressor *const c = open_for(9);
    assert_ok(lac_compressor_encode(
        c, &key, (lac_shape){3, 3}, x, payload, CAP, &len));
    assert_int_equal(len, sizeof(expected));
    assert_memory_equal(payload, expected, sizeof(expected));
    assert_int_equal(lac_compressor_wire_id(c), 7);
    lac_compressor_close(c);
}

static void zeros_of_both_signs_count_as_positive(void **state)
{
    (void)state;
    const float x[4] = {0, -0.0f, -1, 1};
    float y[4];
    pass(x, y, 4);
    assert_true(y[0] == 0.5f && y[1] == 0.5f && y[2] == -0.5f && y[3] == 0.5f);
}

static void zeros_stay_zeros(void **state)
{
    (void)state;
    const float x[3] = {0, -0.0f, 0};
    float y[3];
    pass(x, y, 3);
    assert_true(y[0] == 0 && y[1] == 0 && y[2] == 0);
}

static void finite_values_have_a_finite_scale(void **state)
{
    (void)state;
    float x[LARGE];
    float y[LARGE];
    for (size_t i = 0; i < LARGE; i++) {
        x[i] = i % 3 == 0 ? -FLT_MAX : FLT_MAX;
    }
    pass(x, y, LARGE);
    assert_memory_equal(x, y, sizeof(x));
}

static void divergence_is_not_hidden(void **state)
{
    (void)state;
    const float bad[3] = {NAN, INFINITY, -INFINITY};
    for (size_t k = 0; k < 3; k++) {
        float x[LARGE];
        float y[LARGE];
        fill_normal(x, LARGE, 1);
        x[700] = bad[k];
        pass(x, y, LARGE);
        assert_true(isnan(y[0]) && isnan(y[LARGE - 1]));
    }
}

// |C(x) - x|^2 = |x|^2 - |x|_1^2 / n, and no more than the law allows: with
// one value that is not zero, exactly that. Rounding is below 1e-6 of |x|^2.
static void error_is_as_derived(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        float x[LARGE] = {0};
        float y[LARGE];
        fill_normal(x, k == 0 ? LARGE : 1, 2);
        pass(x, y, LARGE);
        double error = 0;
        double sum = 0;
        double square = 0;
        for (size_t i = 0; i < LARGE; i++) {
            error += pow((double)y[i] - (double)x[i], 2);
            sum += fabs((double)x[i]);
            square += pow((double)x[i], 2);
        }
        lac_compressor *const c = open_for(LARGE);
        const lac_guarantee law =
            lac_compressor_guarantee(c, (lac_shape){LARGE, 1});
        lac_compressor_close(c);
        assert_false(law.unbiased);
        assert_true(law.error == 1 - 1.0 / LARGE);
        assert_true(fabs(error - (square - sum * sum / LARGE)) < 1e-6 * square);
        assert_true(error < (law.error + 1e-6) * square);
        assert_true(k == 0 || error > (law.error - 1e-6) * square);
    }
}

static void check_scale(uint32_t bits, lac_status expected)
{
    uint8_t payload[5] = {0};
    lac_compressor *const c = open_for(3);
    laci_put_u32(payload, bits);
    assert_status(
        lac_compressor_check(c, &key, (lac_shape){3, 1}, payload, 5), expected);
    lac_compressor_close(c);
}

static void only_scales_that_an_encoder_writes_are_accepted(void **state)
{
    (void)state;
    check_scale(0x00000000, LAC_OK);
    check_scale(0x00000001, LAC_OK);
    check_scale(0x7f7fffff, LAC_OK);
    check_scale(0x7fc00000, LAC_OK);
    check_scale(0x7f800000, LAC_ERR_CORRUPT);
    check_scale(0x80000000, LAC_ERR_CORRUPT);
    check_scale(0xbf800000, LAC_ERR_CORRUPT);
    check_scale(0xffc00000, LAC_ERR_CORRUPT);
}

static void bad_payloads_are_explained(void **state)
{
    (void)state;
    uint8_t payload[5] = {0, 0, 0x80, 0xbf, 0x00};
    float y[3] = {7, 7, 7};
    const lac_shape shape = {3, 1};
    lac_compressor *const c = open_for(3);
    assert_fails(
        lac_compressor_decode(c, &key, shape, payload, 4, y), LAC_ERR_CORRUPT,
        "sign: payload has 4 bytes, expected 5");
    assert_fails(
        lac_compressor_decode(c, &key, shape, payload, 5, y), LAC_ERR_CORRUPT,
        "sign: the scale is -1, expected a finite number from 0 up, or nan");
    payload[3] = 0x3f;
    payload[4] = 0x80;
    assert_fails(
        lac_compressor_decode(c, &key, shape, payload, 5, y), LAC_ERR_CORRUPT,
        "sign: signs past the last value are not zero, expected zero");
    assert_true(y[0] == 7 && y[1] == 7 && y[2] == 7);
    lac_compressor_close(c);
}

static void decode_add_is_decoding_and_adding(void **state)
{
    (void)state;
    const float x[3] = {3.1f, -0.3f, 100.7f};
    const lac_shape shape = {3, 1};
    uint8_t payload[CAP];
    size_t len;
    float values[3];
    float y[3] = {0.1f, 0.2f, 0.3f};
    lac_compressor *const c = open_for(3);
    assert_ok(lac_compressor_encode(c, &key, shape, x, payload, CAP, &len));
    assert_ok(lac_compressor_decode(c, &key, shape, payload, len, values));
    assert_ok(lac_compressor_decode_add(c, &key, shape, payload, len, 0.7f, y));
    assert_true(y[0] == 0.1f + 0.7f * values[0]);
    assert_true(y[1] == 0.2f + 0.7f * values[1]);
    assert_true(y[2] == 0.3f + 0.7f * values[2]);
    lac_compressor_close(c);
}

// An error memory as it is defined, beside the compressor's own.
typedef struct both {
    lac_compressor *c;
    lac_memory *memory;
    size_t n;
    float e[LARGE];
    uint8_t payload[CAP];
    size_t len;
} both;

static void check_equal(const both *b)
{
    float e[LARGE];
    lac_memory_read(b->memory, e);
    assert_memory_equal(e, b->e, b->n * sizeof(*e));
}

static void encode_both(both *b, uint64_t seed)
{
    float x[LARGE] = {0};
    uint8_t payload[CAP];
    const lac_shape shape = {b->n, 1};
    fill_normal(x, b->n, seed);
    x[0] = seed == 2 ? -b->e[0] : x[0]; // a memory of exactly zero
    for (size_t i = 0; i < b->n; i++) {
        b->e[i] += x[i];
    }
    assert_ok(
        lac_compressor_encode(b->c, &key, shape, b->e, payload, CAP, &b->len));
    size_t len;
    assert_ok(lac_memory_encode(b->memory, &key, x, b->payload, CAP, &len));
    assert_int_equal(len, b->len);
    assert_memory_equal(b->payload, payload, len);
    check_equal(b);
}

static void settle_both(both *b)
{
    const lac_shape shape = {b->n, 1};
    assert_ok(lac_compressor_decode_add(
        b->c, &key, shape, b->payload, b->len, -1.0f, b->e));
    assert_ok(lac_memory_settle(b->memory, &key, b->payload, b->len));
    check_equal(b);
}

static void compare_memories(size_t n, const char *kernels)
{
    both b = {.c = open_for(n), .n = n};
    float e[LARGE];
    assert_ok(lac_compressor_use_kernels(b.c, kernels));
    assert_ok(lac_memory_open(&b.memory, b.c, (lac_shape){n, 1}));
    for (uint64_t round = 0; round < 6; round++) {
        encode_both(&b, round);
        if (round != 3) { // this payload was lost
            settle_both(&b);
        }
        if (round == 4) { // this one came twice
            settle_both(&b);
        }
        if (round == 2) {
            lac_memory_read(b.memory, e);
            lac_memory_write(b.memory, e);
            check_equal(&b);
        }
    }
    lac_memory_close(b.memory);
    lac_compressor_close(b.c);
}

static void its_memory_equals_the_generic_one_bit_for_bit(void **state)
{
    (void)state;
    const size_t sizes[] = {1, 2, 31, 32, 511, 512, 513, LARGE};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        compare_memories(sizes[i], "portable");
        compare_memories(sizes[i], "best");
    }
}

// What is sent for -0 is positive, so what is left of it is negative.
static void a_memory_that_is_given_minus_zeros_keeps_to_the_law(void **state)
{
    (void)state;
    enum { N = 40 };
    static const char *const kernels[] = {"portable", "best"};
    const lac_shape shape = {N, 1};
    float e[N], x[N], y[N], left[N];
    uint8_t payload[4 + N / 8];
    size_t len;
    for (size_t k = 0; k < 2; k++) {
        lac_compressor *c;
        lac_memory *m;
        assert_ok(lac_compressor_open(&c, "sign", LAC_FORM_PLAIN));
        assert_ok(lac_compressor_use_kernels(c, kernels[k]));
        assert_ok(lac_memory_open(&m, c, shape));
        for (size_t i = 0; i < N; i++) {
            e[i] = -0.0f;
            x[i] = i % 4 == 0 ? 4.0f : -0.0f; // a mean of 1
        }
        lac_memory_write(m, e);
        for (int round = 0; round < 2; round++) {
            lac_memory_read(m, e);
            assert_ok(
                lac_memory_encode(m, &key, x, payload, sizeof(payload), &len));
            assert_ok(lac_compressor_decode(c, &key, shape, payload, len, y));
            assert_ok(lac_memory_settle(m, &key, payload, len));
            for (size_t i = 0; i < N; i++) {
                e[i] = e[i] + x[i] - y[i];
            }
            lac_memory_read(m, left);
            assert_memory_equal(left, e, sizeof(e));
        }
        lac_memory_close(m);
        lac_compressor_close(c);
    }
}

static void a_bad_payload_does_not_touch_the_memory(void **state)
{
    (void)state;
    const float x[3] = {1, -2, 4};
    uint8_t payload[5];
    size_t len;
    float e[3];
    lac_memory *memory;
    lac_compressor *const c = open_for(3);
    assert_ok(lac_memory_open(&memory, c, (lac_shape){3, 1}));
    assert_ok(lac_memory_encode(memory, &key, x, payload, 5, &len));
    payload[4] |= 0x80;
    assert_status(
        lac_memory_settle(memory, &key, payload, len), LAC_ERR_CORRUPT);
    lac_memory_read(memory, e);
    assert_memory_equal(e, x, sizeof(x));
    lac_memory_close(memory);
    lac_compressor_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payload_is_as_documented),
        cmocka_unit_test(zeros_of_both_signs_count_as_positive),
        cmocka_unit_test(zeros_stay_zeros),
        cmocka_unit_test(finite_values_have_a_finite_scale),
        cmocka_unit_test(divergence_is_not_hidden),
        cmocka_unit_test(error_is_as_derived),
        cmocka_unit_test(only_scales_that_an_encoder_writes_are_accepted),
        cmocka_unit_test(bad_payloads_are_explained),
        cmocka_unit_test(decode_add_is_decoding_and_adding),
        cmocka_unit_test(its_memory_equals_the_generic_one_bit_for_bit),
        cmocka_unit_test(a_memory_that_is_given_minus_zeros_keeps_to_the_law),
        cmocka_unit_test(a_bad_payload_does_not_touch_the_memory),
    };
    return cmocka_run_group_tests_name("compress.sign", tests, NULL, NULL);
}
