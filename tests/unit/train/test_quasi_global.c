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

// Solves (I - W + rate A) x = rate A b for one value of all workers, on a ring
// with weights of 1/3, by elimination. This is where x = W x - rate A (x - b).
static void fixed_point(double rate, size_t value, double *x)
{
    double a[WORKERS][WORKERS] = {{0}};
    for (size_t k = 0; k < WORKERS; k++) {
        const double pull = rate * curvatures[k][value];
        a[k][k] = 2.0 / 3 + pull;
        a[k][(k + 1) % WORKERS] = -1.0 / 3;
        a[k][(k + WORKERS - 1) % WORKERS] = -1.0 / 3;
        x[k] = pull * (double)minima[k][value];
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

// One step of all workers: x = W x + step, with the gradient at the old x.
static void step_all(
    train_optimiser *const *optimisers, double rate, float x[][VALUES])
{
    float old[WORKERS][VALUES], g[VALUES];
    memcpy(old, x, sizeof(old));
    for (size_t k = 0; k < WORKERS; k++) {
        const float *const left = old[(k + WORKERS - 1) % WORKERS];
        const float *const right = old[(k + 1) % WORKERS];
        train_optimiser_begin(optimisers[k], old[k]);
        for (size_t i = 0; i < VALUES; i++) {
            const double off = (double)old[k][i] - (double)minima[k][i];
            g[i] = (float)(curvatures[k][i] * off);
            x[k][i] = (old[k][i] + left[i] + right[i]) / 3;
        }
        train_optimiser_step(optimisers[k], rate, x[k], g);
        for (size_t i = 0; i < VALUES; i++) {
            x[k][i] += g[i];
        }
        train_optimiser_end(optimisers[k], rate, x[k]);
    }
}

// Returns the largest distance of a value from the fixed point of gossip with
// rate `like`, after so many steps that what is left shrinks below 1e-10.
static double distance(
    train_momentum_kind kind, train_nesterov nesterov, double rate, double like)
{
    train_optimiser *optimisers[WORKERS];
    float x[WORKERS][VALUES] = {{0}};
    double most = 0;
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
        step_all(optimisers, rate, x);
    }
    for (size_t i = 0; i < VALUES; i++) {
        double expected[WORKERS];
        fixed_point(like, i, expected);
        for (size_t k = 0; k < WORKERS; k++) {
            most = fmax(most, fabs((double)x[k][i] - expected[k]));
        }
    }
    for (size_t k = 0; k < WORKERS; k++) {
        train_optimiser_close(optimisers[k]);
    }
    print_message("rate %g like %g: %g\n", rate, like, most);
    return most;
}

// Values are below 4, with roundings of at most 2^-23, a few a step, and the
// slowest direction shrinks by 0.05 * 0.1 a step: 5 * 2^-23 / 0.005.
#define ROUNDING (5 * 0x1p-23 / 0.005)

static void it_stops_where_gossip_without_momentum_does(void **state)
{
    (void)state;
    const train_momentum_kind kind = TRAIN_MOMENTUM_QUASI_GLOBAL;
    const double rate = 0.05;
    assert_true(distance(kind, TRAIN_NESTEROV_NO, rate, rate) < ROUNDING);
    assert_true(distance(kind, TRAIN_NESTEROV_NO, rate, 10 * rate) > 0.1);
    // At rest m is 0: the step is d + b d.
    assert_true(
        distance(kind, TRAIN_NESTEROV_TORCH, rate, 1.9 * rate) < ROUNDING);
}

// At rest m is d / (1 - b), and so is d + b m.
static void local_momentum_stops_at_ten_times_the_rate(void **state)
{
    (void)state;
    const train_momentum_kind kind = TRAIN_MOMENTUM_LOCAL;
    const double rate = 0.05;
    assert_true(distance(kind, TRAIN_NESTEROV_NO, rate, 10 * rate) < ROUNDING);
    assert_true(
        distance(kind, TRAIN_NESTEROV_TORCH, rate, 10 * rate) < ROUNDING);
    assert_true(distance(kind, TRAIN_NESTEROV_NO, rate, rate) > 0.1);
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
        cmocka_unit_test(steps_follow_the_formula),
        cmocka_unit_test(a_rate_of_0_teaches_nothing),
    };
    return cmocka_run_group_tests_name(
        "quasi_global", tests, open_problem, close_problem);
}
