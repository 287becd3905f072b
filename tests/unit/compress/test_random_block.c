// SPDX-License-Identifier: MIT
// Random-block: where blocks start and wrap, when the start is sent, and its
// payload.
#include "random_test.h"

// Each of 10 starts has the probability 1/10.
static void every_start_is_as_likely_and_blocks_wrap(void **state)
{
    (void)state;
    enum { TRIALS = 10000 };
    const lac_shape shape = {5, 2};
    lac_compressor *const c =
        open_for("random-block:0.4", LAC_FORM_PLAIN, shape);
    double counts[10] = {0};
    for (uint64_t t = 0; t < TRIALS; t++) {
        const lac_key key = key_of(t, lac_scope_shared());
        assert_int_equal(encode(c, key, shape, numbers), 16);
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
    assert_chi_square(sum, 9);
    lac_compressor_close(c);
}

static void a_worker_sends_its_start(void **state)
{
    (void)state;
    const lac_key keys[] = {
        key_of(5, lac_scope_worker(3)), key_of(6, lac_scope_worker(4))};
    check_kept("random-block:0.5", (lac_shape){20, 1}, keys, 4, 10);
    const size_t start = laci_get_u32(payload);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(decoded[i] != 0, (i + 20 - start) % 20 < 10);
    }
}

static void decoding_with_the_same_key_needs_no_start(void **state)
{
    (void)state;
    const lac_key key = key_of(9, lac_scope_edge(1, 2));
    check_kept(
        "random-block:rank=1", (lac_shape){7, 3}, (lac_key[]){key, key}, 0,
        7 + 3);
}

static void all_values_pass_in_order(void **state)
{
    (void)state;
    check_all_kept("random-block:1");
}

static void the_unbiased_form_scales(void **state)
{
    (void)state;
    check_forms("random-block:0.5", 4, 2, 0.5);
}

static void payload_is_as_documented(void **state)
{
    (void)state;
    static const uint8_t expected[] = {
        5, 0, 0,    0,    // start
        0, 0, 0xa0, 0x40, // 5
        0, 0, 0xc0, 0x40, // 6
    };
    check_golden("random-block:0.25", 8, expected, sizeof(expected));
}

static void bad_payloads_are_refused(void **state)
{
    (void)state;
    const lac_shape shape = {8, 1};
    const lac_key key = key_of(1, lac_scope_worker(0));
    const uint8_t bytes[12] = {8};
    lac_compressor *const c =
        open_for("random-block:0.25", LAC_FORM_PLAIN, shape);
    assert_fails(
        lac_compressor_check(c, &key, shape, bytes, 3), LAC_ERR_CORRUPT,
        "random-block: payload has 3 bytes, expected at least 4");
    assert_fails(
        lac_compressor_check(c, &key, shape, bytes, 12), LAC_ERR_CORRUPT,
        "random-block: start is 8, expected below 8");
    assert_fails(
        lac_compressor_check(c, &key, shape, bytes + 1, 11), LAC_ERR_CORRUPT,
        "random-block: payload has 11 bytes, expected 12");
    lac_compressor_close(c);
}

static void a_rank_counts_instead_of_the_ratio(void **state)
{
    (void)state;
    check_bound(
        "random-block:ratio=0.5,rank=2", (lac_shape){30, 20}, LAC_SCOPE_SHARED,
        4 * 2 * (30 + 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_start_is_as_likely_and_blocks_wrap),
        cmocka_unit_test(a_worker_sends_its_start),
        cmocka_unit_test(decoding_with_the_same_key_needs_no_start),
        cmocka_unit_test(all_values_pass_in_order),
        cmocka_unit_test(the_unbiased_form_scales),
        cmocka_unit_test(payload_is_as_documented),
        cmocka_unit_test(bad_payloads_are_refused),
        cmocka_unit_test(a_rank_counts_instead_of_the_ratio),
    };
    return cmocka_run_group_tests_name(
        "compress/random_block", tests, fill_numbers, NULL);
}
