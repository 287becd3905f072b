// SPDX-License-Identifier: MIT
// The outer optimiser over local steps on quadratics f_i = a_i (x - b_i)^2 / 2,
// one for each value, worker and its own curvature a_i. A round of H steps of
// gradient descent with rate eta moves x - b_i by the factor (1 - eta a_i)^H =
// 1 - c_i, so that everything has a closed form.
#include "consensus.h"

#include <math.h>

enum { WORKERS_MAX = 8, VALUES = 24 };

// The local problem of a run, for `after` of consensus.
typedef struct problem {
    double eta;
    uint32_t steps;
    bool equal;    // all workers have the curvature of worker 0
    uint32_t last; // rounds after which no local steps follow
} problem;

static float x[WORKERS_MAX * VALUES];

static double curvature(const problem *p, uint32_t rank, size_t i)
{
    const uint32_t who = p->equal ? 0 : rank;
    return 0.1 + 0.9 * (double)((i * 7 + who * 5) % VALUES) / (VALUES - 1.0);
}

static double minimum(uint32_t rank, size_t i)
{
    return cos(1.0 + (double)rank + 3.0 * (double)i);
}

static double shrinking(const problem *p, uint32_t rank, size_t i)
{
    return 1 - pow(1 - p->eta * curvature(p, rank, i), p->steps);
}

// The local steps, in doubles: x is rounded once a round.
static void descend(
    const consensus *c, uint32_t rank, uint32_t round, const lac_algorithm *a,
    const float *now)
{
    (void)a, (void)now;
    const problem *const p = c->user;
    float *const own = c->x + rank * consensus_values(c);
    for (size_t i = 0; i < VALUES && round < p->last; i++) {
        const double b = minimum(rank, i);
        const double left = (double)own[i] - b;
        own[i] = (float)(b + left * (1 - shrinking(p, rank, i)));
    }
}

static void run_problem(
    problem *p, const char *algorithm, uint32_t workers, uint32_t rounds)
{
    consensus c = {
        .algorithm = algorithm,
        .topology = "complete",
        .workers = workers,
        .shape = {VALUES, 1},
        .rounds = rounds,
        .x = x,
        .after = descend,
        .user = p,
    };
    p->last = rounds;
    for (size_t i = 0; i < (size_t)workers * VALUES; i++) {
        x[i] = (float)sin((double)(i % VALUES)); // equal on all workers
    }
    consensus_run(&c);
}

static double mean_minimum(const problem *p, uint32_t workers, size_t i)
{
    double sum = 0, weights = 0;
    for (uint32_t rank = 0; rank < workers; rank++) {
        const double c = shrinking(p, rank, i);
        sum += c * minimum(rank, i);
        weights += c;
    }
    return sum / weights;
}

// The fixed point solves sum_i c_i (b_i - x) = 0, whatever the outer step.
//
// An error e of x gives a D of c e, with c at least c_min. D is off by the
// rounding of the local models, 2^-24 |x| with values below 1. The anchor stops
// moving where lr D / (1 - momentum) is below half a unit in its last place,
// 2^-24 |x|: the settings have (1 - momentum) / lr at most 2. Both together are
// at most 3, and at most 4 with the roundings of smaller terms.
static void the_fixed_point_does_not_depend_on_the_outer_step(void **state)
{
    (void)state;
    static const char *const settings[] = {
        "outer:lr=1,momentum=0",     "outer",
        "outer:nesterov=no",         "outer:lr=0.7,momentum=0.5,nesterov=no",
        "outer:lr=0.5,momentum=0",   "outer:lr=0.3,momentum=0.95",
        "outer:lr=1.3,momentum=0.8",
    };
    static const uint32_t steps[] = {1, 2, 8, 32};
    for (size_t k = 0; k < sizeof(settings) / sizeof(settings[0]); k++) {
        for (size_t h = 0; h < sizeof(steps) / sizeof(steps[0]); h++) {
            problem p = {.eta = 0.1, .steps = steps[h]};
            run_problem(&p, settings[k], WORKERS_MAX, 6000 / steps[h] + 300);
            for (size_t i = 0; i < (size_t)WORKERS_MAX * VALUES; i++) {
                double least = 1;
                for (uint32_t rank = 0; rank < WORKERS_MAX; rank++) {
                    least = fmin(least, shrinking(&p, rank, i % VALUES));
                }
                const double expected =
                    mean_minimum(&p, WORKERS_MAX, i % VALUES);
                assert_true(
                    fabs((double)x[i] - expected) < 4 * 0x1p-24 * 1.0 / least);
            }
        }
    }
}

