// SPDX-License-Identifier: MIT
// Random-k: that its choice is uniform, who is told it, and its payload.
#include "lac_test.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"

enum { MOST = 17, CAP = 4096 };

static lac_key key_of(uint64_t seed, lac_scope scope)
{
    return lac_key_make(seed, LAC_PURPOSE_COMPRESS, 7, scope, 0);
}

static lac_compressor *open_for(
    const char *spec, lac_form form, lac_shape shape)
{
    lac_compressor *c = NULL;
    assert_ok(lac_compressor_open(&c, spec, form));
    assert_ok(lac_compressor_reserve(c, shape));
    return c;
}

// Writes the indices in the order of the choice and returns their number: of
// the values 0, 1, 2, ... a shared key's payload has nothing but those kept.
static size_t chosen(
    lac_compressor *c, uint64_t seed, size_t n, uint32_t *indices)
{
    static float x[CAP];
    static uint8_t payload[4 * CAP];
    size_t len;
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)i;
    }
    const lac_key key = key_of(seed, lac_scope_shared());
    assert_ok(lac_compressor_encode(
        c, &key, (lac_shape){n, 1}, x, payload, sizeof(payload), &len));
    for (size_t j = 0; j < len / 4; j++) {
        indices[j] = (uint32_t)laci_get_f32(payload + 4 * j);
    }
    return len / 4;
}

static void indices_are_different(void **state)
{
    (void)state;
    static const size_t sizes[] = {2, 3, 100, 256, 257, 1000, 4096};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        const size_t n = sizes[s];
        lac_compressor *const c =
            open_for("random-k:0.9", LAC_FORM_PLAIN, (lac_shape){n, 1});
        uint32_t indices[CAP];
        bool seen[CAP] = {false};
        const size_t k = chosen(c, 1, n, indices);
        assert_int_equal(k, (size_t)(0.9 * (double)n));
        for (size_t j = 0; j < k; j++) {
            assert_true(indices[j] < n);
            assert_false(seen[indices[j]]);
            seen[indices[j]] = true;
        }
        lac_compressor_close(c);
    }
}

// A chi-square of d degrees of freedom exceeds d + 2 sqrt(10 d) + 20 with
// probability e^-10 at most (Laurent and Massart).
static void assert_chi_square(double sum, double freedom)
{
    assert_true(sum < freedom + 2 * sqrt(10 * freedom) + 20);
}

// Of all but one of n values, the first two kept are any ordered pair with
// the same probability, and so are the first and the last; this includes that
// each value is kept with the same probability.
static void check_pairs(size_t n)
{
    enum { TRIALS = 5000 };
    lac_compressor *const c = open_for(
        n == 2 ? "random-k:0.5" : "random-k:0.99", LAC_FORM_PLAIN,
        (lac_shape){n, 1});
    double counts[2][MOST][MOST] = {{{0}}};
    double singles[MOST] = {0};
    for (uint64_t t = 0; t < TRIALS; t++) {
        uint32_t indices[MOST];
        const size_t k = chosen(c, t, n, indices);
        counts[0][indices[0]][indices[1 % k]]++;
        counts[1][indices[0]][indices[k - 1]]++;
        singles[indices[0]]++;
    }
    const double pairs = (double)(n * (n - 1));
    double sums[3] = {0};
    for (size_t a = 0; a < n; a++) {
        const double each = (double)TRIALS / (double)n;
        sums[2] += (singles[a] - each) * (singles[a] - each) / each;
        for (size_t b = 0; b < n && n > 2; b++) {
            const double expected = a == b ? 0 : TRIALS / pairs;
            for (size_t i = 0; i < 2 && a != b; i++) {
                const double off = counts[i][a][b] - expected;
                sums[i] += off * off / expected;
            }
        }
    }
    assert_chi_square(sums[0], pairs - 1);
    assert_chi_square(sums[1], pairs - 1);
    assert_chi_square(sums[2], (double)n - 1);
    lac_compressor_close(c);
}

static void every_pair_is_as_likely(void **state)
{
    (void)state;
    for (size_t n = 2; n <= MOST; n++) {
        check_pairs(n);
    }
}

