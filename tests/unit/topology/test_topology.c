// SPDX-License-Identifier: MIT
// Which workers each topology connects, with which weights. The duties of all
// are in tests/conformance/test_topologies.c.
#include "lac_test.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lac_topology *open_topology(const char *spec, uint32_t workers)
{
    lac_topology *t;
    assert_ok(lac_topology_open(&t, spec, workers, 1));
    return t;
}

static void one_worker_keeps_its_value(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "complete",       "star",
        "path",           "ring",
        "torus",          "hypercube",
        "exponential",    "one-peer-exponential",
        "random-regular", "erdos-renyi",
        "small-world",    "ring:max-degree",
        "file:/dev/null", "random-matching",
    };
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        lac_topology *const t = open_topology(specs[i], 1);
        const lac_edge *edges;
        const uint32_t *peers;
        assert_int_equal(lac_topology_edges(t, 0, 5, &edges), 0);
        assert_int_equal(lac_topology_peers(t, 0, &peers), 0);
        assert_true(lac_topology_self_weight(t, 0, 5) == 1);
        assert_int_equal(lac_topology_edge_count(t), 0);
        assert_int_equal(lac_topology_period(t), 1);
        lac_topology_close(t);
    }
}

// Fails unless worker 0 has exactly these neighbours, "1 4 7 ".
static void assert_neighbours(
    const char *spec, uint32_t workers, const char *expected)
{
    lac_topology *const t = open_topology(spec, workers);
    const lac_edge *edges;
    char text[200] = "";
    const uint32_t count = lac_topology_edges(t, 0, 0, &edges);
    for (uint32_t k = 0; k < count; k++) {
        const size_t used = strlen(text);
        (void)snprintf(text + used, sizeof(text) - used, "%u ", edges[k].peer);
    }
    assert_string_equal(text, expected);
    lac_topology_close(t);
}

static void neighbours_are_those_of_the_name(void **state)
{
    (void)state;
    assert_neighbours("complete", 4, "1 2 3 ");
    assert_neighbours("star", 4, "1 2 3 ");
    assert_neighbours("path", 4, "1 ");
    assert_neighbours("ring", 6, "1 5 ");
    assert_neighbours("torus", 12, "1 3 4 8 ");
    assert_neighbours("torus:rows=2", 12, "1 5 6 ");
    assert_neighbours("torus:1", 12, "1 11 ");
    assert_neighbours("torus", 7, "1 6 ");
    assert_neighbours("hypercube", 16, "1 2 4 8 ");
    assert_neighbours("exponential", 12, "1 2 4 8 10 11 ");
    assert_neighbours("exponential", 8, "1 2 4 6 7 ");
    assert_neighbours("one-peer-exponential", 8, "1 ");
    assert_neighbours("social", 32, "18 19 20 21 22 23 25 26 ");
    assert_neighbours("random-regular:4", 5, "1 2 3 4 ");
    assert_neighbours("erdos-renyi:1", 5, "1 2 3 4 ");
    assert_neighbours("small-world:4,probability=0", 9, "1 2 7 8 ");
}

static void weights_are_those_of_the_degrees(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        uint32_t workers;
        double first, self; // of worker 0
    } table[] = {
        {"ring", 8, 1.0 / 3, 1.0 / 3},
        {"ring", 2, 0.5, 0.5},
        {"path", 2, 0.5, 0.5},
        {"torus", 16, 0.2, 0.2},
        {"torus:2", 8, 0.2, 0.2},
        {"torus", 4, 0.4, 0.2},
        {"star", 5, 0.2, 0.2},
        {"star:max-degree", 5, 0.25, 0},
        {"path:max-degree", 5, 0.5, 0.5},
        {"ring:max-degree", 5, 0.5, 0},
        {"exponential", 8, 1.0 / 6, 1.0 / 6},
        {"hypercube", 8, 0.25, 0.25},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        lac_topology *const t = open_topology(table[i].spec, table[i].workers);
        const lac_edge *edges;
        assert_true(lac_topology_edges(t, 0, 0, &edges) > 0);
        assert_true(edges[0].weight == table[i].first);
        const double self = lac_topology_self_weight(t, 0, 0);
        assert_true(fabs(self - table[i].self) <= DBL_EPSILON);
        lac_topology_close(t);
    }
}

