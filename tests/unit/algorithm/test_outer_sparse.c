// SPDX-License-Identifier: MIT
// outer over error feedback with a decay: SparseLoCo. What is kept and what is
// lost of the workers' deltas, how far different minima keep it from their
// mean, and the noise that averaging and DiLoCo leave.
//
// Workers make H = 16 steps of rate 0.1 on quadratics of equal curvatures a, so
// that D_i = c (phi - b_i) with c = 1 - (1 - 0.1 a)^16, and the minimum of all
// is the mean of the b_i.
#include "quadratics.h"

#include "algorithm/framework/handle.h"

enum { WORKERS = 8, VALUES = 256, STEPS = 16, ROUNDS = 200, ERROR = 0 };

#define SPARSE(lr, decay)                                                      \
    "outer:inner=(error-feedback:decay=" #decay "),lr=" #lr ",momentum=0"

static const double eta = 0.1;

static quadratics q;

static const quadratics_kind different = {
    .least = 0.1, .equal = true, .spread = 1};

static void set_up(const char *algorithm, const char *compressor)
{
    q = (quadratics){
        .algorithm = algorithm,
        .compressor = compressor,
        .topology = "ring",
        .workers = WORKERS,
        .values = VALUES,
        .rate = eta,
        .steps = STEPS,
        .rounds = ROUNDS,
        .seed = 6,
    };
    quadratics_fill(&q, &different);
}

static double pull_of(uint32_t j)
{
    return 1 - pow(1 - eta * q.a[0][j], STEPS);
}

// D of the identity is what has arrived, to a rounding, so that nothing remains
// to decay. All values are below 4, with three roundings of 2^-23 a local step
// and ten a round, and c of an error is lost in a round.
static void the_identity_leaves_nothing_to_decay(void **state)
{
    (void)state;
    static float sparse[VALUES];
    set_up(SPARSE(1, 0.95), "identity");
    quadratics_run(&q);
    memcpy(sparse, q.x[0], sizeof(sparse));
    set_up("outer:lr=1,momentum=0", NULL);
    quadratics_run(&q);
    for (uint32_t j = 0; j < VALUES; j++) {
        const double bound = (3 * STEPS + 10) * 0x1p-23 / pull_of(j);
        assert_true(fabs((double)sparse[j] - (double)q.x[0][j]) < 2 * bound);
        assert_true(
            fabs((double)sparse[j] - quadratics_minimum(&q, j)) < bound);
    }
}

// Sums over rounds of worker 0's anchor, and the memories at the end.
typedef struct record {
    double anchors[VALUES];
    double errors[WORKERS][VALUES];
} record;

static void keep_record(
    quadratics *run, uint32_t rank, uint32_t round, const lac_algorithm *a)
{
    record *const r = run->user;
    float errors[VALUES];
    lac_memory_read(
        laci_fields_of(&a->worker.inner->fields, 0)[ERROR].errors, errors);
    for (uint32_t j = 0; j < VALUES; j++) {
        if (rank == 0 && round + 1 < run->rounds) {
            r->anchors[j] += (double)run->x[0][j];
        }
        r->errors[rank][j] = (double)errors[j];
    }
}

// The sum of all D is the sum of what was applied, (phi_0 - phi_T) / lr, and
// the mean of the memories. From phi_0 = 0 on, D of round t is c (phi_t - b).
// A D has the roundings of 16 local steps, three each, and those of a round, 10
// of 2^-23 of values below 4; memories stay below 40, with ten of 2^-19 a
// round.
static void without_a_decay_nothing_is_lost(void **state)
{
    (void)state;
    static record r;
    set_up(SPARSE(0.4, 1), "top-k:0.0625");
    q.after = keep_record;
    q.user = &r;
    quadratics_run(&q);
    double kept = 0;
    for (uint32_t j = 0; j < VALUES; j++) {
        const double minimum = quadratics_minimum(&q, j);
        const double given =
            pull_of(j) * (r.anchors[j] - (double)q.rounds * minimum);
        double got = -(double)q.x[0][j] / 0.4;
        for (uint32_t k = 0; k < WORKERS; k++) {
            got += r.errors[k][j] / WORKERS;
            kept = fmax(kept, fabs(r.errors[k][j]));
        }
        const double bound =
            q.rounds * ((3 * STEPS + 10) * 0x1p-23 + 10 * 0x1p-19);
        assert_true(fabs(got - given) < bound);
    }
    assert_true(kept > 1 && kept < 40);
}

// Sums of squared distances of the anchor over the last half of the rounds.
static void add_distance(
    quadratics *run, uint32_t rank, uint32_t round, const lac_algorithm *a)
{
    (void)a;
    double *const sum = run->user;
    for (uint32_t j = 0; rank == 0 && j < VALUES; j++) {
        const double off = (double)run->x[0][j] - quadratics_minimum(run, j);
        *sum += 2 * round >= run->rounds ? off * off : 0;
    }
}

// The distance from the minimum, relative to that of the start.
static double relative_distance(const char *algorithm, const char *compressor)
{
    double sum = 0, start = 0;
    set_up(algorithm, compressor);
    for (uint32_t j = 0; j < VALUES; j++) {
        start += pow(quadratics_minimum(&q, j), 2);
    }
    q.after = add_distance;
    q.user = &sum;
    quadratics_run(&q);
    const double found = sqrt(sum / (ROUNDS - ROUNDS / 2) / start);
    print_message("%s %s: %.3f\n", algorithm, compressor, found);
    return found;
}

