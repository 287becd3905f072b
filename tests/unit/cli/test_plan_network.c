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
    return fabs(plan_exchange_seconds(n, e, workers) - expected) < 1e-14;
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

static void messages_sent_before_hide_the_shorter_of_the_two(void **state)
{
    (void)state;
    lac_exchange e = gossip;
    e.flags = LAC_EXCHANGE_AHEAD;
    assert_true(takes(0.016, &star, &e, 8));
    e.bytes = 125; // a microsecond
    assert_true(takes(0.001, &star, &e, 8));
}

static void no_message_takes_no_time(void **state)
{
    (void)state;
    const lac_exchange none = {0};
    assert_true(takes(0, &star, &none, 8));
    assert_true(takes(0, &shared, &none, 8));
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
        cmocka_unit_test(messages_sent_before_hide_the_shorter_of_the_two),
        cmocka_unit_test(no_message_takes_no_time),
        cmocka_unit_test(allreduce_halves_and_doubles),
        cmocka_unit_test(allreduce_of_other_numbers_adds_two_exchanges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
