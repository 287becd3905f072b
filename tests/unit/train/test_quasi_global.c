// SPDX-License-Identifier: MIT
// Quasi-global momentum, in exact gossip of quadratics on a ring: it stops
// where gossip without momentum stops, while local momentum stops where gossip
// with a rate of 1 / (1 - b) times its own does.
#include <math.h>
#include <string.h>

#include "lac_test.h"
#include "train/optimiser.h"

enum { WORKERS = 16, VALUES = 12, STEPS = 4000 };

static lac_layout *layout;
static float minima[WORKERS][VALUES];
static double curvatures[WORKERS][VALUES];

static int open_problem(void **state)
{
    const lac_tensor tensor = {.name = "x", .shape = {VALUES, 1}};
    (void)state;
    fill_normal(minima[0], (size_t)WORKERS * VALUES, 5);
    for (size_t k = 0; k < WORKERS; k++) {
        for (size_t i = 0; i < VALUES; i++) {
            curvatures[k][i] = 0.1 + 0.9 * (double)((3 * k + 5 * i) % 16) / 15;
        }
    }
    return lac_layout_open(&layout, &tensor, 1) != LAC_OK;
}

static int close_problem(void **state)
{
    (void)state;
    lac_layout_close(layout);
    return 0;
}

// Which is first in a step.
typedef enum order { GOSSIP_FIRST, STEP_FIRST } order;

// Solves for one value of all workers, on a ring with weights of 1/3, by
// elimination, where gossip without momentum is at rest:
//
//     (I - W + rate A) x = rate A b         x = W x - rate A (x - b)
//     (I - W + rate W A) x = rate W A b     x = W (x - rate A (x - b))
static void fixed_point(order first, double rate, size_t value, double *x)
{
    double a[WORKERS][WORKERS] = {{0}};
    for (size_t k = 0; k < WORKERS; k++) {
        const size_t near[] = {
            k, (k + 1) % WORKERS, (k + WORKERS - 1) % WORKERS};
        a[k][k] = 1;
        x[k] = 0;
        for (size_t n = 0; n < 3; n++) {
            const size_t j = near[n];
            const double part = first == STEP_FIRST ? 1.0 / 3 : n == 0;
            const double pull = part * rate * curvatures[j][value];
            a[k][j] += pull - 1.0 / 3;
            x[k] += pull * (double)minima[j][value];
        }
    }
    for (size_t p = 0; p < WORKERS; p++) {
        for (size_t k = 0; k < WORKERS; k++) {
            const double factor = k == p ? 0 : a[k][p] / a[p][p];
            for (size_t j = 0; j < WORKERS; j++) {
                a[k][j] -= factor * a[p][j];
            }
            x[k] -= factor * x[p];
        }
    }
    for (size_t k = 0; k < WORKERS; k++) {
        x[k] /= a[k][k];
    }
}

static float mean_of_neighbours(float x[][VALUES], size_t k, size_t i)
{
    const float left = x[(k + WORKERS - 1) % WORKERS][i];
    return (x[k][i] + left + x[(k + 1) % WORKERS][i]) / 3;
}

// One step of all workers, with the gradient at the old x.
static void step_all(
    train_optimiser *const *optimisers, order first, double rate,
    float x[][VALUES])
{
    float old[WORKERS][VALUES], moved[WORKERS][VALUES];
    memcpy(old, x, sizeof(old));
    for (size_t k = 0; k < WORKERS; k++) {
        float g[VALUES], *const at = first == STEP_FIRST ? old[k] : x[k];
        train_optimiser_begin(optimisers[k], old[k]);
        for (size_t i = 0; i < VALUES; i++) {
            const double off = (double)old[k][i] - (double)minima[k][i];
            g[i] = (float)(curvatures[k][i] * off);
            x[k][i] = mean_of_neighbours(old, k, i);
        }
        train_optimiser_step(optimisers[k], rate, at, g);
        for (size_t i = 0; i < VALUES; i++) {
            moved[k][i] = at[i] + g[i];
        }
    }
    for (size_t k = 0; k < WORKERS; k++) {
        for (size_t i = 0; i < VALUES; i++) {
            x[k][i] = first == STEP_FIRST ? mean_of_neighbours(moved, k, i)
                                          : moved[k][i];
        }
        train_optimiser_end(optimisers[k], rate, x[k]);
    }
}

