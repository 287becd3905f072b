// SPDX-License-Identifier: MIT
// BEER: invariants of its means, gradient tracking without compression, and
// convergence where CHOCO stops.
#include "workers.h"

#include <math.h>

#include "algorithm/framework/handle.h"

enum {
    WORKERS = 8,
    VALUES = 100,
    XHAT = 0,
    VHAT = 2,
    TRACKER = 4,
    GRADIENT = 5
};

static const lac_tensor tensor = {.name = "x", .shape = {VALUES, 1}};

// Worker i has f_i(x) = sum_j a_ij (x_j - b_ij)^2 / 2 with a_ij uniform from
// 0.5 to 1 and normal b_ij, so that neither minima nor Hessians agree.
static double curvature(uint32_t rank, uint32_t j)
{
    const lac_key key =
        lac_key_make(6, LAC_PURPOSE_DATA, 0, lac_scope_worker(rank), 0);
    return 0.5 + 0.5 * (double)lac_key_draw(&key, j) * 0x1p-32;
}

static double minimum_of(uint32_t rank, uint32_t j)
{
    const lac_key key =
        lac_key_make(7, LAC_PURPOSE_DATA, 0, lac_scope_worker(rank), 0);
    return (double)lac_key_normal(&key, j);
}

static double common_minimum(uint32_t j)
{
    double pull = 0, sum = 0;
    for (uint32_t k = 0; k < WORKERS; k++) {
        pull += curvature(k, j) * minimum_of(k, j);
        sum += curvature(k, j);
    }
    return pull / sum;
}

typedef struct descent {
    const char *algorithm;
    const char *compressor;
    double rate;
    uint32_t rounds;
    float x[WORKERS][VALUES];
    // After the last round: the tracker, and the gradient given in it.
    float tracker[WORKERS][VALUES];
    float gradient[WORKERS][VALUES];
    float last[WORKERS][VALUES]; // x before the last round
    size_t both[WORKERS];        // values that both public copies have
} descent;

static void write_gradient(uint32_t rank, const float *x, float *g)
{
    for (uint32_t j = 0; j < VALUES; j++) {
        g[j] =
            (float)(curvature(rank, j) * ((double)x[j] - minimum_of(rank, j)));
    }
}

static lac_status descend(test_worker *w, lac_algorithm *a)
{
    descent *const d = w->context;
    const uint32_t rank = w->rank;
    float *const x = d->x[rank], *const g = d->gradient[rank], update[VALUES];
    const lac_slice slice = {0, LAC_F32, x, x};
    const float *const updates[] = {update};
    LAC_TRY(lac_algorithm_set_rate(a, d->rate));
    LAC_TRY(lac_algorithm_start(a, &slice, 1));
    for (uint64_t round = 0; round < d->rounds; round++) {
        memcpy(d->last[rank], x, sizeof(d->last[rank]));
        write_gradient(rank, x, g);
        for (size_t j = 0; j < VALUES; j++) {
            update[j] = -(float)d->rate * g[j];
        }
        LAC_TRY(lac_algorithm_mix(a, round, &slice, updates, 1));
    }
    const laci_field *const fields = laci_fields_of(&a->fields, 0);
    if (a->fields.count > TRACKER) {
        memcpy(d->tracker[rank], fields[TRACKER].values, sizeof(update));
        for (size_t j = 0; j < VALUES; j++) {
            d->both[rank] +=
                fields[XHAT].values[j] != 0 && fields[VHAT].values[j] != 0;
        }
    }
    return LAC_OK;
}

static lac_status descent_body(test_worker *w)
{
    const descent *const d = w->context;
    return with_algorithm(
        w, options_for(d->algorithm, d->compressor), "ring", &tensor, 1,
        descend);
}

static void run_descent(descent *d)
{
    test_worker workers[WORKERS];
    run_workers(WORKERS, descent_body, d, workers);
    assert_all_ok(workers, WORKERS);
}

