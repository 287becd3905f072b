// SPDX-License-Identifier: MIT
// How exchanges overlap with the computation, against sums by hand; and the
// buckets of gradients.
#include <math.h>

#include "cli/plan/pattern.h"
#include "lac_test.h"

// A second a byte, and no latency.
static const plan_network unit = {PLAN_STAR, 1, 0};

static lac_exchange exchange(uint32_t round, unsigned flags, uint64_t seconds)
{
    return (lac_exchange){
        .round = round,
        .flags = flags,
        .times = 1,
        .messages = 1,
        .bytes = seconds,
        .largest = seconds,
        .total = seconds,
    };
}

static void without_overlap_everything_is_exposed(void **state)
{
    (void)state;
    lac_exchange exchanges[] = {exchange(0, LAC_EXCHANGE_HIDDEN, 3)};
    plan_call call = {
        .ready = 1, .period = 1, .exchanges = exchanges, .count = 1};
    const plan_pattern p = {.workers = 2, .calls = &call, .count = 1};
    const plan_wait wait = plan_pattern_wait(&p, &unit, 10);
    assert_true(wait.network == 3 && wait.exposed == 3);
}

static void hidden_exchanges_run_beside_the_computation(void **state)
{
    (void)state;
    lac_exchange exchanges[] = {
        exchange(0, LAC_EXCHANGE_HIDDEN, 3), exchange(0, 0, 2)};
    plan_call call = {
        .ready = 1, .period = 1, .exchanges = exchanges, .count = 2};
    const plan_pattern p = {
        .workers = 2, .overlap = true, .calls = &call, .count = 1};
    plan_wait wait = plan_pattern_wait(&p, &unit, 10);
    assert_true(wait.network == 5 && wait.exposed == 2);
    wait = plan_pattern_wait(&p, &unit, 1);
    assert_true(wait.network == 5 && wait.exposed == 4);
}

// The mean of the maxima, not the maximum of the means.
static void rounds_of_a_period_are_averaged(void **state)
{
    (void)state;
    lac_exchange exchanges[] = {
        exchange(0, LAC_EXCHANGE_HIDDEN, 1),
        exchange(1, LAC_EXCHANGE_HIDDEN, 7)};
    plan_call call = {
        .ready = 1, .period = 2, .exchanges = exchanges, .count = 2};
    const plan_pattern p = {
        .workers = 2, .overlap = true, .calls = &call, .count = 1};
    const plan_wait wait = plan_pattern_wait(&p, &unit, 4);
    assert_true(wait.network == 4 && wait.exposed == 1.5);
}

static void repeated_exchanges_count_as_often(void **state)
{
    (void)state;
    lac_exchange exchanges[] = {exchange(0, 0, 2)};
    exchanges[0].times = 7;
    plan_call call = {
        .ready = 1, .period = 1, .exchanges = exchanges, .count = 1};
    const plan_pattern p = {.workers = 2, .calls = &call, .count = 1};
    assert_true(plan_pattern_wait(&p, &unit, 1).network == 14);
}

// Two fragments of 9 and 3 seconds. Three steps of 2 seconds hide 6 of each.
static void the_steps_of_a_delay_hide_each_fragment(void **state)
{
    (void)state;
    lac_exchange first[] = {exchange(0, LAC_EXCHANGE_HIDDEN, 9)};
    lac_exchange second[] = {
        exchange(0, LAC_EXCHANGE_HIDDEN, 2), exchange(1, 0, 4)};
    plan_call calls[] = {
        {.ready = 1, .period = 1, .exchanges = first, .count = 1},
        {.ready = 1, .period = 2, .exchanges = second, .count = 2},
    };
    plan_pattern p = {
        .workers = 2,
        .overlap = true,
        .apart = true,
        .delay = 3,
        .calls = calls,
        .count = 2,
    };
    plan_wait wait = plan_pattern_wait(&p, &unit, 2);
    assert_true(wait.network == 9 + 3 && wait.exposed == 3 + 2);
    p.overlap = false;
    wait = plan_pattern_wait(&p, &unit, 2);
    assert_true(wait.network == 9 + 3 && wait.exposed == 9 + 3);
}

