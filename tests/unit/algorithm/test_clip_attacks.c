// SPDX-License-Identifier: MIT
// Clipped gossip of 16 honest workers, each with 6 honest neighbours (those up
// to three places away on a ring) and f hostile ones of its own, which know
// all values: how far the mean of the honest workers drifts and whether they
// agree, in 60 rounds, relative to the variance at the start.
//
// All weights are w = 1 / (7 + f). Without clipping, a round of the honest
// workers among themselves preserves their mean.
#include "lac_test.h"

#include <math.h>
#include <string.h>

#include "algorithm/framework/handle.h"
#include "algorithm/shared/clip.h"

enum {
    HONEST = 16,
    DEGREE = 6,
    HOSTILE_MAX = 2,
    NEIGHBOURS_MAX = DEGREE + HOSTILE_MAX,
    VALUES = 40,
    ROUNDS = 60,
};

typedef enum attack { HUGE_VALUES, DISSENSUS, LITTLE } attack;

typedef struct network {
    attack attack;
    uint32_t hostile;   // at each worker
    uint32_t tolerated; // neighbours of CS+
    double tau;         // of all workers and rounds instead; 0: CS+
    double drift;       // squared, of the mean, in the variance at the start
    double left;        // of that variance
} network;

static const float huge_value = 1000;
static const double unclipped = 1e30;

static float x[HONEST][VALUES], next[HONEST][VALUES];
static float hostile[HONEST][VALUES]; // what the hostile ones of each send
static double start[VALUES];

static double mean_at(size_t v)
{
    double sum = 0;
    for (size_t i = 0; i < HONEST; i++) {
        sum += (double)x[i][v] / HONEST;
    }
    return sum;
}

static double variance_at(size_t v)
{
    const double mean = mean_at(v);
    double sum = 0;
    for (size_t i = 0; i < HONEST; i++) {
        sum += pow((double)x[i][v] - mean, 2) / HONEST;
    }
    return sum;
}

static double variance(void)
{
    double sum = 0;
    for (size_t v = 0; v < VALUES; v++) {
        sum += variance_at(v);
    }
    return sum;
}

static void write_mean(double *out)
{
    for (size_t v = 0; v < VALUES; v++) {
        out[v] = mean_at(v);
    }
}

// The squared distance of the mean from an earlier one.
static double moved_from(const double *before)
{
    double sum = 0;
    for (size_t v = 0; v < VALUES; v++) {
        sum += pow(mean_at(v) - before[v], 2);
    }
    return sum;
}

static const float *neighbour(size_t i, uint32_t k)
{
    static const size_t places[DEGREE] = {1, 2, 3, 13, 14, 15};
    return k < DEGREE ? x[(i + places[k]) % HONEST] : hostile[i];
}

// One value that the hostile neighbours of worker i send: far away, or against
// 1.5 times the progress of all honest ones, or a standard deviation below the
// mean.
static double hostile_value(const network *n, size_t i, size_t v)
{
    double progress = 0;
    for (uint32_t k = 0; k < DEGREE; k++) {
        progress += (double)neighbour(i, k)[v] - (double)x[i][v];
    }
    switch (n->attack) {
    case DISSENSUS:
        return (double)x[i][v] - 1.5 * progress / n->hostile;
    case LITTLE:
        return mean_at(v) - sqrt(variance_at(v));
    default:
        return (double)huge_value;
    }
}

static double weight_of(const network *n)
{
    return 1.0 / (1 + DEGREE + n->hostile);
}

// A round of one worker. Returns the most by which it may move the mean, as
// derived below, times the number of workers.
static double mix_one(const network *n, size_t i)
{
    const uint32_t count = DEGREE + n->hostile;
    lac_edge edges[NEIGHBOURS_MAX];
    laci_view views[NEIGHBOURS_MAX] = {{0}};
    double distances[NEIGHBOURS_MAX] = {0}, sum = 0;
    for (uint32_t k = 0; k < count; k++) {
        edges[k] = (lac_edge){k, weight_of(n)};
        views[k].bytes = (const uint8_t *)neighbour(i, k);
        distances[k] = laci_clip_distance(views[k].bytes, x[i], VALUES);
    }
    laci_item item = {.n = VALUES, .in = x[i]};
    const laci_round round = {
        .items = &item,
        .count = 1,
        .edges = edges,
        .edge_count = count,
        .views = views,
    };
    const double tau =
        n->tau > 0 ? n->tau
                   : laci_clip_threshold(edges, count, distances, n->tolerated);
    laci_clip_mix(&round, 0, 1, distances, tau, next[i]);
    for (uint32_t largest = 0; largest < 2 * n->tolerated; largest++) {
        uint32_t at = 0;
        for (uint32_t k = 1; k < DEGREE; k++) {
            at = distances[k] > distances[at] ? k : at;
        }
        sum += weight_of(n) * distances[at];
        distances[at] = 0;
    }
    return sum;
}

