// SPDX-License-Identifier: MIT
// Pictures of networks: symmetric networks have symmetric pictures, and the
// eigenvalues are those of the mixing matrix.
#include <math.h>
#include <stdlib.h>

#include "cli/page/graph.h"
#include "cli/topology/network.h"
#include "lac_test.h"

enum { WORKERS_MAX = 64 };

static lac_topology *open_topology(const char *spec, uint32_t workers)
{
    lac_topology *t = NULL;
    assert_int_equal(lac_topology_open(&t, spec, workers, 1), LAC_OK);
    return t;
}

static double distance(const page_place *a, const page_place *b)
{
    return hypot(a->x - b->x, a->y - b->y);
}

static void a_ring_is_a_circle(void **state)
{
    (void)state;
    page_place places[WORKERS_MAX];
    lac_topology *const t = open_topology("ring", 12);
    const page_place centre = {0, 0};
    assert_int_equal(page_graph_layout(t, places), LAC_OK);
    for (size_t i = 0; i < 12; i++) {
        assert_float_equal(distance(&places[i], &centre), 1, 1e-6);
        assert_float_equal(
            distance(&places[i], &places[(i + 1) % 12]),
            distance(&places[0], &places[1]), 1e-6);
    }
    lac_topology_close(t);
}

static void the_hub_of_a_star_is_in_the_middle(void **state)
{
    (void)state;
    page_place places[WORKERS_MAX];
    lac_topology *const t = open_topology("star", 9);
    assert_int_equal(page_graph_layout(t, places), LAC_OK);
    for (size_t i = 1; i < 9; i++) {
        for (size_t k = 1; k < i; k++) {
            assert_true(
                distance(&places[i], &places[0]) <
                distance(&places[i], &places[k]) * 1.5);
        }
    }
    lac_topology_close(t);
}

static void workers_stay_apart_within_the_square(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        uint32_t workers;
    } networks[] = {{"ring", 1},      {"ring", 2},
                    {"path", 10},     {"torus", 36},
                    {"complete", 20}, {"hypercube", 16},
                    {"social", 32},   {"one-peer-exponential", 16}};
    for (size_t n = 0; n < sizeof(networks) / sizeof(networks[0]); n++) {
        page_place places[WORKERS_MAX];
        lac_topology *const t =
            open_topology(networks[n].spec, networks[n].workers);
        assert_int_equal(page_graph_layout(t, places), LAC_OK);
        for (size_t i = 0; i < networks[n].workers; i++) {
            assert_true(fabs(places[i].x) <= 1 + 1e-9);
            assert_true(fabs(places[i].y) <= 1 + 1e-9);
            for (size_t k = 0; k < i; k++) {
                assert_true(distance(&places[i], &places[k]) > 0.01);
            }
        }
        lac_topology_close(t);
    }
}

// Of the ring: 1/3 + 2/3 cos(2 pi k / n).
static void eigenvalues_of_a_ring(void **state)
{
    (void)state;
    enum { N = 10 };
    double w[N * N], found[N];
    lac_topology *const t = open_topology("ring", N);
    assert_int_equal(cli_network_matrix(t, w), LAC_OK);
    page_eigenvalues(w, N, found);
    for (int k = 0; k < N; k++) {
        const double expected =
            1 / 3.0 + 2 / 3.0 * cos(acos(-1) * (N - k - (N - k) % 2) / N);
        assert_float_equal(found[k], expected, 1e-12);
    }
    lac_topology_close(t);
}

static void eigenvalues_have_the_bounds_of_the_library(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "social", "hypercube", "exponential", "star", "path"};
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        enum { N = 32 };
        double w[N * N], found[N];
        lac_spectrum s;
        lac_topology *const t = open_topology(specs[i], N);
        if (lac_topology_spectrum(t, &s) == LAC_OK) {
            assert_int_equal(cli_network_matrix(t, w), LAC_OK);
            page_eigenvalues(w, N, found);
            assert_float_equal(found[0], s.lambdan, 1e-10);
            assert_float_equal(found[N - 2], s.lambda2, 1e-10);
            assert_float_equal(found[N - 1], 1, 1e-10);
        }
        lac_topology_close(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_is_a_circle),
        cmocka_unit_test(the_hub_of_a_star_is_in_the_middle),
        cmocka_unit_test(workers_stay_apart_within_the_square),
        cmocka_unit_test(eigenvalues_of_a_ring),
        cmocka_unit_test(eigenvalues_have_the_bounds_of_the_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
