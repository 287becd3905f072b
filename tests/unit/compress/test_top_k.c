// SPDX-License-Identifier: MIT
// Top-k: which values it keeps, whatever way it finds them, and its payload.
#include "lac_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

enum { LARGE = 200000, CAP = 64 };

static const lac_key any_key = {1, 2, LAC_SCOPE_WORKER};

typedef struct ranked {
    uint32_t magnitude;
    uint32_t index;
} ranked;

static int by_rank(const void *a, const void *b)
{
    const ranked *const u = a, *const v = b;
    if (u->magnitude != v->magnitude) {
        return u->magnitude > v->magnitude ? -1 : 1;
    }
    return u->index < v->index ? -1 : 1;
}

// What is left of x when all but the k largest are made zero, by sorting.
static void keep_largest(const float *x, size_t n, size_t k, float *y)
{
    ranked *const order = malloc(n * sizeof(*order));
    assert_non_null(order);
    for (size_t i = 0; i < n; i++) {
        order[i] = (ranked){laci_bits_of(x[i]) & 0x7fffffff, (uint32_t)i};
    }
    qsort(order, n, sizeof(*order), by_rank);
    memset(y, 0, n * sizeof(*y));
    for (size_t i = 0; i < k; i++) {
        y[order[i].index] = x[order[i].index];
    }
    free(order);
}

static size_t keep_of(double ratio, size_t n)
{
    const size_t k = (size_t)(ratio * (double)n);
    return k < 1 ? 1 : k;
}

// Compresses with every set of kernels and compares with sorting every chunk.
static void check_chunks(const float *x, size_t n, double ratio, size_t chunk)
{
    static const char *const sets[] = {"portable", "best"};
    const size_t step = chunk == 0 ? n : chunk;
    char spec[64];
    (void)snprintf(spec, sizeof(spec), "top-k:%.17g,chunk=%zu", ratio, chunk);
    float *const expected = malloc(2 * n * sizeof(*expected));
    assert_non_null(expected);
    float *const y = expected + n;
    for (size_t i = 0; i < n; i += step) {
        const size_t len = n - i < step ? n - i : step;
        keep_largest(x + i, len, keep_of(ratio, len), expected + i);
    }
    for (size_t i = 0; i < 2; i++) {
        const lac_shape shape = {n, 1};
        lac_compressor *c = NULL;
        size_t len;
        assert_ok(lac_compressor_open(&c, spec, LAC_FORM_PLAIN));
        assert_ok(lac_compressor_use_kernels(c, sets[i]));
        assert_ok(lac_compressor_reserve(c, shape));
        const size_t cap = lac_compressor_bound(c, shape, LAC_SCOPE_WORKER);
        uint8_t *const payload = malloc(cap);
        assert_non_null(payload);
        assert_ok(
            lac_compressor_encode(c, &any_key, shape, x, payload, cap, &len));
        assert_ok(lac_compressor_decode(c, &any_key, shape, payload, len, y));
        assert_memory_equal(y, expected, n * sizeof(*y));
        free(payload);
        lac_compressor_close(c);
    }
    free(expected);
}

static void check_against_sorting(const float *x, size_t n, double ratio)
{
    check_chunks(x, n, ratio, 0);
}

static const double ratios[] = {1e-9, 0.0003, 0.01, 0.04, 0.2, 0.5, 0.98, 1};

static void check_ratios(const float *x, size_t n)
{
    for (size_t i = 0; i < sizeof(ratios) / sizeof(ratios[0]); i++) {
        check_against_sorting(x, n, ratios[i]);
    }
}

