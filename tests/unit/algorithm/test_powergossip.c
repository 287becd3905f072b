// SPDX-License-Identifier: MIT
// PowerGossip as a way to agree: how fast, and on what.
#include "consensus.h"

#include <math.h>

#include "algorithm/framework/handle.h"

enum {
    WORKERS = 8,
    SIDE = 100,
    VALUES = SIDE * SIDE,
    POINTS_MAX = 4,
};

static float x[WORKERS * VALUES];

// The squared error after some rounds, over that of the start.
typedef struct course {
    uint32_t points[POINTS_MAX]; // rounds, increasing
    size_t count;
    float *seen[POINTS_MAX];
    double error[POINTS_MAX];
} course;

static void remember(
    const consensus *c, uint32_t rank, uint32_t round, const lac_algorithm *a,
    const float *values)
{
    const course *const run = c->user;
    const size_t n = consensus_values(c);
    (void)a;
    for (size_t i = 0; i < run->count; i++) {
        if (run->points[i] == round) {
            memcpy(run->seen[i] + rank * n, values, n * sizeof(*values));
        }
    }
}

static void follow(consensus *c, course *run)
{
    static double mean[VALUES];
    const size_t size = c->workers * consensus_values(c) * sizeof(float);
    consensus_mean(c, mean);
    const double start = consensus_error(c, mean);
    for (size_t i = 0; i < run->count; i++) {
        run->seen[i] = test_malloc(size);
    }
    c->rounds = run->points[run->count - 1];
    c->after = remember;
    c->user = run;
    consensus_run(c);
    for (size_t i = 0; i < run->count; i++) {
        consensus then = *c;
        then.x = run->seen[i];
        run->error[i] = consensus_error(&then, mean) / start;
        test_free(run->seen[i]);
    }
}

// Sums of five outer products with weights 1, 1/2, ..., 1/5.
static void fill_rank_five(consensus *c, uint64_t seed)
{
    static float left[SIDE], right[SIDE];
    memset(c->x, 0, c->workers * consensus_values(c) * sizeof(float));
    for (uint32_t part = 0; part < 5 * c->workers; part++) {
        const lac_key key =
            lac_key_make(seed, LAC_PURPOSE_DATA, part, lac_scope_shared(), 0);
        float *const matrix = c->x + part / 5 * consensus_values(c);
        for (uint32_t i = 0; i < SIDE; i++) {
            left[i] = lac_key_normal(&key, i) / (float)(part % 5 + 1);
            right[i] = lac_key_normal(&key, SIDE + i);
        }
        for (size_t i = 0; i < VALUES; i++) {
            matrix[i] += left[i / SIDE] * right[i % SIDE];
        }
    }
}

// Both ends of an edge add the same products with opposite signs, so only the
// additions round: four a round and value, each by at most 2^-22, since values
// stay below 8.
static void the_mean_is_preserved(void **state)
{
    (void)state;
    enum { ROUNDS = 50, N = 20 * 30 };
    double before[N] = {0}, after[N] = {0};
    consensus c = {
        .algorithm = "powergossip:rank=2,rate=1.308",
        .topology = "ring",
        .workers = WORKERS,
        .shape = {20, 30},
        .rounds = ROUNDS,
        .x = x,
    };
    consensus_fill_normal(&c, 1);
    consensus_mean(&c, before);
    const double start = consensus_error(&c, before);
    consensus_run(&c);
    consensus_mean(&c, after);
    for (size_t i = 0; i < N; i++) {
        assert_true(fabs(after[i] - before[i]) < ROUNDS * 4 * 0x1p-22);
    }
    assert_true(consensus_error(&c, before) < 0.1 * start);
}