// With equal curvatures there is no bias at any H: the fixed point is the mean
// of the minima. Otherwise it moves away from the minimum of the sum.
static void only_different_curvatures_bias_local_steps(void **state)
{
    (void)state;
    double bias[2] = {0, 0};
    const uint32_t steps[2] = {2, 32};
    for (int h = 0; h < 2; h++) {
        problem same = {.eta = 0.1, .steps = steps[h], .equal = true};
        const problem other = {.eta = 0.1, .steps = steps[h]};
        const problem exact = {.eta = 1e-6, .steps = 1};
        for (size_t i = 0; i < VALUES; i++) {
            double mean = 0;
            for (uint32_t rank = 0; rank < WORKERS_MAX; rank++) {
                mean += minimum(rank, i) / WORKERS_MAX;
            }
            assert_true(
                fabs(mean_minimum(&same, WORKERS_MAX, i) - mean) < 1e-12);
            bias[h] += fabs(
                mean_minimum(&other, WORKERS_MAX, i) -
                mean_minimum(&exact, WORKERS_MAX, i));
        }
        run_problem(&same, "outer", WORKERS_MAX, 2000);
        for (size_t i = 0; i < VALUES; i++) {
            assert_true(
                fabs((double)x[i] - mean_minimum(&same, WORKERS_MAX, i)) <
                4 * 0x1p-24 / shrinking(&same, 0, i));
        }
    }
    assert_true(bias[0] > 0 && bias[1] > 5 * bias[0]);
}

// The root of the squared distance of worker 0 from the minimum of the sum.
static double bias_after(uint32_t steps)
{
    problem p = {.eta = 0.1, .steps = steps};
    double sum = 0;
    run_problem(&p, "outer:lr=1,momentum=0", WORKERS_MAX, 3000 / steps + 200);
    for (size_t i = 0; i < VALUES; i++) {
        double pull = 0, weights = 0;
        for (uint32_t rank = 0; rank < WORKERS_MAX; rank++) {
            pull += curvature(&p, rank, i) * minimum(rank, i);
            weights += curvature(&p, rank, i);
        }
        sum += pow((double)x[i] - pull / weights, 2);
    }
    return sqrt(sum);
}

// c = H eta a (1 - (H - 1) eta a / 2 + ...): without the terms that follow, the
// weights c are those of the minimum for H = 1, and the bias grows as H - 1, by
// 7 from H = 2 to 8. The next term is (H - 2) eta a / 3 of that, at most 0.2,
// with the other sign, and the sum of the weights, by which the bias is
// divided, is at most (H - 1) eta a / 2 = 0.35 less. It saturates where c is
// near 1 on all workers, so that 32 steps have less than 31 / 7 times the bias
// of 8. For H = 1 only rounding is left, as in the test of fixed points.
static void the_bias_grows_with_the_local_steps(void **state)
{
    (void)state;
    const double one = bias_after(1), two = bias_after(2);
    const double eight = bias_after(8), many = bias_after(32);
    print_message("%.2g, %.4f, %.4f, %.4f\n", one, two, eight, many);
    assert_true(one < sqrt(VALUES) * 4 * 0x1p-24 / 0.01);
    assert_true(eight / two > 7 * (1 - 0.2));
    assert_true(eight / two < 7 / (1 - 0.35));
    assert_true(many > eight && many < 31.0 / 7 * eight);
}

// One local step of rate eta, and the outer step: gradient descent of rate
// lr eta with the momentum of torch.optim.SGD, in doubles. A round rounds x, D
// and the anchor by 2^-24 of values below 2 each; the momentum passes an error
// on 1/(1 - momentum) times, and a step is lr (1 + momentum) of it.
static void one_local_step_is_an_averaged_gradient(void **state)
{
    (void)state;
    enum { ROUNDS = 50 };
    static const char *const settings[] = {"outer", "outer:nesterov=no"};
    for (int k = 0; k < 2; k++) {
        problem p = {.eta = 0.3, .steps = 1};
        const double lr = 0.7, mu = 0.9;
        run_problem(&p, settings[k], 4, ROUNDS);
        for (size_t i = 0; i < VALUES; i++) {
            double y = sin((double)i), v = 0;
            for (int round = 0; round < ROUNDS; round++) {
                double g = 0;
                for (uint32_t rank = 0; rank < 4; rank++) {
                    g += curvature(&p, rank, i) * (y - minimum(rank, i)) / 4;
                }
                v = mu * v + g;
                y -= lr * p.eta * (k == 0 ? g + mu * v : v);
            }
            for (uint32_t rank = 0; rank < 4; rank++) {
                const double got = (double)x[rank * VALUES + i];
                assert_true(
                    fabs(got - y) < 3 * 2 * 0x1p-24 / (1 - mu) * ROUNDS);
            }
        }
    }
}

// lr=1 without momentum: phi - (phi - mean), some roundings of values below 4
// away from the mean, and the same on all workers, which start from different
// values.
static void a_step_of_one_without_momentum_averages(void **state)
{
    (void)state;
    consensus c = {
        .algorithm = "outer:lr=1,momentum=0",
        .topology = "ring",
        .workers = 5,
        .shape = {VALUES, 1},
        .rounds = 1,
        .x = x,
    };
    float before[5 * VALUES];
    consensus_fill_normal(&c, 3);
    memcpy(before, x, sizeof(before));
    consensus_run(&c);
    for (size_t i = 0; i < VALUES; i++) {
        double mean = 0;
        for (uint32_t rank = 0; rank < 5; rank++) {
            mean += (double)before[rank * VALUES + i] / 5;
            assert_true(x[rank * VALUES + i] == x[i]);
        }
        assert_true(fabs((double)x[i] - mean) < 10 * 0x1p-22);
    }
}

