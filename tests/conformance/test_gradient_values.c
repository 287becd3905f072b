// SPDX-License-Identifier: MIT
// The values that every gradient algorithm computes: the exact mean without
// compression, results that point along the gradients, an error memory that
// holds exactly what was not delivered, and settings that have an effect.
#include "effects.h"
#include "gradient.h"
#include "state_reader.h"

// Each worker's gradient of a round, as reduce_round gives it.
static void mean_gradient(const gradient_run *run, uint64_t round, double *out)
{
    memset(out, 0, VALUES * sizeof(*out));
    for (uint32_t rank = 0; rank < run->world; rank++) {
        float g[VALUES];
        fill_gradient(rank, round, g);
        for (size_t i = 0; i < VALUES && (round == 0 || !run->impulse); i++) {
            out[i] += (double)g[i] / run->world;
        }
    }
}

// A mean of 5 normal numbers, each below 6, has at most ten roundings of at
// most 2^-21. Error memories of the identity stay zero.
static void the_identity_is_the_mean(gradient_run *run)
{
    const laci_algorithm_ops *const claims = claims_of(run->subject->plugin);
    if (claims->inexact || !run->subject->plain ||
        !(run->compressor == NULL ? claims->baseline
                                  : is_uncompressed(run->compressor))) {
        return;
    }
    run_gradient_ok(run, reduce_rounds);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        double mean[VALUES];
        mean_gradient(run, round, mean);
        for (size_t i = 0; i < VALUES; i++) {
            const double got = (double)run->results[0][round][i];
            assert_true(fabs(got - mean[i]) < 10 * 0x1p-21);
        }
    }
}

// Gradients in round 0 only, the same on all workers. The results so far point
// along them after every round: a momentum goes on in their direction, and an
// error memory delivers the rest. A contraction leaves an error shorter than
// the gradient, so that what was delivered is never opposed to it.
static void fill_same_gradient(uint32_t rank, uint64_t round, float *g)
{
    (void)rank;
    memset(g, 0, VALUES * sizeof(*g));
    if (round == 0) {
        fill_gradient(0, 0, g);
    }
}

static lac_status reduce_impulse(gradient_worker *w)
{
    LAC_TRY(worker_open(w));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        fill_same_gradient(w->rank, round, w->gradient);
        LAC_TRY(reduce_given(w, round));
    }
    return LAC_OK;
}

static void results_point_along_the_gradient(gradient_run *run)
{
    float g[VALUES];
    double sum[VALUES] = {0};
    if (run->subject->extreme) {
        return; // signum without momentum votes on the sign of zeros
    }
    fill_same_gradient(0, 0, g);
    run_gradient_ok(run, reduce_impulse);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        double along = 0;
        for (size_t i = 0; i < VALUES; i++) {
            sum[i] += (double)run->results[0][round][i];
            along += sum[i] * (double)g[i];
        }
        assert_true(along > 0);
    }
}

// The mean over workers of the error memory of one value; false where there is
// none.
static bool mean_error(
    const gradient_run *run, size_t tensor, size_t i, double *out)
{
    *out = 0;
    for (uint32_t rank = 0; rank < run->world; rank++) {
        saved_field field;
        if (!saved_state_find(
                run->saved.states[rank], tensors[tensor].name, "error",
                &field)) {
            return false;
        }
        *out += (double)saved_value(&field, i) / run->world;
    }
    return true;
}

// A field that is saved as "error" holds what was not delivered: with the
// results so far it is the sum of the mean gradients. Sums of 8 rounds stay
// below 64, and each round has at most 20 roundings of 2^-24 of that.
static void errors_are_what_was_not_delivered(gradient_run *run)
{
    run_gradient_ok(run, reduce_rounds);
    for (size_t i = 0; i < VALUES; i++) {
        double sum = 0, error = 0;
        size_t tensor = 0;
        while (i >= offsets[tensor + 1]) {
            tensor++;
        }
        for (uint64_t round = 0; round < ROUNDS; round++) {
            double mean[VALUES];
            mean_gradient(run, round, mean);
            sum += mean[i] - (double)run->results[0][round][i];
        }
        if (mean_error(run, tensor, i - offsets[tensor], &error)) {
            assert_true(fabs(sum - error) < ROUNDS * 20 * 0x1p-24 * 64);
        }
    }
}

static double error_square(const gradient_run *run)
{
    double sum = 0;
    for (size_t t = 0; t < TENSORS; t++) {
        for (size_t i = 0; i < offsets[t + 1] - offsets[t]; i++) {
            double error = 0;
            (void)mean_error(run, t, i, &error);
            sum += error * error;
        }
    }
    return sum;
}

// Without new gradients the error memory empties. The weakest contraction here,
// low-rank on a 7 x 5 matrix, delivers at least a fifth of the squares a round;
// a random compressor that always drew the same half would leave half.
static void an_error_memory_empties(gradient_run *run)
{
    double mean[VALUES], all = 0;
    run->impulse = true;
    mean_gradient(run, 0, mean);
    for (size_t i = 0; i < VALUES; i++) {
        all += mean[i] * mean[i];
    }
    run_gradient_ok(run, reduce_rounds);
    assert_true(error_square(run) < 0.25 * all);
}

// Runs a case with one setting at its base value and returns whether any result
// differs.
static bool setting_matters(const gradient_run *run, size_t param)
{
    const algorithm_case c = without_setting(run->subject, param);
    gradient_run other = *run;
    other.algorithm = c.spec;
    other.saved = (saves){0};
    run_gradient_ok(&other, reduce_rounds);
    free_saves(&other.saved);
    return memcmp(run->results[0], other.results[0], sizeof(*run->results)) !=
           0;
}

static void try_settings(gradient_run *run)
{
    if (begin_effects(run->subject)) {
        run->world = 4; // even, so that votes can tie
        run_gradient_ok(run, reduce_rounds);
        for (size_t i = 0; i < param_count(run->subject->plugin); i++) {
            if (may_show_effect(run->subject, i) && setting_matters(run, i)) {
                effects.matters[i] = true;
            }
        }
    }
}

static void every_setting_has_an_effect(void **state)
{
    gradient_duty *const duty = try_settings;
    (void)state;
    if (WORKERS_ARE_LOCAL) { // which visit more cases
        visit_family(LAC_FAMILY_GRADIENT, run_duty, &duty);
    }
    assert_effects();
}

DUTY(the_identity_is_the_mean)
DUTY(results_point_along_the_gradient)
DUTY(errors_are_what_was_not_delivered)
DUTY(an_error_memory_empties)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_the_identity_is_the_mean),
        cmocka_unit_test(all_results_point_along_the_gradient),
        cmocka_unit_test(all_errors_are_what_was_not_delivered),
        cmocka_unit_test(all_an_error_memory_empties),
        cmocka_unit_test(every_setting_has_an_effect),
    };
    return cmocka_run_group_tests_name(
        "gradient values", tests, setup_workers, teardown_workers);
}
