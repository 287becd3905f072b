// SPDX-License-Identifier: MIT
// CHOCO with local steps on f_i = |x - b_i|^2 / 2: where it stops has a closed
// form, which no compressor is part of, and a trigger moves it by no more than
// what it holds back.
//
// H local steps of rate eta take x to (1 - c) x + c b_i, c = 1 - (1 - eta)^H.
// At rest x - xhat is 0 for every compressor whose error shrinks with its
// input, so that a round multiplies disagreement in the direction of the
// eigenvalue l of W by 1 - gamma (1 - l). It therefore rests at
//
//     c / (c + g) of the disagreement of the b_i,
//     g = gamma (1 - l) / (1 - gamma (1 - l))
//
// This grows with H, and less than in proportion to it. The mean of the workers
// is not affected: it is that of the b_i.
#include "quadratics.h"

enum { WORKERS = 8, VALUES = 100, CASES = 3 };

static const uint32_t local_steps[CASES] = {1, 4, 16};
static const double eta = 0.01, gossip = 0.2;

static quadratics q;

// The slowest direction shrinks by c a round, eta in the smallest case: 2000
// rounds leave 2e-9 of it.
static void run_choco(
    const char *algorithm, const char *compressor, uint32_t steps)
{
    q = (quadratics){
        .algorithm = algorithm,
        .compressor = compressor,
        .topology = "ring",
        .workers = WORKERS,
        .values = VALUES,
        .rate = eta,
        .steps = steps,
        .rounds = 2000 / steps + 100,
        .seed = 6,
    };
    const quadratics_kind kind = {.least = 1, .equal = true, .spread = 1};
    quadratics_fill(&q, &kind);
    quadratics_run(&q);
}

static double pull_of(uint32_t steps)
{
    return 1 - pow(1 - eta, steps);
}

// The squared amplitude of value j of the minima in direction k of the ring.
static double amplitude(uint32_t k, uint32_t j)
{
    double real = 0, imaginary = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        const double angle = 2 * acos(-1) * k * i / WORKERS;
        real += q.b[i][j] * cos(angle) / WORKERS;
        imaginary += q.b[i][j] * sin(angle) / WORKERS;
    }
    return real * real + imaginary * imaginary;
}

// The root of the mean squared distance of the workers from their mean at rest.
static double expected_floor(uint32_t steps)
{
    const double c = pull_of(steps);
    double sum = 0;
    for (uint32_t k = 1; k < WORKERS; k++) {
        const double l = (1 + 2 * cos(2 * acos(-1) * k / WORKERS)) / 3;
        const double shrinking = gossip * (1 - l);
        const double g = shrinking / (1 - shrinking);
        for (uint32_t j = 0; j < VALUES; j++) {
            sum += amplitude(k, j) * pow(c / (c + g), 2);
        }
    }
    return sqrt(sum);
}

// Values are below 4. A local step rounds twice and a round three times, by
// 2^-23 at most, and c of an error is lost in a round.
static double rounding_of(uint32_t steps)
{
    return (2 * steps + 3) * 0x1p-23 / pull_of(steps);
}

static void the_floor_grows_with_the_local_steps(void **state)
{
    (void)state;
    static const char *const compressors[] = {"top-k:0.1", "sign", "identity"};
    for (size_t k = 0; k < 3; k++) {
        double before = 0;
        for (size_t h = 0; h < CASES; h++) {
            run_choco("choco:gamma=0.2", compressors[k], local_steps[h]);
            const double floor = quadratics_distance(&q);
            const double expected = expected_floor(local_steps[h]);
            print_message(
                "%s, H=%u: %.6f of %.6f\n", compressors[k], local_steps[h],
                floor, expected);
            assert_true(
                fabs(floor - expected) <
                sqrt(VALUES) * rounding_of(local_steps[h]));
            assert_true(floor > before);
            assert_true(h == 0 || floor < 4 * before);
            before = floor;
        }
    }
}

static void the_mean_is_that_of_the_minima(void **state)
{
    (void)state;
    for (size_t h = 0; h < CASES; h++) {
        run_choco("choco:gamma=0.2", "top-k:0.1", local_steps[h]);
        for (uint32_t j = 0; j < VALUES; j++) {
            double mean = 0;
            for (uint32_t k = 0; k < WORKERS; k++) {
                mean += (double)q.x[k][j] / WORKERS;
            }
            assert_true(
                fabs(mean - quadratics_minimum(&q, j)) <
                rounding_of(local_steps[h]));
        }
    }
}

// A worker that does not send has |x - xhat|^2 <= trigger eta^2, which enters a
// round as an error of x of that length. In each direction gossip makes
// g / (c + g) of it, less than 1: the floor moves by sqrt(trigger) eta at most.
// The messages that remain are fewer than half.
static void a_trigger_moves_the_floor_by_what_it_holds_back(void **state)
{
    (void)state;
    static const struct {
        const char *algorithm;
        double trigger;
    } cases[] = {
        {"choco:gamma=0.2,trigger=100", 100},
        {"choco:gamma=0.2,trigger=1000", 1000},
        {"choco:gamma=0.2,trigger=3000", 3000},
    };
    const uint32_t steps = 4;
    run_choco("choco:gamma=0.2", "top-k:0.1", steps);
    const double floor = quadratics_distance(&q);
    const double all = (double)q.payload;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        run_choco(cases[k].algorithm, "top-k:0.1", steps);
        const double moved = quadratics_distance(&q) - floor;
        print_message(
            "trigger %g: %.5f more than %.5f, %.2f of the bytes\n",
            cases[k].trigger, moved, floor, (double)q.payload / all);
        assert_true(fabs(moved) < sqrt(cases[k].trigger) * eta);
        assert_true((double)q.payload < all / 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_floor_grows_with_the_local_steps),
        cmocka_unit_test(the_mean_is_that_of_the_minima),
        cmocka_unit_test(a_trigger_moves_the_floor_by_what_it_holds_back),
    };
    return cmocka_run_group_tests_name("choco_local", tests, NULL, NULL);
}