// At the mean of the minima the D_i do not vanish: they only cancel. A value is
// sent once in 16 rounds, and then as the sum of these D, decayed: 1 + 0.95 +
// ... = 11.2 times D. A payload of one worker of 8 moves it by 1.4 lr c of the
// way to that worker's own minimum, which is sqrt(7) times as far from the mean
// as the start is. With lr = 1 phi therefore stays further away than where it
// began; smaller steps average over more payloads. Averaging, with the same
// steps, arrives: its rounding, as above, is below 5e-5, of values of which the
// mean square is 1/8.
static void different_minima_need_small_outer_steps(void **state)
{
    (void)state;
    const double whole = relative_distance(SPARSE(1, 0.95), "top-k:0.0625");
    const double some = relative_distance(SPARSE(0.4, 0.95), "top-k:0.0625");
    const double little = relative_distance(SPARSE(0.1, 0.95), "top-k:0.0625");
    const double all = relative_distance(SPARSE(1, 0.95), "identity");
    assert_true(whole > 1 && 1 > some && some > little && little > 0.1);
    assert_true(all < 5e-5 * sqrt(8));
}

// The variance of phi of value j after `rounds` rounds from the minimum. The
// noise of D is that of 16 steps, s^2 = eta^2 sigma^2 (1 - r^32) / (1 - r^2) /
// 8 with r = 1 - eta a; the covariance P of (phi, m) follows
//
//     phi -= lr ((1 + mu) (c phi + noise) + mu^2 m);  m = mu m + c phi + noise
static double variance_of(uint32_t j, double lr, double mu)
{
    const double r = 1 - eta * q.a[0][j], c = pull_of(j);
    const double s2 = eta * eta * q.noise * q.noise * (1 - pow(r, 2 * STEPS)) /
                      (1 - r * r) / WORKERS;
    const double pp = 1 - lr * (1 + mu) * c, pm = -lr * mu * mu;
    const double noise = -lr * (1 + mu);
    double phi = 0, both = 0, m = 0;
    for (uint32_t round = 0; round < q.rounds; round++) {
        const double next_phi = pp * pp * phi + 2 * pp * pm * both +
                                pm * pm * m + noise * noise * s2;
        const double next_both =
            pp * c * phi + (pp * mu + pm * c) * both + pm * mu * m + noise * s2;
        m = c * c * phi + 2 * c * mu * both + mu * mu * m + s2;
        phi = next_phi;
        both = next_both;
    }
    return phi;
}

// The loss of the anchor above that of the minimum, after rounds with little
// heterogeneity and some noise. Also the one that the variances predict, and
// its standard deviation: values are independent.
typedef struct loss {
    double found, expected, deviation;
} loss;

static loss loss_after(
    const char *algorithm, const char *compressor, double lr, double mu)
{
    const quadratics_kind near = {
        .least = 0.1, .equal = true, .away = 1, .spread = 0.1};
    loss l = {0};
    set_up(algorithm, compressor);
    q.values = QUADRATICS_VALUES;
    q.noise = 0.1;
    quadratics_fill(&q, &near);
    quadratics_run(&q);
    for (uint32_t j = 0; j < q.values; j++) {
        const double off = (double)q.x[0][j] - quadratics_minimum(&q, j);
        const double expected = q.a[0][j] / 2 * variance_of(j, lr, mu);
        l.found += q.a[0][j] / 2 * off * off;
        l.expected += expected;
        l.deviation += 2 * expected * expected;
    }
    l.deviation = sqrt(l.deviation);
    print_message(
        "%s %s: %.4f (%.4f)\n", algorithm, compressor == NULL ? "" : compressor,
        l.found, l.expected);
    return l;
}

// Averaging and DiLoCo leave noise alone: 200 rounds take the start, 1 in each
// value, to below (1 - c)^200, 1e-13 at the smallest c. Five standard
// deviations. DiLoCo's momentum raises the effective step, and with it the
// noise; sparse payloads add more, the sparser they are.
static void near_minima_are_reached_in_the_order_of_density(void **state)
{
    (void)state;
    const loss mean = loss_after("outer:lr=1,momentum=0", NULL, 1, 0);
    const loss diloco = loss_after("outer", NULL, 0.7, 0.9);
    const loss some = loss_after(SPARSE(1, 0.95), "top-k:0.0625", 1, 0);
    const loss few = loss_after(SPARSE(1, 0.95), "top-k:0.015625", 1, 0);
    assert_true(fabs(mean.found - mean.expected) < 5 * mean.deviation);
    assert_true(fabs(diloco.found - diloco.expected) < 5 * diloco.deviation);
    assert_true(mean.expected < diloco.expected);
    assert_true(mean.found < diloco.found && diloco.found < some.found);
    assert_true(some.found < few.found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_identity_leaves_nothing_to_decay),
        cmocka_unit_test(without_a_decay_nothing_is_lost),
        cmocka_unit_test(different_minima_need_small_outer_steps),
        cmocka_unit_test(near_minima_are_reached_in_the_order_of_density),
    };
    return cmocka_run_group_tests_name("outer_sparse", tests, NULL, NULL);
}