static float *large(void)
{
    static float x[LARGE];
    const lac_key key =
        lac_key_make(1, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
    for (uint32_t i = 0; i < LARGE; i++) {
        x[i] = lac_key_normal(&key, i);
    }
    return x;
}

static void ordinary_values_match_sorting(void **state)
{
    (void)state;
    check_ratios(large(), LARGE);
}

static void every_small_size_matches_sorting(void **state)
{
    (void)state;
    float *const x = large();
    for (size_t n = 1; n < 140; n++) {
        check_against_sorting(x + n, n, 0.1);
        check_against_sorting(x + n, n, 0.7);
    }
}

static void equal_values_match_sorting(void **state)
{
    (void)state;
    float *const x = large();
    for (size_t i = 0; i < LARGE; i++) {
        x[i] = i % 2 == 0 ? 3.0f : -3.0f;
    }
    check_ratios(x, LARGE);
    for (size_t i = 0; i < LARGE; i++) {
        x[i] = i % 100 == 17 ? 1.0f : -0.5f;
    }
    check_ratios(x, LARGE);
    memset(x, 0, LARGE * sizeof(*x));
    check_ratios(x, LARGE);
}

static void sorted_values_match_sorting(void **state)
{
    (void)state;
    float *const x = large();
    for (size_t i = 0; i < LARGE; i++) {
        x[i] = (float)i;
    }
    check_ratios(x, LARGE);
    for (size_t i = 0; i < LARGE; i++) {
        x[i] = (float)(LARGE - i);
    }
    check_ratios(x, LARGE);
}

// The sample takes every fifth value here. Large values only where it looks
// make its threshold too high, only where it does not look too low.
static void values_that_mislead_the_sample_match_sorting(void **state)
{
    (void)state;
    float *x = large();
    for (size_t i = 0; i < LARGE; i += 5) {
        x[i] *= 1e6f;
    }
    check_ratios(x, LARGE);
    x = large();
    for (size_t i = 0; i < LARGE; i += 5) {
        x[i] *= 1e-6f;
    }
    check_ratios(x, LARGE);
}

// A sample of few of the values takes others. Sizes below 4096 have none.
static void samples_of_few_values_match_sorting(void **state)
{
    (void)state;
    static const struct {
        size_t n, stride;
    } sizes[] = {{4095, 3}, {4096, 3}, {10000, 9}, {131071, 31}, {LARGE, 31}};
    static const float factors[] = {1, 1e6f, 1e-6f, 0};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (size_t f = 0; f < sizeof(factors) / sizeof(factors[0]); f++) {
            float *const x = large();
            for (size_t j = 0; j < sizes[i].n; j += sizes[i].stride) {
                x[j] *= factors[f];
            }
            check_against_sorting(x, sizes[i].n, 0.001);
            check_against_sorting(x, sizes[i].n, 0.01);
            check_against_sorting(x, sizes[i].n, 1.0 / 64);
        }
    }
}

static void special_values_match_sorting(void **state)
{
    (void)state;
    float *const x = large();
    for (size_t i = 0; i < LARGE; i += 97) {
        x[i] = i % 2 == 0 ? NAN : -INFINITY;
    }
    for (size_t i = 1; i < LARGE; i += 3) {
        x[i] *= 0x1p-140f;
    }
    check_ratios(x, LARGE);
}

static lac_compressor *open_top_k(const char *spec, size_t n)
{
    lac_compressor *c = NULL;
    assert_ok(lac_compressor_open(&c, spec, LAC_FORM_PLAIN));
    assert_ok(lac_compressor_reserve(c, (lac_shape){n, 1}));
    return c;
}

// The payload is a wire format: these bytes may never change. Indices 1 and 3
// of 8 take a bitmap (2 bytes; gaps would be 3), then -2 and 4.
static void payload_is_as_documented(void **state)
{
    (void)state;
    const float x[8] = {1, -2, 0, 4, -1, 1, 0.5f, 0};
    const uint8_t expected[] = {2, 0x0a, 0, 0, 0, 0xc0, 0, 0, 0x80, 0x40};
    lac_compressor *const c = open_top_k("top-k:ratio=0.25", 8);
    uint8_t payload[CAP];
    size_t len;
    assert_ok(lac_compressor_encode(
        c, &any_key, (lac_shape){2, 4}, x, payload, CAP, &len));
    assert_int_equal(len, sizeof(expected));
    assert_memory_equal(payload, expected, sizeof(expected));
    lac_compressor_close(c);
}

