// SPDX-License-Identifier: MIT
// Networks that do not fit, are not connected or have no spectral gap are
// refused with a message.
#include "lac_test.h"

#include "topology/topology.h"

static void assert_refused(
    const char *spec, uint32_t workers, const char *message)
{
    lac_topology *t = (void *)1;
    assert_fails(
        lac_topology_open(&t, spec, workers, 1), LAC_ERR_INVALID, message);
    assert_null(t);
}

#define GAP_0                                                                  \
    ": the gap is 0, because the graph is bipartite and every self weight is " \
    "0, expected weights=metropolis"

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    assert_refused("ring", 0, "ring: 0 workers, expected 1 to 1048576");
    assert_refused(
        "star", 1048577, "star: 1048577 workers, expected 1 to 1048576");
    assert_refused(
        "hypercube", 6, "hypercube: 6 workers, expected a power of two");
    assert_refused(
        "one-peer-exponential", 12,
        "one-peer-exponential: 12 workers, expected a power of two");
    assert_refused(
        "torus:3", 8, "torus: 3 rows, expected a divisor of 8 workers");
    assert_refused(
        "torus:16", 8, "torus: 16 rows, expected a divisor of 8 workers");
    assert_refused("social", 31, "social: 31 workers, expected 32");
    assert_refused("social", 1, "social: 1 workers, expected 32");
    assert_refused(
        "complete", 100000,
        "complete: 100000 workers have more than 67108864 edges");
    assert_refused(
        "ring:weights=none", 8,
        "ring: weights is \"none\", expected one of metropolis|max-degree");
}

static void settings_that_cannot_be_drawn_are_refused(void **state)
{
    (void)state;
    assert_refused(
        "random-regular:3", 9,
        "random-regular: degree is 3 with 9 workers, expected one of them to "
        "be even");
    assert_refused(
        "random-regular", 4,
        "random-regular: degree is 4 with 4 workers, expected less");
    assert_refused(
        "random-regular:1", 4,
        "random-regular: degree is 1 with 4 workers, which are then not "
        "connected, expected at least 2");
    assert_refused(
        "small-world:3", 9,
        "small-world: neighbours is 3, expected an even number");
    assert_refused(
        "small-world", 4,
        "small-world: neighbours is 4 with 4 workers, expected less");
    assert_refused(
        "erdos-renyi:0.01", 64,
        "erdos-renyi: none of 100 random graphs of 64 workers is connected "
        "with a gap above 0, expected settings that give more edges");
    assert_refused(
        "random-regular:1,weights=max-degree", 2,
        "random-regular: none of 100 random graphs of 2 workers is connected "
        "with a gap above 0, expected settings that give more edges");
}

static void graphs_without_a_gap_are_refused(void **state)
{
    (void)state;
    assert_refused("ring:max-degree", 8, "ring" GAP_0);
    assert_refused("ring:max-degree", 2, "ring" GAP_0);
    assert_refused("path:max-degree", 2, "path" GAP_0);
    assert_refused("torus:weights=max-degree", 16, "torus" GAP_0);
    assert_refused("hypercube:max-degree", 8, "hypercube" GAP_0);
    assert_refused(
        "one-peer-exponential:max-degree", 8, "one-peer-exponential" GAP_0);
}

// A path in every round, of more rounds than fit.
static uint32_t many_period(const void *state, uint32_t workers)
{
    (void)state;
    (void)workers;
    return 70000;
}

static lac_status many_build(
    const void *state, uint64_t round, laci_dice *dice, laci_graph *graph)
{
    (void)state;
    (void)round;
    (void)dice;
    for (uint32_t i = 0; i + 1 < graph->workers; i++) {
        LAC_TRY(laci_graph_add(graph, i, i + 1));
    }
    return LAC_OK;
}

static const laci_topology_ops many = {
    .plugin.size = sizeof(laci_topology_ops),
    .plugin.name = "many",
    .plugin.params = laci_weights_params,
    .plugin.state_size = sizeof(laci_weighting),
    .period = many_period,
    .build = many_build,
};

static void periods_with_too_many_edges_are_refused(void **state)
{
    (void)state;
    lac_topology *t = (void *)1;
    assert_refused(
        "random-matching:rounds=65536", 1048576,
        "random-matching: 65536 rounds of 524288 edges each have 34359738368 "
        "edges, expected at most 67108864, which are 128 rounds");
    assert_refused(
        "random-matching:rounds=65536", 4097,
        "random-matching: 65536 rounds of 2048 edges each have 134217728 "
        "edges, expected at most 67108864, which are 32768 rounds");
    assert_fails(
        laci_topology_open_with(&t, &many, "", 1001, 1), LAC_ERR_INVALID,
        "many: 70000 rounds of 1000 edges each have 70000000 edges, expected "
        "at most 67108864, which are 67108 rounds");
    assert_null(t);
    assert_ok(laci_topology_open_with(&t, &many, "", 3, 1));
    lac_topology_close(t);
}

static void unknown_names_are_not_found(void **state)
{
    (void)state;
    lac_topology *t = (void *)1;
    assert_fails(
        lac_topology_open(&t, "rng:3", 8, 1), LAC_ERR_NOTFOUND,
        "no topology is named \"rng\"; `laconic list` shows those there are");
    assert_null(t);
    lac_topology_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(settings_that_cannot_be_drawn_are_refused),
        cmocka_unit_test(graphs_without_a_gap_are_refused),
        cmocka_unit_test(periods_with_too_many_edges_are_refused),
        cmocka_unit_test(unknown_names_are_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
