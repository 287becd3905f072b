// SPDX-License-Identifier: MIT
// Extrapolation compression: the law by which the error of its estimates
// falls.
#include "consensus.h"

#include <math.h>

#include "algorithm/framework/handle.h"

enum {
    WORKERS = RING_WORKERS,
    VALUES = 400,
    LAW_VALUES = 20000,
    LEVELS = 7,
    LAST = 20
};

static float x[WORKERS * VALUES];
static float estimates[WORKERS][3][VALUES]; // two neighbours, then oneself
static float still[LAW_VALUES];

// The energy of the noise of dithering: a value between two levels a step
// apart, at the part f of the way, is rounded with variance f (1 - f) step^2.
static double noise_energy(void)
{
    double largest = 0, energy = 0;
    for (size_t i = 0; i < LAW_VALUES; i++) {
        largest = fmax(largest, fabs((double)still[i]));
    }
    const double step = largest / LEVELS;
    for (size_t i = 0; i < LAW_VALUES; i++) {
        const double level = fabs((double)still[i]) / step;
        const double f = level - floor(level);
        energy += f * (1 - f) * step * step;
    }
    return energy;
}

// A worker alone whose local step undoes what mixing with its own estimate
// does: x stands still, so what is compressed is x in every round and the
// noise is independent and of constant energy.
static lac_status mix_still(test_worker *w, lac_algorithm *a)
{
    double *const errors = w->context;
    static float update[LAW_VALUES];
    const float *const updates[] = {update};
    static float now[LAW_VALUES];
    const lac_slice slice = {0, LAC_F32, now, now};
    memcpy(now, still, sizeof(now));
    LAC_TRY(lac_algorithm_start(a, &slice, 1));
    for (uint64_t round = 0; round < LAST; round++) {
        const float *const own = laci_fields_of(&a->fields, 0)[0].values;
        for (size_t i = 0; i < LAW_VALUES; i++) {
            update[i] = still[i] - own[i];
        }
        LAC_TRY(lac_algorithm_mix(a, round, &slice, updates, 1));
        errors[round + 1] = 0;
        for (size_t i = 0; i < LAW_VALUES; i++) {
            const double error = (double)own[i] - (double)now[i];
            errors[round + 1] += error * error;
        }
    }
    return LAC_OK;
}

static lac_status stand_still(test_worker *w)
{
    const lac_tensor tensor = {.name = "x", .shape = {LAW_VALUES, 1}};
    return with_algorithm(
        w, options_for("ecd", "dithering:levels=7,norm=inf"), "complete",
        &tensor, 1, mix_still);
}

// E|y_t - x_t|^2 = 2 (2t - 1) / (3 t (t - 1)) v, and 4 v at t = 1. The sum is
// of 20,000 independent squares whose kurtosis is below 4: 5 standard
// deviations are 5 sqrt(3 / 20000) = 6 %.
static void estimates_follow_the_law(void **state)
{
    (void)state;
    const lac_key key = {1, 2, LAC_SCOPE_SHARED};
    double errors[LAST + 1];
    test_worker worker;
    for (uint32_t i = 0; i < LAW_VALUES; i++) {
        still[i] = lac_key_normal(&key, i);
    }
    run_workers(1, stand_still, errors, &worker);
    assert_all_ok(&worker, 1);
    const double v = noise_energy();
    assert_true(fabs(errors[1] / (4 * v) - 1) < 0.06);
    for (int t = 2; t <= LAST; t++) {
        const double law = 2 * (2. * t - 1) / (3. * t * (t - 1)) * v;
        assert_true(fabs(errors[t] / law - 1) < 0.06);
    }
}

static void keep_estimates(
    const consensus *c, uint32_t rank, uint32_t round, const lac_algorithm *a,
    const float *values)
{
    (void)values;
    const laci_field *const fields = laci_fields_of(&a->fields, 0);
    for (size_t k = 0; round == c->rounds && k < 3; k++) {
        memcpy(
            estimates[rank][k], fields[k].values, sizeof(estimates[rank][k]));
    }
}

static void all_holders_estimate_alike(void **state)
{
    (void)state;
    consensus c = consensus_on_a_ring("ecd", "natural", VALUES, 15, x);
    c.after = keep_estimates;
    consensus_run(&c);
    for (size_t rank = 0; rank < WORKERS; rank++) {
        const size_t before = (rank + 7) % WORKERS;
        const size_t next = (rank + 1) % WORKERS;
        const size_t low = before < next ? before : next;
        const size_t high = before < next ? next : before;
        assert_memory_equal(
            estimates[rank][0], estimates[low][2], sizeof(estimates[0][0]));
        assert_memory_equal(
            estimates[rank][1], estimates[high][2], sizeof(estimates[0][0]));
    }
}

// Whatever their mean does, workers come to agree with fine quantisation.
static void fine_quantisation_agrees(void **state)
{
    (void)state;
    static double mean[VALUES];
    consensus c =
        consensus_on_a_ring("ecd", "dithering:levels=65535", VALUES, 100, x);
    consensus_mean(&c, mean);
    const double before = consensus_error(&c, mean);
    consensus_run(&c);
    consensus_mean(&c, mean);
    assert_true(consensus_error(&c, mean) < 1e-5 * before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(estimates_follow_the_law),
        cmocka_unit_test(all_holders_estimate_alike),
        cmocka_unit_test(fine_quantisation_agrees),
    };
    return cmocka_run_group_tests_name("ecd", tests, NULL, NULL);
}