// Of 2 f neighbours beyond tau at most f are hostile, so that k >= f honest
// ones are. Clipping takes the excess over tau of these away, and the hostile
// ones add at most tau each: the sum of k distances, minus k tau, plus f tau.
// That is at most the sum of the 2 f largest honest distances, each times w.
// 2^-18 is above the rounding of 40 values.
static void mix_all(const network *n)
{
    double before[VALUES], bound = 0;
    write_mean(before);
    for (size_t i = 0; i < HONEST; i++) {
        bound += mix_one(n, i) / HONEST;
    }
    memcpy(x, next, sizeof(x));
    assert_true(n->tau > 0 || sqrt(moved_from(before)) < bound + 0x1p-18);
}

static void run_network(network *n)
{
    fill_normal(x[0], (size_t)HONEST * VALUES, 3);
    const double initial = variance();
    write_mean(start);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t k = 0; k < (size_t)HONEST * VALUES; k++) {
            const size_t i = k / VALUES, v = k % VALUES;
            hostile[i][v] = (float)hostile_value(n, i, v);
        }
        mix_all(n);
    }
    n->drift = moved_from(start) / initial;
    n->left = variance() / initial;
    print_message(
        "attack %u by %u, tau %g: drift %.3g, left %.3g\n", n->attack,
        n->hostile, n->tau, n->drift, n->left);
}

static network run_attack(attack a, uint32_t f, double tau)
{
    network n = {.attack = a, .hostile = f, .tolerated = f, .tau = tau};
    run_network(&n);
    return n;
}

// Without clipping the mean moves f w of the way to the wrong values in every
// round, to a rounding of 2^-14 of values up to 1000. With CS+ the honest
// workers still agree, and their mean stays within their first values: a drift
// below their standard deviation. Two at each worker move it further than one.
static void huge_values_move_the_mean_little(void **state)
{
    (void)state;
    double before = 0;
    for (uint32_t f = 1; f <= HOSTILE_MAX; f++) {
        const network plain = run_attack(HUGE_VALUES, f, unclipped);
        const double moved = 1 - pow(1 - f * weight_of(&plain), ROUNDS);
        for (size_t v = 0; v < VALUES; v++) {
            const double expected =
                start[v] + ((double)huge_value - start[v]) * moved;
            assert_true(fabs(mean_at(v) - expected) < ROUNDS * 0x1p-14);
        }
        assert_true(plain.drift > 1e5);
        const network clipped = run_attack(HUGE_VALUES, f, 0);
        assert_true(clipped.drift > before && clipped.drift < 1);
        assert_true(clipped.left < 1e-3);
        before = clipped.drift;
    }
}

// The eigenvalues of the honest workers' progress are w times those of the
// Laplacian, of which the least above 0 is 6 - 2 (cos 22.5 + cos 45 + cos 67.5
// degrees) = 1.97. Without clipping, half of the progress is undone beyond
// where a round began: all disagreement grows by 1 + w 1.97 / 2 or more a
// round. With CS+ it falls.
static void an_attack_on_agreement_fails(void **state)
{
    (void)state;
    const network plain = run_attack(DISSENSUS, 1, unclipped);
    assert_true(plain.left > pow(1 + weight_of(&plain) * 1.97 / 2, 2 * ROUNDS));
    const network clipped = run_attack(DISSENSUS, 1, 0);
    assert_true(clipped.left < 1e-4 && clipped.drift < 1e-3);
}

// A standard deviation below the mean, the wrong values are as far from an
// honest worker as other honest ones are, sqrt(2) standard deviations. No
// rule by distance separates them: the drift is about that without clipping, w
// f standard deviations in the first round and less in each later one.
static void little_deviations_pass(void **state)
{
    (void)state;
    for (uint32_t f = 1; f <= HOSTILE_MAX; f++) {
        const network plain = run_attack(LITTLE, f, unclipped);
        const network clipped = run_attack(LITTLE, f, 0);
        const double first = pow(f * weight_of(&plain), 2);
        assert_true(plain.drift > first && clipped.drift > 0.5 * first);
        assert_true(clipped.drift > plain.drift / 2);
        assert_true(clipped.drift < plain.drift * 2);
    }
}

// Without hostile neighbours. A common tau preserves the mean to one rounding
// of 2^-23 a round. Thresholds of their own do not: of 16 workers two
// neighbours each are clipped by about 15 % of sqrt(2) standard deviations, in
// unrelated directions, which moves the mean by 32 (0.15 sqrt(2) / 7)^2 / 16^2
// = 1e-4 of the variance in the first round; ten times that is allowed.
static void only_a_common_threshold_preserves_the_mean(void **state)
{
    (void)state;
    network common = {.tolerated = 1, .tau = 0.9 * sqrt(2.0 * VALUES)};
    network own = {.tolerated = 1};
    run_network(&common);
    assert_true(common.drift < pow(ROUNDS * 0x1p-23, 2));
    run_network(&own);
    assert_true(own.drift > 1e-6 && own.drift < 1e-3);
    assert_true(common.left < 1e-6 && own.left < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(huge_values_move_the_mean_little),
        cmocka_unit_test(an_attack_on_agreement_fails),
        cmocka_unit_test(little_deviations_pass),
        cmocka_unit_test(only_a_common_threshold_preserves_the_mean),
    };
    return cmocka_run_group_tests_name("clip_attacks", tests, NULL, NULL);
}
