// SPDX-License-Identifier: MIT
// CHOCO: what the papers prove about it.
#include "consensus.h"

#include <math.h>

#include "algorithm/framework/handle.h"

enum { WORKERS = RING_WORKERS, VALUES = 200, ROUNDS = 50, XHAT = 0, AWAY = 1 };

static float x[WORKERS * VALUES];
static float copies[WORKERS][VALUES], aways[WORKERS][VALUES];
static double mean[VALUES], after[VALUES];
static double distances[ROUNDS + 1][WORKERS];

static consensus on_a_ring(const char *algorithm, const char *compressor)
{
    consensus c = consensus_on_a_ring(algorithm, compressor, VALUES, ROUNDS, x);
    consensus_mean(&c, mean);
    return c;
}

// What is pulled into x stays below 4, so that a round adds at most four
// roundings of 2^-23 to it; gamma times what has come together enters x in
// every round.
static const double drift =
    0.3 * 4 * 0x1p-23 * ROUNDS * (ROUNDS + 1) / 2 + ROUNDS * 2 * 0x1p-23;

static void the_mean_is_preserved(void **state)
{
    (void)state;
    static const char *const compressors[] = {
        "sign", "top-k:0.01", "random-k:0.3", "dithering:levels=3"};
    for (size_t i = 0; i < 4; i++) {
        consensus c = on_a_ring("choco:gamma=0.3", compressors[i]);
        consensus_run(&c);
        consensus_mean(&c, after);
        for (size_t j = 0; j < VALUES; j++) {
            assert_true(fabs(after[j] - mean[j]) < drift);
        }
    }
}

// What rounding has left in d is pulled into x for ever, so the mean moves in
// proportion to the rounds: in ten thousand of them by 4e-6 here, squared and
// over all values. With the papers' s = sum_j w_ij xhat_j in its place, which
// never shrinks, it is 5e-3.
static void the_mean_is_preserved_for_long(void **state)
{
    (void)state;
    consensus c = on_a_ring("choco:gamma=0.9", "sign");
    c.rounds = 10000;
    consensus_run(&c);
    consensus_mean(&c, after);
    double moved = 0;
    for (size_t j = 0; j < VALUES; j++) {
        moved += pow(after[j] - mean[j], 2);
    }
    assert_true(moved < 1e-4);
}

static void keep_fields(
    const consensus *c, uint32_t rank, uint32_t round, const lac_algorithm *a,
    const float *values)
{
    (void)values;
    const laci_field *const fields = laci_fields_of(&a->fields, 0);
    if (round == c->rounds) {
        memcpy(copies[rank], fields[XHAT].values, sizeof(copies[rank]));
        memcpy(aways[rank], fields[AWAY].values, sizeof(aways[rank]));
    }
}

// The papers' s_i = sum_j w_ij xhat_j, recomputed from all copies.
static void neighbours_copies_are_followed(void **state)
{
    (void)state;
    consensus c = on_a_ring("choco:gamma=0.3", "random-k:0.3");
    c.after = keep_fields;
    consensus_run(&c);
    for (size_t i = 0; i < WORKERS; i++) {
        for (size_t j = 0; j < VALUES; j++) {
            const double expected =
                ((double)copies[i][j] + (double)copies[(i + 1) % WORKERS][j] +
                 (double)copies[(i + 7) % WORKERS][j]) /
                3;
            const double away = expected - (double)copies[i][j];
            assert_true(
                fabs((double)aways[i][j] - away) < ROUNDS * 5 * 0x1p-23);
        }
    }
}

static void keep_distances(
    const consensus *c, uint32_t rank, uint32_t round, const lac_algorithm *a,
    const float *values)
{
    (void)c;
    const float *const copy = laci_fields_of(&a->fields, 0)[XHAT].values;
    double sum = 0;
    for (size_t j = 0; j < VALUES; j++) {
        const double away = (double)values[j] - mean[j];
        const double behind = (double)values[j] - (double)copy[j];
        sum += away * away + behind * behind;
    }
    distances[round][rank] = sum;
}

static double distance(size_t round)
{
    double sum = 0;
    for (size_t k = 0; k < WORKERS; k++) {
        sum += distances[round][k];
    }
    return sum;
}

// Theorem 2 of arXiv:1902.00340, with rho = 1 - lambda_2 of the ring and beta
// its |I - W|: e_t <= (1 - rho^2 delta / 82)^t e_0.
static void the_gamma_of_theory_keeps_its_bound(void **state)
{
    (void)state;
    static const struct {
        const char *compressor;
        double delta;
        double gamma;
    } cases[] = {
        {"top-k:0.1", 0.1, 3.53e-4},
        {"random-k:0.5", 0.5, 1.87e-3},
        {"identity", 1, 4.05e-3},
    };
    const double rho = 2. / 3 * (1 - sqrt(0.5)), beta = 4. / 3;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const double delta = cases[i].delta;
        const double gamma = rho * rho * delta /
                             (16 * rho + rho * rho + 4 * beta * beta +
                              2 * rho * beta * beta - 8 * rho * delta);
        char spec[64];
        assert_true(fabs(gamma / cases[i].gamma - 1) < 0.005);
        (void)snprintf(spec, sizeof(spec), "choco:gamma=%.17g", gamma);
        consensus c = on_a_ring(spec, cases[i].compressor);
        c.after = keep_distances;
        consensus_run(&c);
        for (size_t t = 1; t <= ROUNDS; t++) {
            const double bound = pow(1 - rho * rho * delta / 82, (double)t);
            assert_true(distance(t) <= bound * distance(0));
        }
    }
}

static void coarse_compressors_converge(void **state)
{
    (void)state;
    consensus c = on_a_ring("choco:gamma=0.05", "random-k:0.1");
    const double before = consensus_error(&c, mean);
    c.rounds = 600;
    consensus_run(&c);
    assert_true(consensus_error(&c, mean) < 1e-3 * before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_is_preserved),
        cmocka_unit_test(the_mean_is_preserved_for_long),
        cmocka_unit_test(neighbours_copies_are_followed),
        cmocka_unit_test(the_gamma_of_theory_keeps_its_bound),
        cmocka_unit_test(coarse_compressors_converge),
    };
    return cmocka_run_group_tests_name("choco", tests, NULL, NULL);
}