static double mean_of(float (*values)[VALUES], size_t j)
{
    double sum = 0;
    for (size_t k = 0; k < WORKERS; k++) {
        sum += (double)values[k][j] / WORKERS;
    }
    return sum;
}

// Fields and values stay below 16. A round adds to a tracker about ten numbers,
// with roundings of at most 2^-21, and so on for x.
static void assert_means(const char *compressor)
{
    enum { ROUNDS = 60 };
    descent d = {
        .algorithm = "beer:gamma=0.2",
        .compressor = compressor,
        .rate = 0.05,
        .rounds = ROUNDS,
    };
    run_descent(&d);
    double size = 0;
    for (size_t j = 0; j < VALUES; j++) {
        const double tracked = mean_of(d.tracker, j);
        const double moved = mean_of(d.x, j) - mean_of(d.last, j);
        assert_true(
            fabs(tracked - mean_of(d.gradient, j)) < ROUNDS * 10 * 0x1p-21);
        assert_true(fabs(moved + d.rate * tracked) < 10 * 0x1p-21);
        for (size_t k = 0; k < WORKERS; k++) {
            size = fmax(size, fabs((double)d.tracker[k][j]));
        }
    }
    assert_true(size > 1e-3 && size < 16);
}

static void the_mean_tracker_is_the_mean_gradient(void **state)
{
    (void)state;
    static const char *const compressors[] = {
        "identity", "sign", "top-k:0.1", "random-k:0.3", "natural"};
    for (size_t i = 0; i < sizeof(compressors) / sizeof(*compressors); i++) {
        print_message("%s\n", compressors[i]);
        assert_means(compressors[i]);
    }
}

// Gradient tracking on a ring with weights of 1/3, in double:
//
//     x' = W x - rate V;  V' = W V + g' - g
//
// The public copies are 0 at first, so that the first round does not mix x.
static void track_gradients(
    const descent *d, double (*x)[VALUES], double (*v)[VALUES])
{
    double g[WORKERS][VALUES] = {{0}};
    for (uint32_t t = 0; t < d->rounds; t++) {
        double mixed[WORKERS][VALUES], tracked[WORKERS][VALUES];
        for (size_t k = 0; k < WORKERS; k++) {
            const size_t l = (k + WORKERS - 1) % WORKERS, r = (k + 1) % WORKERS;
            for (size_t j = 0; j < VALUES; j++) {
                mixed[k][j] =
                    t == 0 ? x[k][j] : (x[l][j] + x[k][j] + x[r][j]) / 3;
                tracked[k][j] = (v[l][j] + v[k][j] + v[r][j]) / 3;
            }
        }
        for (uint32_t k = 0; k < WORKERS; k++) {
            for (uint32_t j = 0; j < VALUES; j++) {
                const double now =
                    curvature(k, j) * (x[k][j] - minimum_of(k, j));
                v[k][j] = tracked[k][j] + now - g[k][j];
                g[k][j] = now;
                x[k][j] = mixed[k][j] - d->rate * v[k][j];
            }
        }
    }
}

// Both contract errors, so that those of rounding stay in proportion to about
// twenty roundings of 2^-22 over rate * curvature.
static void the_identity_is_gradient_tracking(void **state)
{
    (void)state;
    static double x[WORKERS][VALUES], v[WORKERS][VALUES];
    descent d = {
        .algorithm = "beer:gamma=1",
        .compressor = "identity",
        .rate = 0.1,
        .rounds = 30,
    };
    fill_normal(d.x[0], (size_t)WORKERS * VALUES, 9);
    for (size_t i = 0; i < (size_t)WORKERS * VALUES; i++) {
        x[i / VALUES][i % VALUES] = (double)d.x[i / VALUES][i % VALUES];
    }
    run_descent(&d);
    track_gradients(&d, x, v);
    for (size_t i = 0; i < (size_t)WORKERS * VALUES; i++) {
        const size_t k = i / VALUES, j = i % VALUES;
        const double bound = 20 * 0x1p-22 / (0.1 * 0.5);
        assert_true(fabs((double)d.x[k][j] - x[k][j]) < bound);
        assert_true(fabs((double)d.tracker[k][j] - v[k][j]) < bound);
    }
}