// A run, after so many steps that what is left shrinks below 1e-10.
typedef struct run {
    train_momentum_kind kind;
    train_nesterov nesterov;
    order first;
    double rate;
    float x[WORKERS][VALUES];
} run;

static run rest_of(
    train_momentum_kind kind, train_nesterov nesterov, order first)
{
    run r = {.kind = kind, .nesterov = nesterov, .first = first, .rate = 0.05};
    train_optimiser *optimisers[WORKERS];
    for (size_t k = 0; k < WORKERS; k++) {
        const train_optimiser_options o = {
            .nesterov = nesterov,
            .momentum = 0.9,
            .kind = kind,
            .layout = layout,
        };
        assert_ok(train_optimiser_open(&optimisers[k], &o));
    }
    for (int t = 0; t < STEPS; t++) {
        step_all(optimisers, first, r.rate, r.x);
    }
    for (size_t k = 0; k < WORKERS; k++) {
        train_optimiser_close(optimisers[k]);
    }
    return r;
}

// The largest distance of a value from the fixed point of gossip with `times`
// the rate.
static double distance(const run *r, double times)
{
    double most = 0;
    for (size_t i = 0; i < VALUES; i++) {
        double expected[WORKERS];
        fixed_point(r->first, times * r->rate, i, expected);
        for (size_t k = 0; k < WORKERS; k++) {
            most = fmax(most, fabs((double)r->x[k][i] - expected[k]));
        }
    }
    print_message("rate %g like %g: %g\n", r->rate, times * r->rate, most);
    return most;
}

// The root of the mean squared distance of the workers from the minimum of all.
static double bias_of(const run *r)
{
    double square = 0;
    for (size_t i = 0; i < VALUES; i++) {
        double pull = 0, sum = 0;
        for (size_t k = 0; k < WORKERS; k++) {
            pull += curvatures[k][i] * (double)minima[k][i];
            sum += curvatures[k][i];
        }
        for (size_t k = 0; k < WORKERS; k++) {
            square += pow((double)r->x[k][i] - pull / sum, 2) / WORKERS;
        }
    }
    return sqrt(square);
}

// Values are below 4, with roundings of at most 2^-23, a few a step, and the
// slowest direction shrinks by 0.05 * 0.1 a step: 5 * 2^-23 / 0.005.
#define ROUNDING (5 * 0x1p-23 / 0.005)

static void it_stops_where_gossip_without_momentum_does(void **state)
{
    (void)state;
    const train_momentum_kind kind = TRAIN_MOMENTUM_QUASI_GLOBAL;
    for (order first = GOSSIP_FIRST; first <= STEP_FIRST; first++) {
        const run plain = rest_of(kind, TRAIN_NESTEROV_NO, first);
        assert_true(distance(&plain, 1) < ROUNDING);
        assert_true(distance(&plain, 10) > 0.1);
        // At rest m is 0: the step is d + b d.
        const run nesterov = rest_of(kind, TRAIN_NESTEROV_TORCH, first);
        assert_true(distance(&nesterov, 1.9) < ROUNDING);
        assert_true(distance(&nesterov, 1) > 0.1);
    }
}

// At rest m is d / (1 - b), and so is d + b m.
static void local_momentum_stops_at_ten_times_the_rate(void **state)
{
    (void)state;
    const train_momentum_kind kind = TRAIN_MOMENTUM_LOCAL;
    const run plain = rest_of(kind, TRAIN_NESTEROV_NO, GOSSIP_FIRST);
    const run nesterov = rest_of(kind, TRAIN_NESTEROV_TORCH, GOSSIP_FIRST);
    assert_true(distance(&plain, 10) < ROUNDING);
    assert_true(distance(&nesterov, 10) < ROUNDING);
    assert_true(distance(&plain, 1) > 0.1);
}

