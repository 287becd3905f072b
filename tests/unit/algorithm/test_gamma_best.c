// SPDX-License-Identifier: MIT
// gamma=auto: the value found on a small copy is nearly the best for the real
// problem.
#include "consensus.h"

#include <math.h>

#include "algorithm/gamma_trial.h"

enum { VALUES = 2000, WORKERS_MAX = 25 };

static float x[WORKERS_MAX * VALUES];

static double auto_gamma(
    const char *algorithm, const char *compressor, const char *topology,
    uint32_t workers, lac_shape shape)
{
    consensus c = {
        .algorithm = algorithm,
        .compressor = compressor,
        .topology = topology,
        .workers = workers,
        .shape = shape,
        .seed = 1,
        .x = x,
    };
    consensus_fill_normal(&c, 1);
    consensus_run(&c);
    return c.gamma;
}

// Asserts that no gamma of a grid is 1.35 times as fast as the one found. The
// grid has steps of 12 % and goes from half to twice that value. The trials
// have the real size and run to the end, without an estimate.
static void assert_nearly_best(
    const char *compressor, uint32_t workers, double gamma)
{
    const double target = 1e-4;
    laci_gamma_trial *trial;
    lac_topology *t;
    assert_ok(lac_topology_open(&t, "ring", workers, 1));
    assert_ok(laci_gamma_trial_open(
        &trial, laci_gamma_choco, compressor, t, (lac_shape){VALUES, 1}));
    const double rounds =
        laci_gamma_trial_run(trial, gamma, target, 1e5).rounds;
    print_message(
        "%s, ring of %u: gamma %.4g takes %.1f rounds\n", compressor, workers,
        gamma, rounds);
    assert_true(rounds < 1e5);
    for (int i = -6; i <= 7; i++) {
        const double other = gamma * pow(1.12, i);
        const double limit = rounds / 1.35;
        if (laci_gamma_trial_run(trial, other, target, limit).rounds < limit) {
            print_error(
                "%s, ring of %u: gamma %g takes %.0f rounds, but %g is more "
                "than 1.35 times as fast\n",
                compressor, workers, gamma, rounds, other);
            fail();
        }
    }
    laci_gamma_trial_close(trial);
    lac_topology_close(t);
}

static void assert_found_on_ring(const char *compressor, uint32_t workers)
{
    const double gamma = auto_gamma(
        "choco", compressor, "ring", workers, (lac_shape){VALUES, 1});
    assert_nearly_best(compressor, workers, gamma);
}

static void sign_is_nearly_best(void **state)
{
    (void)state;
    assert_found_on_ring("sign", 8);
    assert_found_on_ring("sign", 25);
}

static void dithering_is_nearly_best(void **state)
{
    (void)state;
    assert_found_on_ring("dithering:levels=127", 8);
    assert_found_on_ring("dithering:levels=127", 25);
}

static void top_k_is_nearly_best(void **state)
{
    (void)state;
    assert_found_on_ring("top-k:0.01", 8);
    assert_found_on_ring("top-k:0.01", 25);
}

static void random_k_is_nearly_best(void **state)
{
    (void)state;
    assert_found_on_ring("random-k:0.01", 8);
    assert_found_on_ring("random-k:0.01", 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sign_is_nearly_best),
        cmocka_unit_test(dithering_is_nearly_best),
        cmocka_unit_test(top_k_is_nearly_best),
        cmocka_unit_test(random_k_is_nearly_best),
    };
    return cmocka_run_group_tests_name("gamma", tests, NULL, NULL);
}