// The same for larger n, where the walk is short: each of n values is kept
// k of n times, and its count over T trials has the variance T p (1 - p). The
// squares over that, times (n - 1)/n for the fixed sum, are a chi-square.
static void every_value_is_as_likely(void **state)
{
    (void)state;
    enum { N = 1000, TRIALS = 4000 };
    lac_compressor *const c =
        open_for("random-k:0.1", LAC_FORM_PLAIN, (lac_shape){N, 1});
    static double counts[N];
    memset(counts, 0, sizeof(counts));
    for (uint64_t t = 0; t < TRIALS; t++) {
        uint32_t indices[CAP];
        const size_t k = chosen(c, t, N, indices);
        for (size_t j = 0; j < k; j++) {
            counts[indices[j]]++;
        }
    }
    double sum = 0;
    for (size_t i = 0; i < N; i++) {
        const double off = counts[i] - TRIALS * 0.1;
        sum += off * off / (TRIALS * 0.1 * 0.9) * (N - 1) / N;
    }
    assert_chi_square(sum, N - 1);
    lac_compressor_close(c);
}

static void rank_sets_the_budget(void **state)
{
    (void)state;
    const lac_shape shape = {30, 20}, vector = {50, 1};
    lac_compressor *const c =
        open_for("random-k:rank=2", LAC_FORM_PLAIN, shape);
    assert_int_equal(
        lac_compressor_bound(c, shape, LAC_SCOPE_SHARED), 4 * 2 * (30 + 20));
    assert_int_equal(lac_compressor_bound(c, vector, LAC_SCOPE_SHARED), 200);
    lac_compressor_close(c);
    lac_compressor *const huge =
        open_for("random-k:rank=4294967295", LAC_FORM_PLAIN, shape);
    assert_int_equal(lac_compressor_bound(huge, shape, LAC_SCOPE_EDGE), 2400);
    lac_compressor_close(huge);
}

static void a_rank_counts_instead_of_the_ratio(void **state)
{
    (void)state;
    const lac_shape shape = {30, 20};
    lac_compressor *c;
    assert_ok(
        lac_compressor_open(&c, "random-k:ratio=0.5,rank=2", LAC_FORM_PLAIN));
    assert_int_equal(
        lac_compressor_bound(c, shape, LAC_SCOPE_SHARED), 4 * 2 * (30 + 20));
    lac_compressor_close(c);
}

// Only who cannot derive the key is told the nonce, and with it can decode
// with any key.
static void a_worker_tells_its_nonce(void **state)
{
    (void)state;
    const lac_shape shape = {40, 1};
    const lac_key mine = key_of(5, lac_scope_worker(3));
    const lac_key other = key_of(6, lac_scope_worker(4));
    lac_compressor *const c = open_for("random-k:0.1", LAC_FORM_PLAIN, shape);
    float x[40], y[40];
    uint8_t payload[CAP];
    size_t len, kept = 0;
    for (size_t i = 0; i < 40; i++) {
        x[i] = (float)(i + 1);
    }
    assert_ok(lac_compressor_encode(c, &mine, shape, x, payload, CAP, &len));
    assert_int_equal(len, 8 + 4 * 4);
    assert_true(laci_get_u64(payload) == mine.low);
    assert_ok(lac_compressor_decode(c, &other, shape, payload, len, y));
    for (size_t i = 0; i < 40; i++) {
        assert_true(y[i] == 0 || y[i] == x[i]);
        kept += y[i] != 0;
    }
    assert_int_equal(kept, 4);
    lac_compressor_close(c);
}

static void an_edge_tells_nothing(void **state)
{
    (void)state;
    const lac_shape shape = {40, 1};
    const lac_key here = key_of(5, lac_scope_edge(3, 4));
    const lac_key there = key_of(5, lac_scope_edge(4, 3));
    lac_compressor *const c = open_for("random-k:0.5", LAC_FORM_PLAIN, shape);
    float x[40], y[40];
    uint8_t payload[CAP];
    size_t len;
    for (size_t i = 0; i < 40; i++) {
        x[i] = (float)(i + 1);
    }
    assert_ok(lac_compressor_encode(c, &here, shape, x, payload, CAP, &len));
    assert_int_equal(len, 4 * 20);
    assert_ok(lac_compressor_decode(c, &there, shape, payload, len, y));
    for (size_t i = 0; i < 40; i++) {
        assert_true(y[i] == 0 || y[i] == x[i]);
    }
    lac_compressor_close(c);
}

