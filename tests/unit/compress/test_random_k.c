// SPDX-License-Identifier: MIT
// Random-k: its choice is uniform, when it is sent, and its payload.
#include "random_test.h"

enum { MOST = 17 };

// Writes the indices in the order of the choice and returns their number: of
// the values 0, 1, 2, ... a shared key's payload has nothing but those kept.
static size_t chosen(
    lac_compressor *c, uint64_t seed, size_t n, uint32_t *indices)
{
    const lac_key key = key_of(seed, lac_scope_shared());
    const size_t len = encode(c, key, (lac_shape){n, 1}, numbers);
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
    check_bound("random-k:rank=2", shape, LAC_SCOPE_SHARED, 4 * 2 * (30 + 20));
    check_bound("random-k:rank=2", vector, LAC_SCOPE_SHARED, 200);
    check_bound("random-k:rank=4294967295", shape, LAC_SCOPE_EDGE, 2400);
}

static void a_rank_counts_instead_of_the_ratio(void **state)
{
    (void)state;
    check_bound(
        "random-k:ratio=0.5,rank=2", (lac_shape){30, 20}, LAC_SCOPE_SHARED,
        4 * 2 * (30 + 20));
}

// The nonce is sent only if the receiver cannot derive the key. With it, it
// decodes with any key.
static void a_worker_sends_its_nonce(void **state)
{
    (void)state;
    const lac_key keys[] = {
        key_of(5, lac_scope_worker(3)), key_of(6, lac_scope_worker(4))};
    check_kept("random-k:0.1", (lac_shape){40, 1}, keys, 8, 4);
    assert_true(laci_get_u64(payload) == keys[0].low);
}

static void an_edge_sends_nothing(void **state)
{
    (void)state;
    const lac_key keys[] = {
        key_of(5, lac_scope_edge(3, 4)), key_of(5, lac_scope_edge(4, 3))};
    check_kept("random-k:0.5", (lac_shape){40, 1}, keys, 0, 20);
}

static void all_values_pass_in_order(void **state)
{
    (void)state;
    check_all_kept("random-k:1");
}

static void the_unbiased_form_scales(void **state)
{
    (void)state;
    check_forms("random-k:0.25", 10, 5, 0.8);
}

static void payload_is_as_documented(void **state)
{
    (void)state;
    static const uint8_t expected[] = {
        0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01, // nonce
        0x00, 0x80, 0x82, 0x43,                         // 261
        0x00, 0x00, 0x3d, 0x43,                         // 189
        0x00, 0x00, 0x05, 0x43,                         // 133
    };
    check_golden("random-k", 300, expected, sizeof(expected));
}

static void bad_payloads_are_refused(void **state)
{
    (void)state;
    const lac_shape shape = {300, 1};
    const lac_key key = key_of(1, lac_scope_worker(0));
    const uint8_t bytes[20] = {0};
    lac_compressor *const c = open_for("random-k", LAC_FORM_PLAIN, shape);
    assert_fails(
        lac_compressor_check(c, &key, shape, bytes, 7), LAC_ERR_CORRUPT,
        "random-k: payload has 7 bytes, expected at least 8");
    assert_fails(
        lac_compressor_check(c, &key, shape, bytes, 19), LAC_ERR_CORRUPT,
        "random-k: payload has 19 bytes, expected 20");
    assert_ok(lac_compressor_check(c, &key, shape, bytes, 20));
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
        cmocka_unit_test(a_worker_sends_its_nonce),
        cmocka_unit_test(an_edge_sends_nothing),
        cmocka_unit_test(all_values_pass_in_order),
        cmocka_unit_test(the_unbiased_form_scales),
        cmocka_unit_test(payload_is_as_documented),
        cmocka_unit_test(bad_payloads_are_refused),
    };
    return cmocka_run_group_tests_name(
        "compress/random_k", tests, fill_numbers, NULL);
}