// With random projections of r = 1 column out of 100, delta = 0.01, the error
// falls by R a round, the largest root of
//     1 = sum_m g^2 delta (1 - delta) mu_m^2 / n / (R - (1 - g delta mu_m)^2),
// mu_m = (2 - 2 cos(2 pi m / n)) / 3, n = 8.
//
// How much one round takes of the error fluctuates by about sqrt(2 / 100) of
// itself on one edge, since the vector meets 100 rows or columns. Over 8 edges
// and 1500 rounds that leaves 0.14 / sqrt(12000) = 0.0013 of 1 - R, 6e-6; the
// test allows four times that. Before round 1000 the other roots still count.
static void random_projections_have_the_exact_rate(void **state)
{
    (void)state;
    static const struct {
        const char *algorithm;
        double rate;
    } cases[] = {
        {"powergossip:warm-start=no", 0.996251},
        {"powergossip:warm-start=no,rate=1.308", 0.995220},
    };
    for (size_t i = 0; i < 2; i++) {
        course run = {.points = {1000, 2500}, .count = 2};
        consensus c = {
            .algorithm = cases[i].algorithm,
            .topology = "ring",
            .workers = WORKERS,
            .shape = {SIDE, SIDE},
            .seed = 3,
            .x = x,
        };
        consensus_fill_normal(&c, 5);
        follow(&c, &run);
        const double rate = pow(run.error[1] / run.error[0], 1.0 / 1500);
        assert_true(fabs(rate - cases[i].rate) < 2.4e-5);
    }
}

// The errors of an independent simulation in double. Its one run and ours
// draw different matrices and vectors: over ten seeds the logarithms differed
// from its by at most 0.06 + 0.005 of themselves, and the test allows twice
// that.
static void warm_start_pays(void **state)
{
    (void)state;
    static const struct {
        const char *algorithm;
        bool low_rank;
        double error[POINTS_MAX];
    } cases[] = {
        {"powergossip:warm-start=no,rate=1.308",
         false,
         {0.897, 0.385, 0.0381, 3.4e-3}},
        {"powergossip:rate=1.308", false, {0.894, 0.305, 0.0135, 7.4e-4}},
        {"powergossip:warm-start=no,rate=1.308",
         true,
         {0.910, 0.388, 0.0384, 3.5e-3}},
        {"powergossip:rate=1.308", true, {0.356, 0.0221, 5.4e-5, 6.4e-8}},
    };
    for (size_t i = 0; i < 4; i++) {
        course run = {.points = {10, 100, 500, 1000}, .count = 4};
        consensus c = {
            .algorithm = cases[i].algorithm,
            .topology = "ring",
            .workers = WORKERS,
            .shape = {SIDE, SIDE},
            .seed = 5,
            .x = x,
        };
        if (cases[i].low_rank) {
            fill_rank_five(&c, 5);
        } else {
            consensus_fill_normal(&c, 5);
        }
        follow(&c, &run);
        for (size_t j = 0; j < POINTS_MAX; j++) {
            const double expected = log(cases[i].error[j]);
            assert_true(
                fabs(log(run.error[j]) - expected) < 0.12 - 0.01 * expected);
        }
    }
}

static double difference(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)a[i] - (double)b[i];
        sum += d * d;
    }
    return sum;
}

enum { ROWS = 12, COLS = 9, PAIR = ROWS * COLS };

static consensus pair_with(const char *algorithm, uint32_t rounds)
{
    return (consensus){
        .algorithm = algorithm,
        .topology = "complete",
        .workers = 2,
        .shape = {ROWS, COLS},
        .rounds = rounds,
        .x = x,
    };
}

// Two workers whose matrices differ by one of rank 2.
static void fill_pair(consensus *c, double *mean_out)
{
    consensus_fill_normal(c, 7);
    for (size_t i = 0; i < PAIR; i++) {
        const float u = x[i / COLS], v = x[2 * ROWS + i % COLS];
        const float s = x[ROWS + i / COLS], t = x[3 * ROWS + i % COLS];
        x[PAIR + i] = x[i] + (u * v + s * t);
    }
    consensus_mean(c, mean_out);
}

