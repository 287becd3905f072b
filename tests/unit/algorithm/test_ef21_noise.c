// SPDX-License-Identifier: MIT
// EF21 and error feedback on quadratics with different minima, with the noise
// of stochastic gradients and without: which distance they keep, and how it
// depends on the step.
#include "quadratics.h"

enum { WORKERS = 8, VALUES = 100 };

static quadratics q;

// The distance from the minimum, relative to that of the start, of top-1 %.
// Curvatures are from 0.1 to 1 and minima normal, all different; 60 / eta
// rounds leave at most e^-6 of the start. It is averaged over the last quarter
// of the rounds.
static void add_distance(
    quadratics *run, uint32_t rank, uint32_t round, const lac_algorithm *a)
{
    (void)a;
    double *const sum = run->user;
    const bool late = round >= run->rounds / 4 * 3;
    for (uint32_t j = 0; rank == 0 && late && j < VALUES; j++) {
        *sum += pow((double)run->x[0][j] - quadratics_minimum(run, j), 2);
    }
}

static double distance_of(const char *algorithm, double rate, double noise)
{
    double sum = 0, start = 0;
    q = (quadratics){
        .algorithm = algorithm,
        .compressor = "top-k:0.01",
        .workers = WORKERS,
        .values = VALUES,
        .rate = rate,
        .steps = 1,
        .rounds = (uint32_t)(60 / rate),
        .noise = noise,
        .seed = 6,
        .after = add_distance,
        .user = &sum,
    };
    const quadratics_kind kind = {.least = 0.1, .spread = 1};
    quadratics_fill(&q, &kind);
    for (uint32_t j = 0; j < VALUES; j++) {
        start += pow(quadratics_minimum(&q, j), 2);
    }
    quadratics_run(&q);
    const double late = q.rounds - q.rounds / 4 * 3;
    const double found = sqrt(sum / late / start);
    print_message(
        "%s, rate %g, noise %g: %.3f\n", algorithm, rate, noise, found);
    return found;
}

// Of white noise, SGD keeps a distance in proportion to the root of the rate:
// sqrt(5) between the two rates here.
//
// Error feedback delivers every gradient, only later. What waits is about 1/k
// rounds of gradients, and so is the distance: in proportion to the rate, with
// noise or without.
//
// EF21 sends 1 of 100 values of its difference to the newest gradient, the
// largest, which is where the noise is. It replaces that value about 100 rounds
// later, and until then all steps contain this noise: they add up to 100 rate a
// of it, and no more than the noise over the curvature a, whatever the rate.
//
// The momentum averages 10 gradients before that.
static void noise_turns_the_order_around(void **state)
{
    (void)state;
    const double large = 0.1, small = 0.02;
    double feedback[2], ef21[2], averaged[2];
    for (int i = 0; i < 2; i++) {
        const double rate = i == 0 ? large : small;
        feedback[i] = distance_of("error-feedback", rate, 1);
        ef21[i] = distance_of("ef21", rate, 1);
        averaged[i] = distance_of("ef21:momentum=0.9", rate, 1);
        assert_true(ef21[i] > feedback[i]);
        assert_true(averaged[i] < ef21[i]);
    }
    assert_true(feedback[0] / feedback[1] > sqrt(5));
    assert_true(ef21[0] / ef21[1] < sqrt(5));
    assert_true(averaged[0] < feedback[0]);
    assert_true(ef21[1] > 0.5); // hardly better than the start
}

// Without noise error feedback keeps nearly the same distance, and EF21 none:
// e^-6 of the start by the slowest value.
static void without_noise_only_error_feedback_stops(void **state)
{
    (void)state;
    const double large = distance_of("error-feedback", 0.1, 0);
    const double small = distance_of("error-feedback", 0.02, 0);
    assert_true(large / small > sqrt(5) && small > 0.05);
    assert_true(distance_of("ef21", 0.1, 0) < exp(-6.0 * 3 / 4));
    assert_true(distance_of("ef21", 0.02, 0) < exp(-6.0 * 3 / 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_turns_the_order_around),
        cmocka_unit_test(without_noise_only_error_feedback_stops),
    };
    return cmocka_run_group_tests_name("ef21_noise", tests, NULL, NULL);
}