// The root of the mean squared distance of the workers from the minimum.
static double distance_after(const char *algorithm, uint32_t rounds)
{
    descent d = {
        .algorithm = algorithm,
        .compressor = "top-k:0.1",
        .rate = 0.05,
        .rounds = rounds,
    };
    double sum = 0;
    run_descent(&d);
    for (uint32_t i = 0; i < WORKERS * VALUES; i++) {
        const double off =
            (double)d.x[i / VALUES][i % VALUES] - common_minimum(i % VALUES);
        sum += off * off / WORKERS;
    }
    print_message("%s: %g\n", algorithm, sqrt(sum));
    return sqrt(sum);
}

// A constant rate and different functions stop CHOCO; BEER goes on until the
// roundings of floats: those of 100 values of x below 4, of 2^-23 each, and of
// V, over the curvature.
static void it_converges_where_choco_stops(void **state)
{
    (void)state;
    assert_true(distance_after("choco:gamma=0.1", 3000) > 0.1);
    assert_true(distance_after("beer:gamma=0.1", 3000) < 1e-4);
}

// random-k takes 30 of 100 values of each: about 9 in common if draws are
// independent, with a standard deviation of 2.1, and 30 if they are the same.
static void the_payloads_of_a_tensor_have_their_own_draws(void **state)
{
    (void)state;
    descent d = {
        .algorithm = "beer:gamma=0.2",
        .compressor = "random-k:0.3",
        .rate = 0.05,
        .rounds = 1,
    };
    fill_normal(d.x[0], (size_t)WORKERS * VALUES, 9);
    run_descent(&d);
    for (size_t k = 0; k < WORKERS; k++) {
        assert_between(d.both[k], 1, 18);
    }
}

// With a rate of 0 nothing is learned: trackers mix and the gradient stays.
static lac_status mix_at_rest(test_worker *w, lac_algorithm *a)
{
    float x[VALUES] = {0}, update[VALUES] = {0}, gradient[VALUES];
    const lac_slice slice = {0, LAC_F32, x, x};
    const float *const updates[] = {update};
    LAC_TRY(lac_algorithm_start(a, &slice, 1));
    const laci_field *const fields = laci_fields_of(&a->fields, 0);
    update[0] = (float)w->rank;
    LAC_TRY(lac_algorithm_mix(a, 0, &slice, updates, 1));
    memcpy(gradient, fields[GRADIENT].values, sizeof(gradient));
    EXPECT(gradient[0] == -(float)w->rank);
    LAC_TRY(lac_algorithm_set_rate(a, 0));
    update[0] = 0;
    LAC_TRY(lac_algorithm_mix(a, 1, &slice, updates, 1));
    EXPECT(memcmp(gradient, fields[GRADIENT].values, sizeof(gradient)) == 0);
    LAC_TRY(lac_algorithm_set_rate(a, 0.5));
    LAC_TRY(lac_algorithm_mix(a, 2, &slice, NULL, 1));
    EXPECT(fields[GRADIENT].values[0] == 0);
    return LAC_OK;
}

static lac_status rest(test_worker *w)
{
    return with_algorithm(
        w, options_for("beer:gamma=0.5", "natural"), "ring", &tensor, 1,
        mix_at_rest);
}

static void a_rate_of_0_hides_the_gradient(void **state)
{
    (void)state;
    test_worker workers[WORKERS];
    run_workers(WORKERS, rest, NULL, workers);
    assert_all_ok(workers, WORKERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_tracker_is_the_mean_gradient),
        cmocka_unit_test(the_identity_is_gradient_tracking),
        cmocka_unit_test(it_converges_where_choco_stops),
        cmocka_unit_test(the_payloads_of_a_tensor_have_their_own_draws),
        cmocka_unit_test(a_rate_of_0_hides_the_gradient),
    };
    return cmocka_run_group_tests_name("beer", tests, NULL, NULL);
}
