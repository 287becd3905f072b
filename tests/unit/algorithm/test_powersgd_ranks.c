// SPDX-License-Identifier: MIT
// Two ranks of powersgd: the higher one while gradients change, or after the
// rate fell; nothing of the memory is lost when the rank changes.
#include "cost.h"
#include "reduction.h"

enum {
    INTERVAL = 3,
    ROUNDS = 24,
    LOW_BYTES = 4 * (6 + 10), // of a round with rank 1
    HIGH_BYTES = 2 * LOW_BYTES,
};

static const char spec[] = "powersgd:rank=1,high=2,interval=3";

// A matrix of rank 1: all of it is delivered in every round, so that only its
// own changes show in the norm.
static float calm_gradient(uint32_t rank, uint64_t round, size_t i)
{
    (void)round;
    return (float)(1 + i / 10) * ((float)(i % 10) - 4.2f) * (float)(rank + 1);
}

// Ten times larger from round 12 on.
static float jumping_gradient(uint32_t rank, uint64_t round, size_t i)
{
    return calm_gradient(rank, round, i) * (round < 12 ? 1 : 10);
}

// Zero from round 7 on, where the rank has become 1.
static float ending_gradient(uint32_t rank, uint64_t round, size_t i)
{
    return round < 7 ? changing_gradient(rank, round % 2, i) : 0;
}

// The bytes of a round.
static uint64_t bytes_of(reduction r, uint64_t round)
{
    r.rounds = round;
    reduction_run(&r);
    const uint64_t before = r.traffic.payload_bytes;
    r.rounds = round + 1;
    reduction_run(&r);
    return r.traffic.payload_bytes - before;
}

static reduction run_of(
    const char *algorithm, float (*gradient)(uint32_t, uint64_t, size_t))
{
    return (reduction){
        .algorithm = algorithm,
        .workers = REDUCTION_WORKERS,
        .gradient = gradient,
    };
}

// The first interval has no norm to compare with, and neither rank nor bytes
// change within one.
static void steady_gradients_have_the_low_rank(void **state)
{
    (void)state;
    const reduction r = run_of(spec, calm_gradient);
    for (uint64_t round = 1; round < 12; round++) {
        const bool high = round < 2 * (uint64_t)INTERVAL;
        assert_int_equal(bytes_of(r, round), high ? HIGH_BYTES : LOW_BYTES);
    }
}

// The interval from round 12 on is the first with the larger norm; those after
// it have the high rank, until the next comparison.
static void a_change_raises_the_rank(void **state)
{
    (void)state;
    const reduction r = run_of(spec, jumping_gradient);
    assert_int_equal(bytes_of(r, 12), LOW_BYTES);
    assert_int_equal(bytes_of(r, 14), LOW_BYTES);
    assert_int_equal(bytes_of(r, 15), HIGH_BYTES);
    assert_int_equal(bytes_of(r, 17), HIGH_BYTES);
    assert_int_equal(bytes_of(r, 18), LOW_BYTES);
}

static double falling_rate(uint64_t round)
{
    return round < 8 ? 0.1 : 0.01;
}

static double gentle_rate(uint64_t round)
{
    return 0.1 * pow(0.9, (double)round);
}

// A fall below half within an interval counts; a slow one does not.
static void a_lower_rate_raises_the_rank(void **state)
{
    (void)state;
    reduction r = run_of(spec, calm_gradient);
    r.rate = falling_rate;
    assert_int_equal(bytes_of(r, 8), LOW_BYTES);
    assert_int_equal(bytes_of(r, 9), HIGH_BYTES);
    assert_int_equal(bytes_of(r, 12), LOW_BYTES);
    r.rate = gentle_rate;
    assert_int_equal(bytes_of(r, 9), LOW_BYTES);
}

// All that was given is delivered in the end: the memory of a matrix of rank 6
// empties by at least one rank a round or so. Sums stay below 40; a round has
// about twenty roundings of 2^-19 of such.
static void assert_delivers(const char *algorithm)
{
    enum { MANY = 120 };
    reduction r = run_of(algorithm, ending_gradient);
    r.rounds = MANY;
    reduction_run(&r);
    for (size_t i = 0; i < REDUCTION_VALUES; i++) {
        double expected = 0;
        for (uint64_t round = 0; round < 7; round++) {
            for (uint32_t k = 0; k < r.workers; k++) {
                expected += (double)ending_gradient(k, round, i) / r.workers;
            }
        }
        assert_true(fabs(r.sum[i] - expected) < MANY * 20 * 0x1p-19);
    }
    assert_int_equal(
        bytes_of(run_of(algorithm, ending_gradient), 6) * 2,
        bytes_of(run_of(algorithm, ending_gradient), 5));
}

static void the_memory_survives_a_change_of_rank(void **state)
{
    (void)state;
    assert_delivers(spec);
}

// Of rank 2 and then 0: rank 2 delivers all of it, and nothing is left for the
// first round of rank 1. Values are below 200 and S Q has a few roundings.
static float brief_gradient(uint32_t rank, uint64_t round, size_t i)
{
    const float second = (float)(i / 10 % 2) * (float)(i % 10 % 3);
    return round < 6 ? calm_gradient(rank, round, i) + 20 * second : 0;
}

static void what_was_delivered_is_not_delivered_again(void **state)
{
    (void)state;
    reduction r = run_of(spec, brief_gradient);
    assert_int_equal(bytes_of(r, 6), LOW_BYTES);
    r.rounds = 7;
    reduction_run(&r);
    for (size_t i = 0; i < REDUCTION_VALUES; i++) {
        assert_true(fabs((double)r.last[i]) < 200 * 100 * 0x1p-24);
    }
}

static void without_a_high_rank_nothing_changes(void **state)
{
    (void)state;
    float results[2][ROUNDS][REDUCTION_VALUES];
    static const char *const specs[] = {
        "powersgd:rank=2", "powersgd:rank=2,high=2,interval=1"};
    for (size_t k = 0; k < 2; k++) {
        reduction r = run_of(specs[k], changing_gradient);
        r.rounds = ROUNDS;
        r.results = results[k];
        reduction_run(&r);
    }
    assert_memory_equal(results[0], results[1], sizeof(results[0]));
}

static void a_high_rank_below_the_rank_is_refused(void **state)
{
    (void)state;
    assert_refused(
        "powersgd:rank=3,high=2", NULL, 4,
        "powersgd: high is 2 with rank=3, expected at least that, or 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steady_gradients_have_the_low_rank),
        cmocka_unit_test(a_change_raises_the_rank),
        cmocka_unit_test(a_lower_rate_raises_the_rank),
        cmocka_unit_test(the_memory_survives_a_change_of_rank),
        cmocka_unit_test(what_was_delivered_is_not_delivered_again),
        cmocka_unit_test(without_a_high_rank_nothing_changes),
        cmocka_unit_test(a_high_rank_below_the_rank_is_refused),
    };
    return cmocka_run_group_tests_name("powersgd_ranks", tests, NULL, NULL);
}
