// SPDX-License-Identifier: MIT
// Majority vote on the signs of an exponential moving average.
#include "reduction.h"

static void run(reduction *r)
{
    r->compressor = NULL;
    reduction_run(r);
}

// Worker k is negative where bit k of i is set: all votes of four workers.
static float all_votes(uint32_t rank, uint64_t round, size_t i)
{
    (void)round;
    return (i >> rank & 1) != 0 ? -0.5f - (float)rank : 100;
}

static void assert_majority_wins(const char *algorithm, float tie)
{
    for (uint32_t workers = 1; workers <= 4; workers++) {
        reduction r = {
            .algorithm = algorithm,
            .workers = workers,
            .rounds = 1,
            .gradient = all_votes,
        };
        run(&r);
        for (size_t i = 0; i < REDUCTION_VALUES; i++) {
            uint32_t negative = 0;
            for (uint32_t k = 0; k < workers; k++) {
                negative += (uint32_t)(i >> k & 1);
            }
            const float expected = 2 * negative > workers   ? -1
                                   : 2 * negative < workers ? 1
                                                            : tie;
            assert_true(r.last[i] == expected);
        }
    }
}

static void the_majority_wins_and_a_tie_is_positive(void **state)
{
    (void)state;
    assert_majority_wins("signum", 1);
}

static void a_tie_can_be_zero(void **state)
{
    (void)state;
    assert_majority_wins("signum:tie=zero", 0);
}

static float zeros(uint32_t rank, uint64_t round, size_t i)
{
    (void)rank, (void)round, (void)i;
    return i % 2 == 0 ? 0.0f : -0.0f;
}

static void zero_is_positive(void **state)
{
    (void)state;
    reduction r = {
        .algorithm = "signum", .workers = 3, .rounds = 2, .gradient = zeros};
    run(&r);
    for (size_t i = 0; i < REDUCTION_VALUES; i++) {
        assert_true(r.last[i] == 1);
    }
}

// The average stays positive for some rounds after the first.
static float turning(uint32_t rank, uint64_t round, size_t i)
{
    (void)rank, (void)i;
    return round == 0 ? 1 : -0.1f;
}

static double first_negative(const char *algorithm)
{
    for (uint64_t rounds = 1;; rounds++) {
        reduction r = {
            .algorithm = algorithm,
            .workers = 1,
            .rounds = rounds,
            .gradient = turning,
        };
        run(&r);
        if (r.last[0] < 0) {
            return (double)rounds;
        }
    }
}

static double expected_negative(double b)
{
    double m = 0;
    for (uint64_t round = 0;; round++) {
        m = b * m + (1 - b) * (double)turning(0, round, 0);
        if (m < 0) {
            return (double)(round + 1);
        }
    }
}

static void momentum_is_a_moving_average(void **state)
{
    (void)state;
    assert_true(first_negative("signum") == expected_negative(0.9));
    assert_true(first_negative("signum:0.5") == expected_negative(0.5));
    assert_true(first_negative("signum:momentum=0") == 2);
}

static void a_payload_is_one_bit_a_value(void **state)
{
    (void)state;
    reduction r = {
        .algorithm = "signum",
        .workers = 2,
        .rounds = 3,
        .gradient = steady_gradient,
    };
    run(&r);
    assert_int_equal(r.traffic.payload_bytes, 3 * 8); // ceil(60 / 8)
    assert_int_equal(r.traffic.messages, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_majority_wins_and_a_tie_is_positive),
        cmocka_unit_test(a_tie_can_be_zero),
        cmocka_unit_test(zero_is_positive),
        cmocka_unit_test(momentum_is_a_moving_average),
        cmocka_unit_test(a_payload_is_one_bit_a_value),
    };
    return cmocka_run_group_tests_name("signum", tests, NULL, NULL);
}
