// SPDX-License-Identifier: MIT
// The time of exchanges on each kind of network, against sums by hand.
#include <math.h>

#include "cli/plan/network.h"
#include "lac_test.h"

enum { MEGABYTE = 1000000 };

// 1 MB takes 8 ms; one latency is 1 ms.
static const plan_network star = {PLAN_STAR, 125e6, 1e-3};
static const plan_network pairs = {PLAN_PAIRS, 125e6, 1e-3};
static const plan_network shared = {PLAN_SHARED, 125e6, 1e-3};

// Two messages of 1 MB to each of eight workers.
static const lac_exchange gossip = {
    .messages = 2,
    .bytes = 2 * MEGABYTE,
    .largest = MEGABYTE,
    .total = 16 * MEGABYTE,
};

// A few roundings of sums near 1.
static bool takes(
    double expected, const plan_network *n, const lac_exchange *e,
    uint32_t workers)
{
    plan_clock clock = plan_clock_start();
    lac_exchange once = *e;
    once.times = once.times == 0 ? 1 : once.times;
    plan_clock_advance(&clock, n, &once, workers);
    return fabs(clock.done - expected) < 1e-14;
}

static void a_port_carries_all_messages_of_its_worker(void **state)
{
    (void)state;
    assert_true(takes(0.017, &star, &gossip, 8));
}

static void pairs_carry_their_messages_side_by_side(void **state)
{
    (void)state;
    assert_true(takes(0.009, &pairs, &gossip, 8));
}

static void a_shared_medium_carries_everything(void **state)
{
    (void)state;
    assert_true(takes(0.129, &shared, &gossip, 8));
}

static void exchanges_repeat(void **state)
{
    (void)state;
    lac_exchange e = gossip;
    e.times = 5;
    assert_true(takes(5 * 0.017, &star, &e, 8));
}

// Exchange t waits for the messages of exchange t - 1. When they take longer
// than the latency, the port is always busy: all but the last of the messages,
// and one latency.
static void messages_that_are_sent_ahead_hide_the_latency(void **state)
{
    (void)state;
    lac_exchange e = gossip;
    e.flags = LAC_EXCHANGE_AHEAD;
    e.times = 1;
    assert_true(takes(0, &star, &e, 8));
    e.times = 5;
    assert_true(takes(4 * 0.016 + 0.001, &star, &e, 8));
}

// When the latency is longer, two exchanges take one latency.
static void two_exchanges_ahead_are_under_way_at_a_time(void **state)
{
    (void)state;
    lac_exchange e = gossip;
    e.flags = LAC_EXCHANGE_AHEAD;
    e.bytes = 0;
    e.times = 9;
    assert_true(takes(0.004, &star, &e, 8));
}

// Many repetitions are not computed one by one, with the same result.
static void many_exchanges_continue_the_first(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0, 1000, 124000, 2 * MEGABYTE};
    for (size_t i = 0; i < 4; i++) {
        for (uint32_t times = 60; times < 140; times++) {
            lac_exchange e = gossip;
            plan_clock one_by_one = plan_clock_start(), at_once = one_by_one;
            e.flags = LAC_EXCHANGE_AHEAD;
            e.bytes = sizes[i];
            for (uint32_t k = 0; k < times; k++) {
                e.times = 1;
                plan_clock_advance(&one_by_one, &star, &e, 8);
            }
            e.times = times;
            plan_clock_advance(&at_once, &star, &e, 8);
            assert_true(fabs(at_once.done - one_by_one.done) < 1e-13);
            assert_true(fabs(at_once.sent - one_by_one.sent) < 1e-13);
        }
    }
}

// 2 log2(8) latencies, 2 * 7/8 of the vector.
static void allreduce_halves_and_doubles(void **state)
{
    (void)state;
    const lac_exchange e = {
        .flags = LAC_EXCHANGE_ALLREDUCE,
        .bytes = MEGABYTE,
    };
    assert_true(takes(0.006 + 0.014, &star, &e, 8));
    assert_true(takes(0.006 + 0.014, &pairs, &e, 8));
    assert_true(takes(0.006 + 8 * 0.014, &shared, &e, 8));
    assert_true(takes(0.002 + 0.008, &star, &e, 2));
    assert_true(takes(0, &star, &e, 1));
}

// Six workers: four in the core, two whose vectors go there and back. Three:
// two and one.
static void allreduce_of_other_numbers_adds_two_exchanges(void **state)
{
    (void)state;
    const lac_exchange e = {
        .flags = LAC_EXCHANGE_ALLREDUCE,
        .bytes = MEGABYTE,
    };
    assert_true(takes(0.004 + 0.012 + 0.002 + 0.016, &star, &e, 6));
    assert_true(takes(0.002 + 0.008 + 0.002 + 0.016, &star, &e, 3));
    assert_true(takes(0.004 + 4 * 0.012 + 0.002 + 2 * 0.016, &shared, &e, 6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_carries_all_messages_of_its_worker),
        cmocka_unit_test(pairs_carry_their_messages_side_by_side),
        cmocka_unit_test(a_shared_medium_carries_everything),
        cmocka_unit_test(exchanges_repeat),
        cmocka_unit_test(messages_that_are_sent_ahead_hide_the_latency),
        cmocka_unit_test(two_exchanges_ahead_are_under_way_at_a_time),
        cmocka_unit_test(many_exchanges_continue_the_first),
        cmocka_unit_test(allreduce_halves_and_doubles),
        cmocka_unit_test(allreduce_of_other_numbers_adds_two_exchanges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
