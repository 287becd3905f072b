// SPDX-License-Identifier: MIT
// Keys and draws: reproducible, and as good as chance where that is measured.
#include "lac_test.h"

#include <math.h>

enum { COUNT = 1 << 20 };

static lac_key key_of(uint64_t seed)
{
    return lac_key_make(seed, LAC_PURPOSE_USER, 0, lac_scope_shared(), 0);
}

// Part of the wire format: these numbers may never change.
static void draws_are_as_documented(void **state)
{
    (void)state;
    const lac_key key = lac_key_make(
        1, LAC_PURPOSE_COMPRESS, 2, lac_scope_edge(5, 3), lac_name_hash("w"));
    assert_int_equal(lac_name_hash("w"), UINT64_C(0xaceee8f5de193e29));
    assert_int_equal(key.low, UINT64_C(0x526cae1aabde590a));
    assert_int_equal(key.high, UINT64_C(0x571f93d12bd05970));
    assert_int_equal(key.scope, LAC_SCOPE_EDGE);
    assert_int_equal(lac_key_draw(&key, 0), 0xb61183d9);
    assert_int_equal(lac_key_draw(&key, UINT32_MAX), 0xc7ccc484);
    assert_true(lac_key_normal(&key, 0) == 0x1.7800bcp-2f);
}

static void each_part_of_a_key_matters(void **state)
{
    (void)state;
    const lac_scope one = lac_scope_worker(1);
    const lac_key keys[] = {
        lac_key_make(1, 1, 1, one, 1),
        lac_key_make(2, 1, 1, one, 1),
        lac_key_make(1, 2, 1, one, 1),
        lac_key_make(1, 1, 2, one, 1),
        lac_key_make(1, 1, 1, lac_scope_worker(2), 1),
        lac_key_make(1, 1, 1, lac_scope_edge(1, 1), 1),
        lac_key_make(1, 1, 1, lac_scope_edge(1, 2), 1),
        lac_key_make(1, 1, 1, lac_scope_shared(), 1),
        lac_key_make(1, 1, 1, one, 2),
    };
    const size_t count = sizeof(keys) / sizeof(keys[0]);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count; j++) {
            assert_true(keys[i].low != keys[j].low);
            assert_true(keys[i].high != keys[j].high);
        }
    }
}

static void both_ends_of_an_edge_agree(void **state)
{
    (void)state;
    const lac_key here = lac_key_make(1, 1, 1, lac_scope_edge(4, 9), 1);
    const lac_key there = lac_key_make(1, 1, 1, lac_scope_edge(9, 4), 1);
    assert_memory_equal(&here.low, &there.low, sizeof(here.low));
    assert_memory_equal(&here.high, &there.high, sizeof(here.high));
}

// Chi-square of `bits` bits at `shift` over COUNT draws: mean 2^bits - 1,
// standard deviation sqrt(2 (2^bits - 1)). Six of those either way.
static void assert_uniform(const lac_key *key, int shift, int bits)
{
    static uint32_t counts[1 << 12];
    const uint32_t cells = (uint32_t)1 << bits;
    const double expected = (double)COUNT / cells, freedom = cells - 1;
    for (uint32_t i = 0; i < cells; i++) {
        counts[i] = 0;
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        counts[lac_key_draw(key, i) >> shift & (cells - 1)]++;
    }
    double chi = 0;
    for (uint32_t i = 0; i < cells; i++) {
        chi += pow(counts[i] - expected, 2) / expected;
    }
    assert_true(fabs(chi - freedom) < 6 * sqrt(2 * freedom));
}

static void all_bits_are_uniform(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        const lac_key key = key_of(seed);
        for (int shift = 0; shift <= 20; shift += 4) {
            assert_uniform(&key, shift, 12);
        }
    }
}

// Correlation of two sequences of COUNT uniform deviates: standard deviation
// 1 / sqrt(COUNT) when they are independent. Five of those is 0.005.
static double correlation(
    const lac_key *a, const lac_key *b, uint32_t lag, int half)
{
    double sum = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t x = lac_key_draw(a, i) >> (half ? 0 : 16) & 0xffff;
        const uint32_t y = lac_key_draw(b, i + lag) >> 16;
        sum += ((double)x - 32767.5) * ((double)y - 32767.5);
    }
    return sum / COUNT / (65536.0 * 65536.0 / 12);
}

static void neighbours_are_independent(void **state)
{
    (void)state;
    const lac_key key = key_of(1);
    for (uint32_t lag = 1; lag <= 4096; lag *= 2) {
        assert_true(fabs(correlation(&key, &key, lag, 0)) < 0.005);
    }
    assert_true(fabs(correlation(&key, &key, 0, 1)) < 0.005); // the halves
}

static void rounds_and_workers_are_independent(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        const lac_key key = lac_key_make(1, 1, i, lac_scope_worker(i), 1);
        const lac_key next = lac_key_make(1, 1, i + 1, lac_scope_worker(i), 1);
        const lac_key peer = lac_key_make(1, 1, i, lac_scope_worker(i + 1), 1);
        assert_true(fabs(correlation(&key, &next, 0, 0)) < 0.005);
        assert_true(fabs(correlation(&key, &peer, 0, 0)) < 0.005);
        assert_true(fabs(correlation(&key, &peer, 0, 1)) < 0.005);
    }
}

// Of COUNT deviates: the mean has standard deviation 1/1024, the variance
// sqrt(2)/1024, the fourth moment (2.9 for twelve uniforms) about
// sqrt(96)/1024.
static void normal_deviates_have_their_moments(void **state)
{
    (void)state;
    const lac_key key = key_of(3);
    double moments[5] = {0};
    for (uint32_t i = 0; i < COUNT; i++) {
        const double x = (double)lac_key_normal(&key, i);
        for (int k = 1; k <= 4; k++) {
            moments[k] += pow(x, k) / COUNT;
        }
    }
    assert_true(fabs(moments[1]) < 5.0 / 1024);
    assert_true(fabs(moments[2] - 1) < 5 * 1.42 / 1024);
    assert_true(fabs(moments[3]) < 5 * 3.9 / 1024);
    assert_true(fabs(moments[4] - 2.9) < 5 * 9.8 / 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_are_as_documented),
        cmocka_unit_test(each_part_of_a_key_matters),
        cmocka_unit_test(both_ends_of_an_edge_agree),
        cmocka_unit_test(all_bits_are_uniform),
        cmocka_unit_test(neighbours_are_independent),
        cmocka_unit_test(rounds_and_workers_are_independent),
        cmocka_unit_test(normal_deviates_have_their_moments),
    };
    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