// The fixed point moves from the minimum of all towards those of the workers
// as the rate grows, less than in proportion: every direction of the
// disagreement is pulled by rate / (rate + gossip). Quasi-global momentum
// removes the bias of momentum, not that of gossip.
static void momentum_adds_to_the_bias_of_gossip(void **state)
{
    (void)state;
    const run runs[] = {
        rest_of(TRAIN_MOMENTUM_QUASI_GLOBAL, TRAIN_NESTEROV_NO, GOSSIP_FIRST),
        rest_of(
            TRAIN_MOMENTUM_QUASI_GLOBAL, TRAIN_NESTEROV_TORCH, GOSSIP_FIRST),
        rest_of(TRAIN_MOMENTUM_LOCAL, TRAIN_NESTEROV_NO, GOSSIP_FIRST),
    };
    const double none = bias_of(&runs[0]), nesterov = bias_of(&runs[1]);
    const double local = bias_of(&runs[2]);
    print_message("%.3f, %.3f, %.3f\n", none, nesterov, local);
    assert_true(0.1 < none && none < nesterov && nesterov < local);
    assert_true(nesterov < 1.9 * none && local < 10 * none);
}

// The formulas in double. Ten steps have at most ten roundings each, of
// numbers below 4; m divides those of x by the rate.
static void steps_follow_the_formula(void **state)
{
    (void)state;
    const double rate = 0.25, decay = 0.5, b = 0.9;
    train_optimiser *o;
    const train_optimiser_options options = {
        .nesterov = TRAIN_NESTEROV_NO,
        .momentum = b,
        .weight_decay = decay,
        .kind = TRAIN_MOMENTUM_QUASI_GLOBAL,
        .layout = layout,
    };
    float x[VALUES], g[VALUES];
    double m[VALUES] = {0};
    assert_ok(train_optimiser_open(&o, &options));
    memcpy(x, minima[0], sizeof(x));
    for (size_t t = 0; t < 10; t++) {
        float gossiped[VALUES];
        train_optimiser_begin(o, x);
        for (size_t i = 0; i < VALUES; i++) {
            gossiped[i] = (x[i] + minima[1][i]) / 2;
            g[i] = minima[t][i];
        }
        train_optimiser_step(o, rate, gossiped, g);
        for (size_t i = 0; i < VALUES; i++) {
            const double d = (double)minima[t][i] + decay * (double)gossiped[i];
            const double step = -rate * (b * m[i] + d);
            assert_true(fabs((double)g[i] - step) < 100 * 4 * 0x1p-24 / rate);
            gossiped[i] += g[i];
            m[i] =
                0.9 * m[i] + 0.1 * ((double)x[i] - (double)gossiped[i]) / rate;
        }
        memcpy(x, gossiped, sizeof(x));
        train_optimiser_end(o, rate, x);
    }
    train_optimiser_close(o);
}

static void a_rate_of_0_teaches_nothing(void **state)
{
    (void)state;
    train_optimiser *o;
    const train_optimiser_options options = {
        .momentum = 0.9,
        .kind = TRAIN_MOMENTUM_QUASI_GLOBAL,
        .layout = layout,
    };
    assert_ok(train_optimiser_open(&o, &options));
    const train_optimiser_state found = train_optimiser_get_state(o);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.working, 1);
    train_optimiser_begin(o, minima[0]);
    train_optimiser_end(o, 0, minima[1]);
    train_optimiser_end(o, 1e-42, minima[1]);
    for (size_t i = 0; i < VALUES; i++) {
        assert_true(found.vector[0][i] == 0);
    }
    train_optimiser_end(o, 0.1, minima[1]);
    assert_true(found.vector[0][0] != 0);
    train_optimiser_close(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_stops_where_gossip_without_momentum_does),
        cmocka_unit_test(local_momentum_stops_at_ten_times_the_rate),
        cmocka_unit_test(momentum_adds_to_the_bias_of_gossip),
        cmocka_unit_test(steps_follow_the_formula),
        cmocka_unit_test(a_rate_of_0_teaches_nothing),
    };
    return cmocka_run_group_tests_name(
        "quasi_global", tests, open_problem, close_problem);
}
