// SPDX-License-Identifier: MIT
// Spectra against published numbers and closed forms. dsyev is backward
// stable: eigenvalues of a matrix of norm 1 are within about n * 2^-53 of the
// true ones, so 1e-12 leaves room for all sizes here. Tables have six digits:
// they are met within half a unit of the last.
#include "lac_test.h"

#include <math.h>

#include "topology/topology.h"

#define EXACT 1e-12

static lac_spectrum spectrum(const char *spec, uint32_t workers)
{
    lac_topology *t;
    lac_spectrum s;
    assert_ok(lac_topology_open(&t, spec, workers, 1));
    assert_ok(lac_topology_spectrum(t, &s));
    lac_topology_close(t);
    return s;
}

static void published_spectra_are_met(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        uint32_t workers;
        double lambda2, lambdan, gap, beta;
    } table[] = {
        {"ring", 4, 0.333333, -0.333333, 0.666667, 1.3333},
        {"ring", 8, 0.804738, -0.333333, 0.195262, 1.3333},
        {"ring", 9, 0.844030, -0.293128, 0.155970, 1.2931},
        {"ring", 16, 0.949253, -0.333333, 0.050747, 1.3333},
        {"ring", 25, 0.979055, -0.328076, 0.020945, 1.3281},
        {"ring", 36, 0.989872, -0.333333, 0.010128, 1.3333},
        {"ring", 64, 0.996790, -0.333333, 0.003210, 1.3333},
        {"torus", 16, 0.6, -0.6, 0.4, 1.6},
        {"torus", 36, 0.8, -0.6, 0.2, 1.6},
        {"torus", 64, 0.882843, -0.6, 0.117157, 1.6},
        {"social:weights=max-degree", 32, 0.909666, -0.608380, 0.090334,
         1.6084},
        {"social", 32, 0.917902, -0.434279, 0.082098, 1.4343},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const lac_spectrum s = spectrum(table[i].spec, table[i].workers);
        assert_true(fabs(s.lambda2 - table[i].lambda2) <= 0.5e-6);
        assert_true(fabs(s.lambdan - table[i].lambdan) <= 0.5e-6);
        assert_true(fabs(s.gap - table[i].gap) <= 0.5e-6);
        assert_true(fabs(s.beta - table[i].beta) <= 0.5e-4);
    }
}

static void rings_follow_the_formula(void **state)
{
    (void)state;
    const double turn = 2 * acos(-1.0);
    for (uint32_t n = 3; n <= 200; n += n < 12 ? 1 : 37) {
        const lac_spectrum s = spectrum("ring", n);
        const double second = (1 + 2 * cos(turn / n)) / 3;
        const double last = (1 + 2 * cos(turn * (n / 2) / n)) / 3;
        assert_true(fabs(s.lambda2 - second) < EXACT);
        assert_true(fabs(s.lambdan - last) < EXACT);
        assert_true(fabs(s.beta - (1 - last)) < EXACT);
    }
}

static void closed_forms_are_met(void **state)
{
    (void)state;
    // A cube of m dimensions has (m + 1 - 2k) / (m + 1), k = 0..m.
    lac_spectrum s = spectrum("hypercube", 32);
    assert_true(fabs(s.lambda2 - 4.0 / 6) < EXACT);
    assert_true(fabs(s.lambdan + 4.0 / 6) < EXACT);
    // A complete graph with metropolis weights is the mean.
    s = spectrum("complete", 11);
    assert_true(fabs(s.gap - 1) < EXACT && fabs(s.beta - 1) < EXACT);
    // Without own shares it is (n J - I) / (n - 1), which has -1/(n - 1).
    s = spectrum("complete:max-degree", 11);
    assert_true(fabs(s.lambdan + 0.1) < EXACT);
    assert_true(fabs(s.gap - 0.9) < EXACT);
    // The leaves of a star keep 1 - 1/n; it has the eigenvalue 0 once.
    s = spectrum("star", 7);
    assert_true(fabs(s.lambda2 - 6.0 / 7) < EXACT);
    assert_true(fabs(s.lambdan) < EXACT);
}

static void one_worker_agrees_at_once(void **state)
{
    (void)state;
    const lac_spectrum s = spectrum("ring", 1);
    assert_true(s.gap == 1 && s.beta == 0);
    assert_true(s.lambda2 == 0 && s.lambdan == 0);
}

static void a_period_of_one_peer_is_the_mean(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 128; n *= 2) {
        const lac_spectrum s = spectrum("one-peer-exponential", n);
        assert_true(fabs(s.lambda2) < EXACT && fabs(s.lambdan) < EXACT);
        assert_true(fabs(s.gap - 1) < EXACT && fabs(s.beta - 1) < EXACT);
    }
}

static void too_many_workers_are_refused(void **state)
{
    (void)state;
    lac_topology *t;
    lac_spectrum s = {.gap = 7};
    assert_ok(lac_topology_open(&t, "ring", 16385, 1));
    assert_fails(
        lac_topology_spectrum(t, &s), LAC_ERR_UNSUPPORTED,
        "ring: no spectrum for 16385 workers, expected at most 16384");
    assert_true(s.gap == 7);
    lac_topology_close(t);
}

// The edges of a path by turns: those at even workers, those at odd ones.
static uint32_t turns_period(const void *state, uint32_t workers)
{
    (void)state;
    (void)workers;
    return 2;
}

static lac_status turns_build(
    const void *state, uint64_t round, laci_dice *dice, laci_graph *graph)
{
    (void)state;
    (void)dice;
    lac_status status = LAC_OK;
    for (uint32_t i = (uint32_t)round; i + 1 < graph->workers; i += 2) {
        status = status == LAC_OK ? laci_graph_add(graph, i, i + 1) : status;
    }
    return status;
}

static const laci_topology_ops turns = {
    .plugin.size = sizeof(laci_topology_ops),
    .plugin.name = "turns",
    .plugin.params = laci_weights_params,
    .plugin.state_size = sizeof(laci_weighting),
    .period = turns_period,
    .build = turns_build,
};

static void a_product_without_symmetry_is_refused(void **state)
{
    (void)state;
    lac_topology *t;
    lac_spectrum s;
    assert_ok(laci_topology_open_with(&t, &turns, "", 3, 1));
    assert_int_equal(lac_topology_period(t), 2);
    assert_int_equal(lac_topology_edge_count(t), 2);
    assert_int_equal(lac_topology_max_degree(t), 1);
    assert_fails(
        lac_topology_spectrum(t, &s), LAC_ERR_UNSUPPORTED,
        "turns: the product of its 2 rounds is not symmetric, expected a "
        "symmetric one for a spectrum");
    lac_topology_close(t);
}

static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    lac_topology *t;
    lac_spectrum s;
    assert_ok(lac_topology_open(&t, "one-peer-exponential", 16, 1));
    for (long allowed = 0; allowed < 3; allowed++) {
        test_allocations_left = allowed;
        const lac_status status = lac_topology_spectrum(t, &s);
        test_allocations_left = -1;
        assert_status(status, LAC_ERR_NOMEM);
    }
    assert_ok(lac_topology_spectrum(t, &s));
    lac_topology_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_spectra_are_met),
        cmocka_unit_test(rings_follow_the_formula),
        cmocka_unit_test(closed_forms_are_met),
        cmocka_unit_test(one_worker_agrees_at_once),
        cmocka_unit_test(a_period_of_one_peer_is_the_mean),
        cmocka_unit_test(too_many_workers_are_refused),
        cmocka_unit_test(a_product_without_symmetry_is_refused),
        cmocka_unit_test(lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