// Without a round: the payload that a worker sends at the start, when all have
// the same values but for the last one of worker `odd`, which is one bit away.
static uint64_t payload_of_a_start(uint32_t workers, uint32_t odd)
{
    consensus c = {
        .algorithm = "outer",
        .topology = "ring",
        .workers = workers,
        .shape = {VALUES, 1},
        .x = x,
    };
    for (size_t k = 0; k < workers * (size_t)VALUES; k++) {
        x[k] = (float)sin((double)(k % VALUES));
    }
    if (odd < workers) {
        float *const last = &x[odd * VALUES + VALUES - 1];
        *last = nextafterf(*last, 2);
    }
    consensus_run(&c);
    return c.traffic[0].payload_bytes;
}

static void only_workers_that_differ_average_at_the_start(void **state)
{
    (void)state;
    for (uint32_t workers = 2; workers <= 5; workers++) {
        assert_int_equal(payload_of_a_start(workers, workers), 0);
        for (uint32_t odd = 0; odd < workers; odd++) {
            assert_int_equal(
                payload_of_a_start(workers, odd), VALUES * sizeof(float));
        }
    }
}

// The distance from the fixed point after `rounds` rounds in which all workers
// have the curvature 1, with c = eta.
static double distance_after(const char *spec, double c, uint32_t rounds)
{
    consensus run = {
        .algorithm = spec,
        .topology = "complete",
        .workers = 2,
        .shape = {VALUES, 1},
        .rounds = rounds,
        .x = x,
        .after = descend,
    };
    problem p = {.eta = c, .steps = 1, .equal = true, .last = rounds};
    run.user = &p;
    // The value whose curvature is 1: 7 i = 23 modulo 24.
    const size_t i = 17;
    assert_true(curvature(&p, 0, i) == 1);
    for (size_t k = 0; k < 2 * (size_t)VALUES; k++) {
        x[k] = 2;
    }
    consensus_run(&run);
    return fabs((double)x[i] - (minimum(0, i) + minimum(1, i)) / 2);
}

// Stable iff lr c < 2 (1 + mu) / (1 + 2 mu), with heavy ball 2 (1 + mu). At 1 %
// beyond or below, the largest factor, which is -1 at the bound, differs from 1
// by at least 2 %: 200 rounds change the distance by at least e^4, from
// below 3.
static void the_bound_of_the_step_is_that_of_the_quadratic(void **state)
{
    (void)state;
    static const double momenta[] = {0, 0.5, 0.9};
    for (size_t k = 0; k < 3; k++) {
        for (int nesterov = 0; nesterov < 2; nesterov++) {
            const double mu = momenta[k];
            const double lr = 0.8;
            const double bound = 2 * (1 + mu) / (nesterov ? 1 + 2 * mu : 1);
            for (int beyond = 0; beyond < 2; beyond++) {
                char spec[96];
                (void)snprintf(
                    spec, sizeof(spec), "outer:lr=%g,momentum=%g,nesterov=%s",
                    lr, mu, nesterov ? "yes" : "no");
                const double c = (beyond ? 1.01 : 0.99) * bound / lr;
                const double far = distance_after(spec, c, 200);
                assert_true(beyond ? far > 10 : far < 0.2);
            }
        }
    }
}

// At lr=0.7, momentum=0.9 and c=1 the factor a round is the square root of the
// determinant of the recursion of (phi, m): 0.27 with Nesterov's form, 0.9 with
// heavy ball. The eigenvalues are complex, so single distances vary around it
// by a factor that does not grow.
static void nesterov_converges_faster_than_heavy_ball(void **state)
{
    (void)state;
    assert_true(distance_after("outer", 1, 16) < 20 * pow(0.27, 8));
    double most = 0;
    for (uint32_t rounds = 28; rounds < 32; rounds++) {
        most = fmax(most, distance_after("outer:nesterov=no", 1, rounds));
    }
    assert_true(most < 20 * pow(0.9, 14) && most > 0.05 * pow(0.9, 16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fixed_point_does_not_depend_on_the_outer_step),
        cmocka_unit_test(only_different_curvatures_bias_local_steps),
        cmocka_unit_test(the_bias_grows_with_the_local_steps),
        cmocka_unit_test(one_local_step_is_an_averaged_gradient),
        cmocka_unit_test(a_step_of_one_without_momentum_averages),
        cmocka_unit_test(only_workers_that_differ_average_at_the_start),
        cmocka_unit_test(the_bound_of_the_step_is_that_of_the_quadratic),
        cmocka_unit_test(nesterov_converges_faster_than_heavy_ball),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