static void parallel_edges_of_a_torus_add_up(void **state)
{
    (void)state;
    lac_topology *const t = open_topology("torus:2", 8);
    const lac_edge *edges;
    assert_int_equal(lac_topology_edges(t, 0, 0, &edges), 3);
    assert_int_equal(edges[2].peer, 4); // the row below, which is that above
    assert_true(edges[2].weight == 2 * edges[0].weight);
    assert_int_equal(lac_topology_edge_count(t), 12);
    assert_int_equal(lac_topology_max_degree(t), 3);
    lac_topology_close(t);
}

// Regular graphs with max-degree weights have shares of exactly nothing, even
// where 1/d summed d times is not 1.
static void nothing_kept_is_exactly_nothing(void **state)
{
    (void)state;
    for (uint32_t n = 3; n < 70; n++) {
        lac_topology *const t = open_topology("complete:max-degree", n);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(lac_topology_self_weight(t, i, 0) == 0);
        }
        lac_topology_close(t);
    }
}

static void rounds_of_one_peer_reach_the_exact_mean(void **state)
{
    (void)state;
    enum { N = 16, ROUNDS = 4 };
    lac_topology *const t = open_topology("one-peer-exponential", N);
    assert_int_equal(lac_topology_period(t), ROUNDS);
    assert_int_equal(lac_topology_max_degree(t), 1);
    assert_int_equal(lac_topology_edge_count(t), N * ROUNDS / 2);
    double p[N][N], w[N * N];
    for (int i = 0; i < N * N; i++) {
        p[i / N][i % N] = i / N == i % N;
    }
    for (uint64_t round = 8; round < 8 + ROUNDS; round++) {
        double next[N][N] = {{0}};
        lac_topology_matrix(t, round, w);
        for (int i = 0; i < N * N * N; i++) {
            next[i / N / N][i % N] += w[i / N] * p[i / N % N][i % N];
        }
        memcpy(p, next, sizeof(p));
    }
    for (int i = 0; i < N * N; i++) {
        assert_true(p[i / N][i % N] == 1.0 / N);
    }
    const uint32_t *peers;
    assert_int_equal(lac_topology_peers(t, 5, &peers), ROUNDS);
    assert_int_equal(peers[0], 1);
    assert_int_equal(peers[3], 13);
    lac_topology_close(t);
}

static void every_topology_is_listed_with_its_weights(void **state)
{
    (void)state;
    size_t count;
    const lac_plugin *const *const plugins = lac_topologies(&count);
    assert_true(count >= 13);
    for (size_t i = 0; i < count; i++) {
        const lac_param *param = plugins[i]->params;
        while (strcmp(param->name, "weights") != 0) {
            param++;
            assert_non_null(param->name);
        }
        assert_null(param[1].name);
        assert_non_null(plugins[i]->summary);
    }
}

// Each allocation of an open fails in turn.
static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    static const char *const specs[] = {"ring",          "one-peer-exponential",
                                        "small-world",   "random-regular",
                                        "erdos-renyi",   "complete",
                                        "file:/dev/null"};
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        const uint32_t workers = i == 6 ? 1 : 64;
        lac_status status = LAC_ERR_NOMEM;
        long allowed = 0;
        for (; status != LAC_OK; allowed++) {
            lac_topology *t = (void *)1;
            test_allocations_left = allowed;
            status = lac_topology_open(&t, specs[i], workers, 1);
            test_allocations_left = -1;
            assert_true(status == LAC_OK || t == NULL);
            assert_true(status == LAC_OK || status == LAC_ERR_NOMEM);
            assert_between(allowed, 0, 100);
            lac_topology_close(t);
        }
        assert_true(allowed > 6);
    }
}

static void a_hundred_thousand_workers_are_no_trouble(void **state)
{
    (void)state;
    lac_topology *const t = open_topology("ring", 100000);
    const lac_edge *edges;
    assert_int_equal(lac_topology_edge_count(t), 100000);
    assert_int_equal(lac_topology_edges(t, 99999, 3, &edges), 2);
    assert_int_equal(edges[0].peer, 0);
    assert_int_equal(edges[1].peer, 99998);
    lac_topology_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_worker_keeps_its_value),
        cmocka_unit_test(neighbours_are_those_of_the_name),
        cmocka_unit_test(weights_are_those_of_the_degrees),
        cmocka_unit_test(parallel_edges_of_a_torus_add_up),
        cmocka_unit_test(nothing_kept_is_exactly_nothing),
        cmocka_unit_test(rounds_of_one_peer_reach_the_exact_mean),
        cmocka_unit_test(every_topology_is_listed_with_its_weights),
        cmocka_unit_test(lack_of_memory_is_reported),
        cmocka_unit_test(a_hundred_thousand_workers_are_no_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