static void one_value_is_the_payload(void **state)
{
    (void)state;
    const float x = -1.5f;
    lac_compressor *const c = open_top_k("top-k", 1);
    uint8_t payload[CAP];
    size_t len;
    assert_ok(lac_compressor_encode(
        c, &any_key, (lac_shape){1, 1}, &x, payload, CAP, &len));
    assert_int_equal(len, 4);
    assert_true(laci_get_f32(payload) == x);
    lac_compressor_close(c);
}

// |x|^2 = n when all magnitudes are equal, and then the bound is reached.
static void the_law_is_reached_by_equal_values(void **state)
{
    (void)state;
    float x[10], y[10];
    for (size_t i = 0; i < 10; i++) {
        x[i] = 1;
    }
    const lac_shape shape = {10, 1};
    lac_compressor *const c = open_top_k("top-k:0.3", 10);
    uint8_t payload[CAP];
    size_t len;
    assert_ok(lac_compressor_encode(c, &any_key, shape, x, payload, CAP, &len));
    assert_ok(lac_compressor_decode(c, &any_key, shape, payload, len, y));
    double lost = 0;
    for (size_t i = 0; i < 10; i++) {
        lost += (double)((x[i] - y[i]) * (x[i] - y[i]));
    }
    const lac_guarantee g = lac_compressor_guarantee(c, shape);
    assert_false(g.unbiased);
    assert_true(fabs(g.error - lost / 10) < 1e-12);
    lac_compressor_close(c);
}

static void bad_payloads_are_refused(void **state)
{
    (void)state;
    const uint8_t payload[] = {2, 0x0b, 0, 0, 0, 0, 0, 0, 0, 0};
    const uint8_t good[] = {2, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0};
    const lac_shape shape = {8, 1};
    lac_compressor *const c = open_top_k("top-k:0.25", 8);
    assert_fails(
        lac_compressor_check(c, &any_key, shape, payload, 10), LAC_ERR_CORRUPT,
        "top-k: bitmap has 3 indices, expected 2");
    assert_fails(
        lac_compressor_check(c, &any_key, shape, good, 9), LAC_ERR_CORRUPT,
        "top-k: payload has 9 bytes, expected 10");
    assert_ok(lac_compressor_check(c, &any_key, shape, good, 10));
    lac_compressor_close(c);
}

static void every_chunk_matches_sorting(void **state)
{
    (void)state;
    static const size_t chunks[] = {1, 7, 64, 4096, LARGE - 1, LARGE, 1 << 20};
    float *const x = large();
    for (size_t i = 0; i < sizeof(chunks) / sizeof(*chunks); i++) {
        check_chunks(x, LARGE, 0.015625, chunks[i]);
        check_chunks(x, 1000, 0.3, chunks[i]);
    }
    check_chunks(x, LARGE, 1, 4096);
    float *const y = calloc(LARGE, sizeof(*y));
    assert_non_null(y);
    for (size_t i = 0; i < LARGE; i++) { // no chunk resembles the one before
        y[i] = ldexpf(x[i], i / 4096 % 5 == 0 ? -130 : (int)(i / 4096 % 3) * 9);
    }
    check_chunks(y, LARGE, 0.015625, 4096);
    free(y);
    for (size_t i = 0; i < LARGE; i++) {
        x[i] = i % 3 == 0 ? -1 : 1; // only the index decides
    }
    x[100] = NAN;
    x[5000] = INFINITY;
    check_chunks(x, LARGE, 0.015625, 4096);
}

