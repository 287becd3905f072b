// SPDX-License-Identifier: MIT
// EF21: the result is the mean of the workers' estimates, which reach gradients
// that settle; on quadratics with different minima it therefore goes where
// error feedback stops.
#include "cost.h"
#include "reduction.h"

enum { ROUNDS = 40 };

// Another gradient in round 0, which estimates start from.
static float settled_gradient(uint32_t rank, uint64_t round, size_t i)
{
    return changing_gradient(rank, round > 0, i);
}

static double mean_of(
    const reduction *r, float (*gradient)(uint32_t, uint64_t, size_t),
    uint64_t round, size_t i)
{
    double mean = 0;
    for (uint32_t rank = 0; rank < r->workers; rank++) {
        mean += (double)gradient(rank, round, i) / r->workers;
    }
    return mean;
}

// Estimates and differences stay below 16. Both sides of a round add about ten
// numbers, with roundings of at most 2^-21.
static void assert_mean_of_estimates(const char *algorithm, const char *c)
{
    reduction r = {
        .algorithm = algorithm,
        .compressor = c,
        .workers = 4,
        .rounds = ROUNDS,
        .gradient = changing_gradient,
        .field = "estimate",
    };
    reduction_run(&r);
    double all = 0;
    for (size_t i = 0; i < REDUCTION_VALUES; i++) {
        double mean = 0;
        for (uint32_t rank = 0; rank < r.workers; rank++) {
            mean += (double)r.errors[rank][i] / r.workers;
        }
        assert_true(fabs((double)r.last[i] - mean) < ROUNDS * 20 * 0x1p-21);
        all += fabs(mean);
    }
    assert_true(all > 1);
}

static void the_result_is_the_mean_of_the_estimates(void **state)
{
    (void)state;
    static const char *const compressors[] = {
        "sign", "top-k:0.1", "random-k:0.2", "natural", "low-rank"};
    for (size_t c = 0; c < sizeof(compressors) / sizeof(*compressors); c++) {
        print_message("%s\n", compressors[c]);
        assert_mean_of_estimates("ef21", compressors[c]);
        assert_mean_of_estimates("ef21:momentum=0.7", compressors[c]);
    }
}

// A result is the mean gradient up to the roundings of all rounds so far; those
// of a round are at most 20 of 2^-21, as above.
static void with_the_identity_it_is_the_mean(void **state)
{
    (void)state;
    float results[ROUNDS][REDUCTION_VALUES];
    reduction r = {
        .algorithm = "ef21",
        .compressor = "identity",
        .workers = 4,
        .rounds = ROUNDS,
        .gradient = changing_gradient,
        .results = results,
    };
    reduction_run(&r);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < REDUCTION_VALUES; i++) {
            const double off = (double)results[round][i] -
                               mean_of(&r, changing_gradient, round, i);
            assert_true(fabs(off) < (double)(round + 1) * 20 * 0x1p-21);
        }
    }
}

// The momentum is the exponential mean of the gradients, from the first one.
static void the_identity_with_momentum_averages(void **state)
{
    (void)state;
    double v[REDUCTION_VALUES] = {0};
    reduction r = {
        .algorithm = "ef21:momentum=0.75",
        .compressor = "identity",
        .workers = 4,
        .rounds = ROUNDS,
        .gradient = changing_gradient,
    };
    reduction_run(&r);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < REDUCTION_VALUES; i++) {
            const double g = mean_of(&r, changing_gradient, round, i);
            v[i] = round == 0 ? g : 0.75 * v[i] + 0.25 * g;
        }
    }
    for (size_t i = 0; i < REDUCTION_VALUES; i++) {
        assert_true(fabs((double)r.last[i] - v[i]) < ROUNDS * 20 * 0x1p-21);
    }
}

