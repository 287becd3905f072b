// SPDX-License-Identifier: MIT
// Random-block: where blocks start and wrap, who is told, and its payload.
#include "lac_test.h"

#include <math.h>
#include <stdbool.h>

#include "base/bytes.h"

enum { CAP = 256 };

static lac_compressor *open_for(
    const char *spec, lac_form form, lac_shape shape)
{
    lac_compressor *c = NULL;
    assert_ok(lac_compressor_open(&c, spec, form));
    assert_ok(lac_compressor_reserve(c, shape));
    return c;
}

static lac_key key_of(uint64_t seed, lac_scope scope)
{
    return lac_key_make(seed, LAC_PURPOSE_COMPRESS, 7, scope, 0);
}

// Each of 10 starts has the probability 1/10. The chi-square of 9 degrees of
// freedom exceeds 9 + 2 sqrt(90) + 20 = 48 with probability e^-10 at most.
static void every_start_is_as_likely_and_blocks_wrap(void **state)
{
    (void)state;
    enum { TRIALS = 10000 };
    const lac_shape shape = {5, 2};
    const float x[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    lac_compressor *const c =
        open_for("random-block:0.4", LAC_FORM_PLAIN, shape);
    double counts[10] = {0};
    for (uint64_t t = 0; t < TRIALS; t++) {
        const lac_key key = key_of(t, lac_scope_shared());
        uint8_t payload[CAP];
        size_t len;
        assert_ok(lac_compressor_encode(c, &key, shape, x, payload, CAP, &len));
        assert_int_equal(len, 16);
        const size_t start = (size_t)laci_get_f32(payload);
        for (size_t j = 0; j < 4; j++) {
            assert_true(
                laci_get_f32(payload + 4 * j) == (float)((start + j) % 10));
        }
        counts[start]++;
    }
    double sum = 0;
    for (size_t i = 0; i < 10; i++) {
        const double off = counts[i] - TRIALS / 10;
        sum += off * off / (TRIALS / 10);
    }
    assert_true(sum < 48);
    lac_compressor_close(c);
}

static void a_worker_tells_where_it_starts(void **state)
{
    (void)state;
    const lac_shape shape = {20, 1};
    const lac_key mine = key_of(5, lac_scope_worker(3));
    const lac_key other = key_of(6, lac_scope_worker(4));
    lac_compressor *const c =
        open_for("random-block:0.5", LAC_FORM_PLAIN, shape);
    float x[20], y[20];
    uint8_t payload[CAP];
    size_t len;
    for (size_t i = 0; i < 20; i++) {
        x[i] = (float)i;
    }
    assert_ok(lac_compressor_encode(c, &mine, shape, x, payload, CAP, &len));
    assert_int_equal(len, 4 + 40);
    const size_t start = laci_get_u32(payload);
    assert_ok(lac_compressor_decode(c, &other, shape, payload, len, y));
    for (size_t i = 0; i < 20; i++) {
        const bool kept = (i + 20 - start) % 20 < 10;
        assert_true(y[i] == (kept ? x[i] : 0));
    }
    lac_compressor_close(c);
}

static void decoding_with_the_same_key_needs_no_start(void **state)
{
    (void)state;
    const lac_shape shape = {7, 3};
    const lac_key key = key_of(9, lac_scope_edge(1, 2));
    lac_compressor *const c =
        open_for("random-block:rank=1", LAC_FORM_PLAIN, shape);
    float x[21], y[21];
    uint8_t payload[CAP];
    size_t len, kept = 0;
    for (size_t i = 0; i < 21; i++) {
        x[i] = (float)(i + 1);
    }
    assert_ok(lac_compressor_encode(c, &key, shape, x, payload, CAP, &len));
    assert_int_equal(len, 4 * (7 + 3));
    assert_ok(lac_compressor_decode(c, &key, shape, payload, len, y));
    for (size_t i = 0; i < 21; i++) {
        assert_true(y[i] == 0 || y[i] == x[i]);
        kept += y[i] != 0;
    }
    assert_int_equal(kept, 10);
    lac_compressor_close(c);
}

static void all_values_pass_in_order(void **state)
{
    (void)state;
    const float x[5] = {1, NAN, -INFINITY, 0, -3};
    const lac_key key = key_of(1, lac_scope_worker(0));
    lac_compressor *const c =
        open_for("random-block:1", LAC_FORM_PLAIN, (lac_shape){5, 1});
    uint8_t payload[CAP];
    size_t len;
    assert_ok(lac_compressor_encode(
        c, &key, (lac_shape){5, 1}, x, payload, CAP, &len));
    assert_int_equal(len, 20);
    assert_memory_equal(payload, x, 20);
    assert_ok(lac_compressor_encode(
        c, &key, (lac_shape){1, 1}, x, payload, CAP, &len));
    assert_int_equal(len, 4);
    lac_compressor_close(c);
}

static void the_unbiased_form_scales(void **state)
{
    (void)state;
    const lac_shape shape = {4, 1};
    const float x[4] = {3, 3, 3, 3};
    const lac_key key = key_of(1, lac_scope_shared());
    lac_compressor *const c =
        open_for("random-block:0.5", LAC_FORM_UNBIASED, shape);
    uint8_t payload[CAP];
    size_t len;
    assert_ok(lac_compressor_encode(c, &key, shape, x, payload, CAP, &len));
    assert_true(laci_get_f32(payload) == 6);
    const lac_guarantee g = lac_compressor_guarantee(c, shape);
    assert_true(g.unbiased && g.error == 1);
    lac_compressor_close(c);
}

// The payload is a wire format: these bytes may never change.
static void payload_is_as_documented(void **state)
{
    (void)state;
    const lac_shape shape = {8, 1};
    const float x[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const lac_key key = {0x0123456789abcdef, 42, LAC_SCOPE_WORKER};
    const uint8_t expected[] = {0x5,  0,    0, 0, 0,    0,
                                0xa0, 0x40, 0, 0, 0xc0, 0x40};
    lac_compressor *const c =
        open_for("random-block:0.25", LAC_FORM_PLAIN, shape);
    uint8_t payload[CAP];
    size_t len;
    assert_ok(lac_compressor_encode(c, &key, shape, x, payload, CAP, &len));
    assert_int_equal(len, sizeof(expected));
    assert_memory_equal(payload, expected, sizeof(expected));
    lac_compressor_close(c);
}

static void bad_payloads_are_refused(void **state)
{
    (void)state;
    const lac_shape shape = {8, 1};
    const lac_key key = key_of(1, lac_scope_worker(0));
    const uint8_t payload[12] = {8};
    lac_compressor *const c =
        open_for("random-block:0.25", LAC_FORM_PLAIN, shape);
    assert_fails(
        lac_compressor_check(c, &key, shape, payload, 3), LAC_ERR_CORRUPT,
        "random-block: payload has 3 bytes, expected at least 4");
    assert_fails(
        lac_compressor_check(c, &key, shape, payload, 12), LAC_ERR_CORRUPT,
        "random-block: start is 8, expected below 8");
    assert_fails(
        lac_compressor_check(c, &key, shape, payload + 1, 11), LAC_ERR_CORRUPT,
        "random-block: payload has 11 bytes, expected 12");
    lac_compressor_close(c);
}

static void a_rank_counts_instead_of_the_ratio(void **state)
{
    (void)state;
    const lac_shape shape = {30, 20};
    lac_compressor *c;
    assert_ok(lac_compressor_open(
        &c, "random-block:ratio=0.5,rank=2", LAC_FORM_PLAIN));
    assert_int_equal(
        lac_compressor_bound(c, shape, LAC_SCOPE_SHARED), 4 * 2 * (30 + 20));
    lac_compressor_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_start_is_as_likely_and_blocks_wrap),
        cmocka_unit_test(a_worker_tells_where_it_starts),
        cmocka_unit_test(decoding_with_the_same_key_needs_no_start),
        cmocka_unit_test(all_values_pass_in_order),
        cmocka_unit_test(the_unbiased_form_scales),
        cmocka_unit_test(payload_is_as_documented),
        cmocka_unit_test(bad_payloads_are_refused),
        cmocka_unit_test(a_rank_counts_instead_of_the_ratio),
    };
    return cmocka_run_group_tests_name(
        "compress/random_block", tests, NULL, NULL);
}
