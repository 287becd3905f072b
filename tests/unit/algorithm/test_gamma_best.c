// SPDX-License-Identifier: MIT
// gamma=auto: the value found on a small copy is nearly the best for the real
// problem.
#include "consensus.h"

#include <math.h>

#include "algorithm/shared/gamma_trial.h"

enum {
    VALUES = 2000,
    FLOOR_VALUES_MAX = 8000,
    WORKERS_MAX = 25,
};

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
        &trial, laci_gamma_choco, compressor, t, (lac_shape){VALUES, 1}, NULL));
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

// Returns the error after 2,000 rounds relative to the initial error, or
// INFINITY if the run diverged. Writes the gamma in use.
static double error_left(
    const char *algorithm, const char *compressor, uint32_t workers,
    size_t values, double *gamma_out)
{
    consensus c = {
        .algorithm = algorithm,
        .compressor = compressor,
        .topology = "ring",
        .workers = workers,
        .shape = {values, 1},
        .rounds = 2000,
        .seed = 5,
        .x = x,
    };
    static double mean[FLOOR_VALUES_MAX];
    test_worker threads[WORKERS_MAX];
    consensus_fill_normal(&c, 6);
    consensus_mean(&c, mean);
    const double first = consensus_error(&c, mean);
    run_workers(workers, consensus_body, &c, threads);
    for (uint32_t k = 0; k < workers; k++) {
        if (threads[k].status != LAC_OK) {
            return (double)INFINITY;
        }
    }
    *gamma_out = c.gamma;
    return consensus_error(&c, mean) / first;
}

// Asserts that deepsqueeze's error with gamma=auto is at most twice the least
// error of a grid from 1 to 0.001 with five steps a decade.
static void assert_low_floor(
    const char *compressor, uint32_t workers, size_t values)
{
    double gamma = 0, best_gamma = 0, best = (double)INFINITY;
    const double found =
        error_left("deepsqueeze", compressor, workers, values, &gamma);
    for (int i = 0; i <= 15; i++) {
        char spec[64];
        double other = 0;
        (void)snprintf(
            spec, sizeof(spec), "deepsqueeze:gamma=%.6g", pow(10, -i / 5.0));
        const double error =
            error_left(spec, compressor, workers, values, &other);
        if (error < best) {
            best = error;
            best_gamma = other;
        }
    }
    print_message(
        "%s, ring of %u: gamma %.4g leaves %.3g, best of grid %.4g %.3g\n",
        compressor, workers, gamma, found, best_gamma, best);
    assert_true(found <= 2 * best);
}

static void deepsqueeze_finds_a_low_floor(void **state)
{
    (void)state;
    assert_low_floor("natural", 8, 1000);
    assert_low_floor("sign", 8, 1000);
    assert_low_floor("top-k:0.01", 8, 1000);
    assert_low_floor("sign", 25, 1000);
}

// Dithering with 1 level preserves about 1/70 of 8000 values, but 1/18 of the
// copy.
static void deepsqueeze_accounts_for_the_real_size(void **state)
{
    (void)state;
    assert_low_floor("dithering:levels=1", 4, 8000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sign_is_nearly_best),
        cmocka_unit_test(dithering_is_nearly_best),
        cmocka_unit_test(top_k_is_nearly_best),
        cmocka_unit_test(random_k_is_nearly_best),
        cmocka_unit_test(deepsqueeze_finds_a_low_floor),
        cmocka_unit_test(deepsqueeze_accounts_for_the_real_size),
    };
    return cmocka_run_group_tests_name("gamma", tests, NULL, NULL);
}