// Every fragment is listed as a call of its own, and only a delay hides them.
static void fragments_are_calls(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "outer:fragments=3", "outer:fragments=3,delay=2"};
    const lac_tensor tensors[] = {
        {.name = "a", .shape = {40, 10}},
        {.name = "b", .shape = {30, 10}},
        {.name = "c", .shape = {20, 10}},
        {.name = "d", .shape = {7, 10}}};
    lac_algorithm_options o = lac_algorithm_options_default();
    lac_layout *layout;
    assert_ok(lac_layout_open(&layout, tensors, 4));
    o.layout = layout;
    o.workers = 2;
    for (int k = 0; k < 2; k++) {
        plan_pattern p;
        uint64_t bytes = 0;
        o.spec = specs[k];
        assert_ok(plan_pattern_open(&p, &o, LAC_FAMILY_MODEL, true));
        assert_true(p.apart);
        assert_int_equal(p.count, 3);
        for (size_t i = 0; i < p.count; i++) {
            assert_int_equal(p.calls[i].count, 1);
            const lac_exchange *const e = &p.calls[i].exchanges[0];
            assert_int_equal((e->flags & LAC_EXCHANGE_HIDDEN) != 0, k == 1);
            bytes += e->bytes;
        }
        // A frame and a count of non-finite tensors each.
        assert_true(bytes > 970 * 4 && bytes < 970 * 4 + 3 * 100);
        plan_pattern_close(&p);
    }
    lac_layout_close(layout);
}

// Ready at 4 and 8; the first ends at 7 and the second begins at 8. If both are
// longer, the second waits for the first.
static void a_bucket_waits_for_its_gradients_and_the_one_before(void **state)
{
    (void)state;
    lac_exchange first[] = {exchange(0, 0, 3)}, second[] = {exchange(0, 0, 5)};
    plan_call calls[] = {
        {.ready = 0.5, .period = 1, .exchanges = first, .count = 1},
        {.ready = 1, .period = 1, .exchanges = second, .count = 1},
    };
    const plan_pattern p = {
        .workers = 2, .overlap = true, .calls = calls, .count = 2};
    assert_true(plan_pattern_wait(&p, &unit, 8).exposed == 5);
    assert_true(plan_pattern_wait(&p, &unit, 2).exposed == 1 + 3 + 5 - 2);
}

enum { MEBIBYTE = 1 << 18 }; // in floats

static plan_pattern open_pattern(
    const lac_tensor *tensors, size_t count, bool overlap)
{
    lac_layout *layout;
    plan_pattern p;
    assert_ok(lac_layout_open(&layout, tensors, count));
    lac_algorithm_options o = lac_algorithm_options_default();
    o.layout = layout;
    o.workers = 8;
    o.transport_name = "mpi";
    assert_ok(plan_pattern_open(&p, &o, LAC_FAMILY_GRADIENT, overlap));
    lac_layout_close(layout);
    return p;
}

// From the last tensor on: 1 MiB, then at least 25 MiB, then the rest.
static void buckets_are_those_of_pytorch(void **state)
{
    (void)state;
    const lac_tensor tensors[] = {
        {"a", {2 * MEBIBYTE, 1}, 0, 0},  {"b", {8 * MEBIBYTE, 1}, 0, 0},
        {"c", {20 * MEBIBYTE, 1}, 0, 0}, {"d", {9 * MEBIBYTE, 1}, 0, 0},
        {"e", {1 * MEBIBYTE, 1}, 0, 0},
    };
    plan_pattern p = open_pattern(tensors, 5, true);
    assert_int_equal(p.count, 3);
    const double forward = 1.0 / 3;
    const double ready[] = {
        forward + (1 - forward) * 1 / 40, forward + (1 - forward) * 30 / 40, 1};
    for (size_t i = 0; i < 3; i++) {
        assert_true(fabs(p.calls[i].ready - ready[i]) < 1e-15);
        assert_true(p.calls[i].count > 0);
    }
    const double all = plan_pattern_wait(&p, &unit, 0).network;
    plan_pattern_close(&p);
    // The same bytes in one call, up to the frames of the small messages.
    p = open_pattern(tensors, 5, false);
    assert_int_equal(p.count, 1);
    assert_true(p.calls[0].ready == 1);
    const double one = plan_pattern_wait(&p, &unit, 0).network;
    assert_true(fabs(all / one - 1) < 1e-4);
    plan_pattern_close(&p);
}

static void a_small_model_is_one_bucket(void **state)
{
    (void)state;
    const lac_tensor tensors[] = {{"a", {10, 1}, 0, 0}, {"b", {10, 1}, 0, 0}};
    plan_pattern p = open_pattern(tensors, 2, true);
    assert_int_equal(p.count, 1);
    assert_true(p.calls[0].ready == 1);
    plan_pattern_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_overlap_everything_is_exposed),
        cmocka_unit_test(hidden_exchanges_run_beside_the_computation),
        cmocka_unit_test(rounds_of_a_period_are_averaged),
        cmocka_unit_test(repeated_exchanges_count_as_often),
        cmocka_unit_test(the_steps_of_a_delay_hide_each_fragment),
        cmocka_unit_test(fragments_are_calls),
        cmocka_unit_test(a_bucket_waits_for_its_gradients_and_the_one_before),
        cmocka_unit_test(buckets_are_those_of_pytorch),
        cmocka_unit_test(a_small_model_is_one_bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