static size_t encoded(
    const char *spec, const float *x, size_t n, uint8_t *out, size_t cap)
{
    const lac_shape shape = {n, 1};
    lac_compressor *c;
    size_t len = 0;
    assert_ok(lac_compressor_open(&c, spec, LAC_FORM_PLAIN));
    assert_ok(lac_compressor_reserve(c, shape));
    assert_ok(lac_compressor_encode(c, &any_key, shape, x, out, cap, &len));
    lac_compressor_close(c);
    return len;
}

// One chunk is the whole tensor, to the byte.
static void a_chunk_that_holds_the_tensor_changes_nothing(void **state)
{
    (void)state;
    enum { N = 5000, ROOM = 4 * N };
    static uint8_t whole[ROOM], chunk[ROOM];
    const float *const x = large();
    const size_t len = encoded("top-k:0.05", x, N, whole, ROOM);
    static const char *const specs[] = {
        "top-k:0.05,chunk=0", "top-k:0.05,chunk=5000", "top-k:0.05,chunk=9999"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(encoded(specs[i], x, N, chunk, ROOM), len);
        assert_memory_equal(chunk, whole, len);
    }
}

// 64 of 4096 normal values: the gaps are geometric with mean 63, of an entropy
// of 7.41 bits. A Rice code takes 6 + 1 bits and as many as gap / 64, rounded
// down, which is 0.58 in the mean: 7.6. 12-bit offsets would take 12.
static void indices_of_chunks_take_less_than_8_bits(void **state)
{
    (void)state;
    enum { N = 40 * 4096, K = 40 * 64 };
    static uint8_t payload[N];
    const float *const x = large();
    const size_t len =
        encoded("top-k:0.015625,chunk=4096+sign", x, N, payload, N);
    const double bits = 8 * ((double)len - 4 - K / 8.0) / K;
    print_message("%.3f bits an index\n", bits);
    assert_true(bits < 7.7);
}

// 4 of 10 and 1 of 3 are kept: the worst is 2/3 of a chunk of 3 equal values.
static void the_law_is_that_of_the_worst_chunk(void **state)
{
    (void)state;
    lac_compressor *c;
    assert_ok(lac_compressor_open(&c, "top-k:0.4,chunk=10", LAC_FORM_PLAIN));
    const double whole = lac_compressor_guarantee(c, (lac_shape){20, 1}).error;
    const double rest = lac_compressor_guarantee(c, (lac_shape){23, 1}).error;
    assert_true(fabs(whole - 0.6) < 1e-12);
    assert_true(fabs(rest - 2.0 / 3) < 1e-12);
    assert_int_equal(lac_compressor_kept(c, (lac_shape){23, 1}), 9);
    lac_compressor_close(c);
}

static void bad_ratios_are_refused(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "top-k:0", "top-k:1.001", "top-k:-1", "top-k:nan"};
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        lac_compressor *c;
        assert_status(
            lac_compressor_open(&c, specs[i], LAC_FORM_PLAIN), LAC_ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_values_match_sorting),
        cmocka_unit_test(every_small_size_matches_sorting),
        cmocka_unit_test(equal_values_match_sorting),
        cmocka_unit_test(sorted_values_match_sorting),
        cmocka_unit_test(values_that_mislead_the_sample_match_sorting),
        cmocka_unit_test(samples_of_few_values_match_sorting),
        cmocka_unit_test(special_values_match_sorting),
        cmocka_unit_test(payload_is_as_documented),
        cmocka_unit_test(one_value_is_the_payload),
        cmocka_unit_test(the_law_is_reached_by_equal_values),
        cmocka_unit_test(bad_payloads_are_refused),
        cmocka_unit_test(every_chunk_matches_sorting),
        cmocka_unit_test(a_chunk_that_holds_the_tensor_changes_nothing),
        cmocka_unit_test(indices_of_chunks_take_less_than_8_bits),
        cmocka_unit_test(the_law_is_that_of_the_worst_chunk),
        cmocka_unit_test(bad_ratios_are_refused),
    };
    return cmocka_run_group_tests_name("compress/top_k", tests, NULL, NULL);
}