// The first result is exact, and so is every one while gradients stay. After
// they have moved, top-k delivers 6 of 60 values a round.
static void the_result_reaches_gradients_that_settle(void **state)
{
    (void)state;
    float results[ROUNDS][REDUCTION_VALUES];
    reduction r = {
        .algorithm = "ef21",
        .compressor = "top-k:0.1",
        .workers = 4,
        .rounds = ROUNDS,
        .gradient = settled_gradient,
        .results = results,
    };
    reduction_run(&r);
    double early = 0;
    for (size_t i = 0; i < REDUCTION_VALUES; i++) {
        const double first = mean_of(&r, settled_gradient, 0, i);
        const double then = mean_of(&r, settled_gradient, 1, i);
        assert_true(fabs((double)results[0][i] - first) < 10 * 0x1p-21);
        early += fabs((double)results[1][i] - then);
        assert_true(fabs((double)r.last[i] - then) < ROUNDS * 20 * 0x1p-21);
    }
    assert_true(early > 1);
}

// All workers load the state of worker 0, which keeps its estimate while the
// others lose theirs.
typedef struct reload {
    uint8_t state[4096];
    size_t len;
    float first[REDUCTION_VALUES]; // result of worker 0 after the load
} reload;

static lac_status reduce_and_reload(test_worker *w, lac_algorithm *a)
{
    reload *const r = w->context;
    float g[REDUCTION_VALUES], result[REDUCTION_VALUES];
    const lac_slice slice = {0, LAC_F32, g, result};
    for (uint64_t round = 0; round < 4; round++) {
        for (size_t i = 0; i < REDUCTION_VALUES; i++) {
            g[i] = changing_gradient(w->rank, round, i);
        }
        LAC_TRY(lac_algorithm_reduce(a, round, &slice, 1));
        if (round == 2 && w->rank == 0) {
            r->len = lac_algorithm_state_size(a);
            LAC_TRY(lac_algorithm_save(a, r->state, sizeof(r->state)));
        }
        if (round == 2) {
            workers_barrier(REDUCTION_WORKERS);
            LAC_TRY(lac_algorithm_load_with(
                a, r->state, r->len, LAC_LOAD_OTHER_WORLD));
        }
    }
    if (w->rank == 0) {
        memcpy(r->first, result, sizeof(result));
    }
    return LAC_OK;
}

static lac_status reload_body(test_worker *w)
{
    return with_algorithm(
        w, options_for("ef21:momentum=0.5", "top-k:0.1"), NULL,
        &reduction_tensor, 1, reduce_and_reload);
}

static void lost_estimates_start_again(void **state)
{
    (void)state;
    reload r = {.len = 0};
    reduction like = {.workers = REDUCTION_WORKERS};
    test_worker workers[REDUCTION_WORKERS];
    run_workers(REDUCTION_WORKERS, reload_body, &r, workers);
    assert_all_ok(workers, REDUCTION_WORKERS);
    for (size_t i = 0; i < REDUCTION_VALUES; i++) {
        const double mean = mean_of(&like, changing_gradient, 3, i);
        assert_true(fabs((double)r.first[i] - mean) < 10 * 0x1p-21);
    }
}

// The first round sends a float a value more, in a second exchange.
static void the_first_exchange_is_exact_and_counted(void **state)
{
    (void)state;
    reduction r = {
        .algorithm = "ef21",
        .compressor = "sign",
        .workers = 3,
        .rounds = 1,
        .gradient = changing_gradient,
    };
    reduction_run(&r);
    assert_int_equal(r.traffic.payload_bytes, 4 * REDUCTION_VALUES);
    assert_int_equal(r.traffic.messages, 2);
    r.rounds = 3;
    reduction_run(&r);
    const uint64_t signs = REDUCTION_VALUES / 8 + 1 + 4;
    assert_int_equal(r.traffic.payload_bytes, 4 * REDUCTION_VALUES + 2 * signs);
    assert_int_equal(r.traffic.messages, 4);
}