// The first round takes exactly what lies along q: the rest is D (I - q q^T),
// and |D q|^2 is that of the factor kept.
static void keep_norm(
    const consensus *c, uint32_t rank, uint32_t round, const lac_algorithm *a,
    const float *values)
{
    double *const norm = c->user;
    (void)values;
    if (rank == 0 && round == 1) {
        const float zeros[2 * ROWS] = {0};
        *norm = difference(a->fields.fields[0].values, zeros, 2 * ROWS);
    }
}

// All values are below 32 and take some 40 roundings of at most 2^-20.
static void two_workers_agree_after_two_rounds(void **state)
{
    (void)state;
    double mean[PAIR] = {0}, taken = 0;
    consensus c = pair_with("powergossip:rank=2", 1);
    c.after = keep_norm;
    c.user = &taken;
    fill_pair(&c, mean);
    const double before = difference(x, x + PAIR, PAIR);
    consensus_run(&c);
    const double between = difference(x, x + PAIR, PAIR);
    assert_true(between > 0.01 * before);
    assert_true(fabs(between + taken - before) < 40 * 0x1p-22 * before);
    c.rounds = 2;
    fill_pair(&c, mean);
    consensus_run(&c);
    for (size_t i = 0; i < 2 * PAIR; i++) {
        assert_true(fabs((double)x[i] - mean[i % PAIR]) < 40 * 0x1p-20);
    }
}

static void iterations_are_rounds(void **state)
{
    (void)state;
    static float once[2 * PAIR];
    consensus c = pair_with("powergossip:iterations=4", 1);
    consensus_fill_normal(&c, 7);
    consensus_run(&c);
    memcpy(once, x, sizeof(once));
    c.algorithm = "powergossip";
    c.rounds = 4;
    consensus_fill_normal(&c, 7);
    consensus_run(&c);
    assert_true(difference(x, x + PAIR, PAIR) > 1e-3);
    for (size_t i = 0; i < 2 * PAIR; i++) {
        assert_true(fabs((double)x[i] - (double)once[i]) < 40 * 0x1p-20);
    }
}

// A rank of the smaller side is all of the matrix.
static void a_rank_beyond_the_matrix_is_exact(void **state)
{
    (void)state;
    double mean[PAIR] = {0};
    consensus c = pair_with("powergossip:rank=32", 2);
    consensus_fill_normal(&c, 9);
    consensus_mean(&c, mean);
    consensus_run(&c);
    for (size_t i = 0; i < 2 * PAIR; i++) {
        assert_true(fabs((double)x[i] - mean[i % PAIR]) < 40 * 0x1p-20);
    }
    assert_int_equal(
        c.traffic[0].payload_bytes, COLS * (ROWS + COLS) * sizeof(float));
}

// Equal values give factors of zeros, which must not stay so: worker 1 leaves
// by a matrix of rank 1 after round 3, and two more rounds bring both together.
static void leave_after_three(
    const consensus *c, uint32_t rank, uint32_t round, const lac_algorithm *a,
    const float *values)
{
    (void)a;
    (void)values;
    for (size_t i = 0; rank == 1 && round == 3 && i < PAIR; i++) {
        c->x[PAIR + i] += (float)(i / COLS + 1) / (float)(i % COLS + 1);
    }
}

static void workers_that_agreed_do_not_stay_blind(void **state)
{
    (void)state;
    consensus c = pair_with("powergossip", 5);
    c.after = leave_after_three;
    consensus_fill_normal(&c, 11);
    memcpy(x + PAIR, x, PAIR * sizeof(*x));
    consensus_run(&c);
    assert_true(difference(x, x + PAIR, PAIR) < PAIR * 0x1p-36);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_is_preserved),
        cmocka_unit_test(random_projections_have_the_exact_rate),
        cmocka_unit_test(warm_start_pays),
        cmocka_unit_test(two_workers_agree_after_two_rounds),
        cmocka_unit_test(iterations_are_rounds),
        cmocka_unit_test(a_rank_beyond_the_matrix_is_exact),
        cmocka_unit_test(workers_that_agreed_do_not_stay_blind),
    };
    return cmocka_run_group_tests_name("powergossip", tests, NULL, NULL);
}
