// SPDX-License-Identifier: MIT
// Random graphs: functions of the seed, of the right size, and the same on
// every machine.
#include "lac_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 4096 };

// Writes every edge as "a-b ".
static void write_edges(
    const char *spec, uint32_t workers, uint64_t seed, char text[TEXT])
{
    lac_topology *t;
    size_t used = 0;
    text[0] = '\0';
    assert_ok(lac_topology_open(&t, spec, workers, seed));
    for (uint32_t i = 0; i < workers; i++) {
        const uint32_t *peers;
        const uint32_t count = lac_topology_peers(t, i, &peers);
        for (uint32_t k = 0; k < count; k++) {
            if (i < peers[k]) {
                used += (size_t)snprintf(
                    text + used, TEXT - used, "%u-%u ", i, peers[k]);
                assert_true(used < TEXT);
            }
        }
    }
    lac_topology_close(t);
}

static const char *const specs[] = {
    "erdos-renyi:0.3", "random-regular:3", "small-world:4,probability=0.5"};
enum { SPECS = sizeof(specs) / sizeof(specs[0]) };

static void the_seed_decides(void **state)
{
    (void)state;
    for (size_t i = 0; i < SPECS; i++) {
        char first[TEXT], again[TEXT], other[TEXT];
        write_edges(specs[i], 20, 5, first);
        write_edges(specs[i], 20, 5, again);
        write_edges(specs[i], 20, 6, other);
        assert_string_equal(first, again);
        assert_string_not_equal(first, other);
    }
}

// All workers of a job draw the graph for themselves, so these never change.
static void graphs_are_pinned(void **state)
{
    (void)state;
    static const char *const pinned[SPECS] = {
        "0-2 0-3 0-6 1-3 1-5 1-6 2-7 3-5 3-6 4-6 4-7 5-7 ",
        "0-3 0-5 0-6 1-3 1-4 1-7 2-4 2-5 2-6 3-5 4-7 6-7 ",
        "0-1 0-2 0-4 0-5 0-6 0-7 1-2 1-3 1-4 1-7 2-5 2-7 3-4 3-5 5-7 6-7 ",
    };
    for (size_t i = 0; i < SPECS; i++) {
        char text[TEXT];
        write_edges(specs[i], 8, 1, text);
        assert_string_equal(text, pinned[i]);
    }
}

// The number of edges is binomial: N = 1000 * 999 / 2 pairs, standard deviation
// sqrt(N p (1 - p)), at most 354; the graphs of 20 seeds stay within 4.5 of
// them with probability 0.9999.
static void edges_are_as_many_as_is_probable(void **state)
{
    (void)state;
    static const double probabilities[] = {0.011, 0.05, 0.3, 0.5, 0.9};
    const double pairs = 1000 * 999 / 2.0;
    for (size_t i = 0; i < 5; i++) {
        const double p = probabilities[i];
        char spec[40];
        (void)snprintf(spec, sizeof(spec), "erdos-renyi:%g", p);
        for (uint64_t seed = 0; seed < 4; seed++) {
            lac_topology *t;
            assert_ok(lac_topology_open(&t, spec, 1000, seed));
            const double count = (double)lac_topology_edge_count(t);
            assert_true(
                fabs(count - pairs * p) < 4.5 * sqrt(pairs * p * (1 - p)));
            lac_topology_close(t);
        }
    }
}

// Every pair is as likely as any other. Over 2000 seeds a pair of 6 workers
// with p = 0.9 is there 0.9 * 2000 times, more exactly 0.9 / P(connected),
// which is within 1e-4 of it; 15 pairs stay within 5 standard deviations of
// sqrt(2000 * 0.09) = 13.4 with probability 0.99999.
static void pairs_are_equally_probable(void **state)
{
    (void)state;
    int met[6][6] = {{0}};
    for (uint64_t seed = 0; seed < 2000; seed++) {
        lac_topology *t;
        assert_ok(lac_topology_open(&t, "erdos-renyi:0.9", 6, seed));
        for (uint32_t i = 0; i < 6; i++) {
            const uint32_t *peers;
            const uint32_t count = lac_topology_peers(t, i, &peers);
            for (uint32_t k = 0; k < count; k++) {
                met[i][peers[k]]++;
            }
        }
        lac_topology_close(t);
    }
    for (int i = 0; i < 36; i++) {
        assert_true(i / 6 == i % 6 || abs(met[i / 6][i % 6] - 1800) < 67);
    }
}

static void every_worker_of_a_regular_graph_has_the_degree(void **state)
{
    (void)state;
    static const uint32_t cases[][2] = {{5, 4},    {6, 5},   {6, 3},   {64, 3},
                                        {100, 31}, {50, 48}, {101, 2}, {2, 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        lac_topology *t;
        char spec[40];
        (void)snprintf(spec, sizeof(spec), "random-regular:%u", cases[i][1]);
        assert_ok(lac_topology_open(&t, spec, cases[i][0], 3));
        for (uint32_t rank = 0; rank < cases[i][0]; rank++) {
            const uint32_t *peers;
            assert_int_equal(lac_topology_peers(t, rank, &peers), cases[i][1]);
        }
        lac_topology_close(t);
    }
}

// There are 70 cubic graphs on 6 named workers: 10 are K(3,3), which has no
// triangle, and 60 are prisms. Uniform draws give K(3,3) to 1/7 of 1400 seeds,
// 200, with a standard deviation of 13; five of them are allowed.
static void regular_graphs_are_equally_probable(void **state)
{
    (void)state;
    int bipartite = 0;
    for (uint64_t seed = 0; seed < 1400; seed++) {
        char text[TEXT];
        uint32_t rows[6] = {0};
        write_edges("random-regular:3", 6, seed, text);
        for (const char *at = text; *at != '\0'; at += 4) {
            rows[at[0] - '0'] |= 1u << (at[2] - '0');
            rows[at[2] - '0'] |= 1u << (at[0] - '0');
        }
        bool triangle = false;
        for (int i = 0; i < 36; i++) {
            triangle = triangle || ((rows[i / 6] >> i % 6 & 1) != 0 &&
                                    (rows[i / 6] & rows[i % 6]) != 0);
        }
        bipartite += !triangle;
    }
    assert_true(abs(bipartite - 200) < 65);
}

// Shortcuts keep the number of edges. Of 2000 edges the far end of about
// p * 2000 moves: within 5 standard deviations of sqrt(2000 p (1 - p)).
static void shortcuts_are_as_many_as_is_probable(void **state)
{
    (void)state;
    lac_topology *t;
    int moved = 0;
    assert_ok(lac_topology_open(
        &t, "small-world:neighbours=4,probability=0.2", 1000, 1));
    assert_int_equal(lac_topology_edge_count(t), 2000);
    for (uint32_t i = 0; i < 1000; i++) {
        const uint32_t *peers;
        const uint32_t count = lac_topology_peers(t, i, &peers);
        for (uint32_t k = 0; k < count; k++) {
            const uint32_t way = (peers[k] + 1000 - i) % 1000;
            moved += i < peers[k] && way > 2 && way < 998;
        }
    }
    assert_true(abs(moved - 400) < 90);
    lac_topology_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_seed_decides),
        cmocka_unit_test(graphs_are_pinned),
        cmocka_unit_test(edges_are_as_many_as_is_probable),
        cmocka_unit_test(pairs_are_equally_probable),
        cmocka_unit_test(every_worker_of_a_regular_graph_has_the_degree),
        cmocka_unit_test(regular_graphs_are_equally_probable),
        cmocka_unit_test(shortcuts_are_as_many_as_is_probable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