// Quadratics f_i(x) = sum_j a_j (x_j - b_ij)^2 / 2 with a_j from 0.1 to 1 and
// normal b_ij. Equal a: the minimum of the mean is the mean of the b_i, where
// the gradients of the workers do not vanish.
enum { QUADRATIC_ROUNDS = 6000 };

typedef struct quadratic {
    const char *algorithm;
    float eta;
    double distance; // from the minimum at the end
} quadratic;

static float curvature(size_t j)
{
    return 0.1f + 0.9f * (float)j / (REDUCTION_VALUES - 1);
}

static lac_status descend(test_worker *w, lac_algorithm *a)
{
    quadratic *const q = w->context;
    const uint32_t rank = w->rank;
    float x[REDUCTION_VALUES] = {0}, g[REDUCTION_VALUES];
    const lac_slice slice = {0, LAC_F32, g, g};
    double square = 0;
    for (uint64_t round = 0; round < QUADRATIC_ROUNDS; round++) {
        for (size_t j = 0; j < REDUCTION_VALUES; j++) {
            g[j] = curvature(j) * (x[j] - changing_gradient(rank, 0, j));
        }
        LAC_TRY(lac_algorithm_reduce(a, round, &slice, 1));
        for (size_t j = 0; j < REDUCTION_VALUES; j++) {
            x[j] -= q->eta * g[j];
        }
    }
    for (size_t j = 0; rank == 0 && j < REDUCTION_VALUES; j++) {
        double off = (double)x[j];
        for (uint32_t k = 0; k < REDUCTION_WORKERS; k++) {
            off -= (double)changing_gradient(k, 0, j) / REDUCTION_WORKERS;
        }
        square += off * off;
        q->distance = sqrt(square);
    }
    return LAC_OK;
}

static lac_status quadratic_body(test_worker *w)
{
    const quadratic *const q = w->context;
    return with_algorithm(
        w, options_for(q->algorithm, "top-k:0.05"), NULL, &reduction_tensor, 1,
        descend);
}

static double distance_after(const char *algorithm, float eta)
{
    quadratic q = {.algorithm = algorithm, .eta = eta};
    test_worker workers[REDUCTION_WORKERS];
    run_workers(REDUCTION_WORKERS, quadratic_body, &q, workers);
    assert_all_ok(workers, REDUCTION_WORKERS);
    print_message("%s, step %g: %g\n", algorithm, (double)eta, q.distance);
    return q.distance;
}

// Error feedback stops in proportion to its step. EF21 goes on: the slowest
// value shrinks by (1 - 0.1 eta)^6000, 6e-6 for the smaller step, from a
// distance of about 4 of all values. The roundings of G, below 2^-23, move the
// fixed point of 60 values by at most sqrt(60) 2^-23 / 0.1 = 9e-6 each.
static void different_minima_do_not_stop_it(void **state)
{
    (void)state;
    const double large = distance_after("error-feedback", 0.1f);
    const double small = distance_after("error-feedback", 0.02f);
    assert_true(large > 0.05 && small > 0.01);
    assert_true(large / small > 2.5 && large / small < 10);
    assert_true(distance_after("ef21", 0.1f) < 1e-4);
    assert_true(distance_after("ef21", 0.02f) < 1e-4);
}

static void a_momentum_of_1_is_refused(void **state)
{
    (void)state;
    assert_refused(
        "ef21:momentum=1", "sign", 4, "ef21: momentum is 1, expected less");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_result_is_the_mean_of_the_estimates),
        cmocka_unit_test(with_the_identity_it_is_the_mean),
        cmocka_unit_test(the_identity_with_momentum_averages),
        cmocka_unit_test(the_result_reaches_gradients_that_settle),
        cmocka_unit_test(lost_estimates_start_again),
        cmocka_unit_test(the_first_exchange_is_exact_and_counted),
        cmocka_unit_test(different_minima_do_not_stop_it),
        cmocka_unit_test(a_momentum_of_1_is_refused),
    };
    return cmocka_run_group_tests_name(
        "ef21", tests, setup_workers, teardown_workers);
}
