// SPDX-License-Identifier: MIT
// Random matchings: all pairs of a round, their distribution, and the spectrum
// of the mean matrix. The duties of all topologies are in
// tests/conformance/test_topologies.c.
#include "lac_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WORKERS_MAX = 9, DRAWS = 60000 };

static lac_topology *open_matching(uint32_t workers, uint32_t rounds)
{
    char spec[64];
    lac_topology *t;
    (void)snprintf(spec, sizeof(spec), "random-matching:rounds=%u", rounds);
    assert_ok(lac_topology_open(&t, spec, workers, 1));
    return t;
}

// The partner of a worker, itself if it has none.
static uint32_t partner_of(const lac_topology *t, uint32_t rank, uint64_t round)
{
    const lac_edge *edges;
    const uint32_t count = lac_topology_edges(t, rank, round, &edges);
    assert_true(count <= 1);
    assert_true(count == 0 || edges[0].weight == 0.5);
    assert_true(
        lac_topology_self_weight(t, rank, round) == (count == 0 ? 1 : 0.5));
    return count == 0 ? rank : edges[0].peer;
}

static void all_have_a_partner_or_all_but_one(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= WORKERS_MAX; n++) {
        lac_topology *const t = open_matching(n, 256);
        for (uint64_t round = 0; round < lac_topology_period(t); round++) {
            uint32_t idle = 0;
            for (uint32_t i = 0; i < n; i++) {
                const uint32_t peer = partner_of(t, i, round);
                assert_int_equal(partner_of(t, peer, round), i);
                idle += peer == i;
            }
            assert_int_equal(idle, n % 2);
        }
        lac_topology_close(t);
    }
}

static void all_workers_are_peers(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= WORKERS_MAX; n++) {
        lac_topology *t;
        const uint32_t *peers;
        assert_ok(lac_topology_open(&t, "random-matching", n, 1));
        assert_int_equal(lac_topology_period(t), n == 2 ? 1 : 256);
        assert_int_equal(lac_topology_peers(t, n - 1, &peers), n - 1);
        assert_int_equal(lac_topology_edge_count(t), n * (n - 1) / 2);
        assert_int_equal(lac_topology_max_degree(t), 1);
        lac_topology_close(t);
    }
}

// A number that differs between matchings: the partners of all workers as its
// digits.
static uint32_t number_of(const lac_topology *t, uint64_t round)
{
    uint32_t number = 0;
    for (uint32_t i = 0; i < lac_topology_workers(t); i++) {
        number = number * WORKERS_MAX + partner_of(t, i, round);
    }
    return number;
}

// A matching of m equally likely ones is drawn DRAWS/m times, with a standard
// deviation below sqrt(DRAWS/m); 5 of them are exceeded with probability
// 6e-7 for each of at most 15 matchings.
static void all_matchings_are_equally_likely(void **state)
{
    (void)state;
    static const struct {
        uint32_t workers;
        uint32_t matchings;
    } cases[] = {{3, 3}, {4, 3}, {5, 15}, {6, 15}};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        lac_topology *const t = open_matching(cases[k].workers, DRAWS);
        uint32_t numbers[15] = {0}, counts[15] = {0}, found = 0;
        for (uint64_t round = 0; round < DRAWS; round++) {
            const uint32_t number = number_of(t, round);
            uint32_t i = 0;
            while (i < found && numbers[i] != number) {
                i++;
            }
            assert_true(i < cases[k].matchings);
            numbers[i] = number;
            counts[i]++;
            found += i == found;
        }
        const double expected = DRAWS / (double)cases[k].matchings;
        assert_int_equal(found, cases[k].matchings);
        for (uint32_t i = 0; i < found; i++) {
            assert_true(fabs(counts[i] - expected) < 5 * sqrt(expected));
        }
        lac_topology_close(t);
    }
}

// E[W] = (1 - p) I + p/n 11'. An entry of W is between 0 and 1, so the mean of
// DRAWS of them has a standard deviation below 0.5 / sqrt(DRAWS).
static void the_spectrum_is_that_of_the_mean(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= WORKERS_MAX; n++) {
        double mean[WORKERS_MAX * WORKERS_MAX] = {0};
        lac_topology *const t = open_matching(n, DRAWS);
        lac_spectrum s;
        assert_ok(lac_topology_spectrum(t, &s));
        const double p = n % 2 == 1 ? 0.5 : n / (2.0 * (n - 1));
        assert_true(s.gap == p && s.beta == p);
        assert_true(s.lambda2 == 1 - p && s.lambdan == 1 - p);
        for (uint64_t round = 0; round < DRAWS; round++) {
            double w[WORKERS_MAX * WORKERS_MAX];
            lac_topology_matrix(t, round, w);
            for (uint32_t i = 0; i < n * n; i++) {
                mean[i] += w[i] / DRAWS;
            }
        }
        for (uint32_t i = 0; i < n * n; i++) {
            const double own = i % (n + 1) == 0 ? 1 - p : 0;
            assert_true(
                fabs(mean[i] - own - p / n) < 5 * 0.5 / sqrt((double)DRAWS));
        }
        lac_topology_close(t);
    }
}

static void a_round_does_not_depend_on_how_many_are_drawn(void **state)
{
    (void)state;
    lac_topology *const few = open_matching(8, 20);
    lac_topology *const many = open_matching(8, 1000);
    bool differ = false;
    for (uint64_t round = 0; round < 20; round++) {
        assert_int_equal(number_of(few, round), number_of(many, round));
        assert_int_equal(number_of(few, round), number_of(few, round + 20));
        differ = differ || number_of(few, round) != number_of(few, 0);
    }
    assert_true(differ);
    lac_topology_close(few);
    lac_topology_close(many);
}

static void too_few_rounds_for_all_workers_are_refused(void **state)
{
    (void)state;
    lac_topology *t;
    assert_fails(
        lac_topology_open(&t, "random-matching:rounds=1", 4, 1),
        LAC_ERR_INVALID,
        "random-matching: none of 100 random graphs of 4 workers is connected "
        "with a gap above 0, expected settings that give more edges");
}

static void only_matchings_are_drawn(void **state)
{
    (void)state;
    static const char *const specs[] = {"ring", "one-peer-exponential"};
    lac_topology *t = open_matching(4, 8);
    assert_true(lac_topology_is_drawn(t));
    lac_topology_close(t);
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        assert_ok(lac_topology_open(&t, specs[i], 4, 1));
        assert_false(lac_topology_is_drawn(t));
        lac_topology_close(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_have_a_partner_or_all_but_one),
        cmocka_unit_test(all_workers_are_peers),
        cmocka_unit_test(all_matchings_are_equally_likely),
        cmocka_unit_test(the_spectrum_is_that_of_the_mean),
        cmocka_unit_test(a_round_does_not_depend_on_how_many_are_drawn),
        cmocka_unit_test(too_few_rounds_for_all_workers_are_refused),
        cmocka_unit_test(only_matchings_are_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