static void all_values_pass_in_order(void **state)
{
    (void)state;
    lac_compressor *const c =
        open_for("random-k:1", LAC_FORM_UNBIASED, (lac_shape){5, 1});
    const float x[5] = {1, NAN, -INFINITY, 0, -3};
    const lac_key key = key_of(1, lac_scope_worker(0));
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
    const lac_shape shape = {10, 1};
    lac_compressor *const c =
        open_for("random-k:0.25", LAC_FORM_UNBIASED, shape);
    const lac_key key = key_of(1, lac_scope_shared());
    float x[10];
    uint8_t payload[CAP];
    size_t len;
    for (size_t i = 0; i < 10; i++) {
        x[i] = 3;
    }
    assert_ok(lac_compressor_encode(c, &key, shape, x, payload, CAP, &len));
    assert_int_equal(len, 8);
    assert_true(laci_get_f32(payload) == 15);
    const lac_guarantee g = lac_compressor_guarantee(c, shape);
    assert_true(g.unbiased && g.error == 4);
    lac_compressor_close(c);
    lac_compressor *const plain =
        open_for("random-k:0.25", LAC_FORM_CONTRACTIVE, shape);
    const lac_guarantee h = lac_compressor_guarantee(plain, shape);
    assert_true(!h.unbiased && h.error == 0.8);
    lac_compressor_close(plain);
}

// The payload is a wire format: these bytes may never change.
static void payload_is_as_documented(void **state)
{
    (void)state;
    const lac_shape shape = {300, 1};
    const lac_key key = {0x0123456789abcdef, 42, LAC_SCOPE_WORKER};
    lac_compressor *const c = open_for("random-k", LAC_FORM_PLAIN, shape);
    float x[300];
    for (size_t i = 0; i < 300; i++) {
        x[i] = (float)i;
    }
    uint8_t payload[CAP];
    size_t len;
    assert_ok(lac_compressor_encode(c, &key, shape, x, payload, CAP, &len));
    const uint8_t nonce[] = {0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01};
    assert_int_equal(len, 8 + 3 * 4);
    assert_memory_equal(payload, nonce, 8);
    const float expected[] = {261, 189, 133};
    for (size_t j = 0; j < 3; j++) {
        assert_true(laci_get_f32(payload + 8 + 4 * j) == expected[j]);
    }
    lac_compressor_close(c);
}

static void bad_payloads_are_refused(void **state)
{
    (void)state;
    const lac_shape shape = {300, 1};
    const lac_key key = key_of(1, lac_scope_worker(0));
    const uint8_t payload[20] = {0};
    lac_compressor *const c = open_for("random-k", LAC_FORM_PLAIN, shape);
    assert_fails(
        lac_compressor_check(c, &key, shape, payload, 7), LAC_ERR_CORRUPT,
        "random-k: payload has 7 bytes, expected at least 8");
    assert_fails(
        lac_compressor_check(c, &key, shape, payload, 19), LAC_ERR_CORRUPT,
        "random-k: payload has 19 bytes, expected 20");
    assert_ok(lac_compressor_check(c, &key, shape, payload, 20));
    lac_compressor_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indices_are_different),
        cmocka_unit_test(every_pair_is_as_likely),
        cmocka_unit_test(every_value_is_as_likely),
        cmocka_unit_test(rank_sets_the_budget),
        cmocka_unit_test(a_rank_counts_instead_of_the_ratio),
        cmocka_unit_test(a_worker_tells_its_nonce),
        cmocka_unit_test(an_edge_tells_nothing),
        cmocka_unit_test(all_values_pass_in_order),
        cmocka_unit_test(the_unbiased_form_scales),
        cmocka_unit_test(payload_is_as_documented),
        cmocka_unit_test(bad_payloads_are_refused),
    };
    return cmocka_run_group_tests_name("compress/random_k", tests, NULL, NULL);
}
