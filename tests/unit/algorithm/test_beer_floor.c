// SPDX-License-Identifier: MIT
// Where gossip with constant rates stops on quadratics with different minima
// and different Hessians, on a ring of 8: choco and exact gossip at a floor
// that has a closed form, beer at the minimum; and what noise in the gradients
// adds to it.
//
// x = x + gamma (W - I) x - eta A (x - b) is at rest where
//
//     (gamma (I - W) + eta A) x = eta A b
//
// which depends on eta / gamma alone. Exact gossip has gamma = 1. The error of
// choco's compressor vanishes at rest.
#include "quadratics.h"

enum { WORKERS = 8, VALUES = 100, CASES = 3 };

static const double rates[CASES] = {0.1, 0.03, 0.01};
static const double least = 0.5, noise = 0.1;

static quadratics q;

// Curvatures are from 0.5 to 1: a round shrinks the distance of the mean by 0.5
// eta at least, so that 20 / eta of them leave 5e-5 of what then shrinks by the
// gossip of 1000 more.
static double distance_after(
    const char *algorithm, const char *compressor, double rate, double noisy)
{
    // The larger the rate, the slower are beer's trackers.
    const bool slow = strncmp(algorithm, "beer", 4) == 0 && rate > 0.05;
    q = (quadratics){
        .algorithm = algorithm,
        .compressor = compressor,
        .topology = "ring",
        .workers = WORKERS,
        .values = VALUES,
        .rate = rate,
        .steps = 1,
        .with_update = true,
        .rounds = (uint32_t)(20 / rate) + (slow && noisy == 0 ? 4500 : 1000),
        .noise = noisy,
        .seed = 6,
    };
    const quadratics_kind kind = {.least = least, .spread = 1};
    quadratics_fill(&q, &kind);
    quadratics_run(&q);
    return quadratics_distance(&q);
}

// Solves for value j of all workers, by elimination.
static void rest_of(double ratio, uint32_t j, double *x)
{
    double a[WORKERS][WORKERS] = {{0}};
    for (uint32_t k = 0; k < WORKERS; k++) {
        const double pull = ratio * q.a[k][j];
        a[k][k] = 2.0 / 3 + pull;
        a[k][(k + 1) % WORKERS] = -1.0 / 3;
        a[k][(k + WORKERS - 1) % WORKERS] = -1.0 / 3;
        x[k] = pull * q.b[k][j];
    }
    for (uint32_t p = 0; p < WORKERS; p++) {
        for (uint32_t k = 0; k < WORKERS; k++) {
            const double factor = k == p ? 0 : a[k][p] / a[p][p];
            for (uint32_t i = 0; i < WORKERS; i++) {
                a[k][i] -= factor * a[p][i];
            }
            x[k] -= factor * x[p];
        }
    }
    for (uint32_t k = 0; k < WORKERS; k++) {
        x[k] /= a[k][k];
    }
}

// The distance from the minimum at rest, for eta / gamma = ratio.
static double expected_floor(double ratio)
{
    double sum = 0;
    for (uint32_t j = 0; j < VALUES; j++) {
        double x[WORKERS];
        rest_of(ratio, j, x);
        for (uint32_t k = 0; k < WORKERS; k++) {
            sum += pow(x[k] - quadratics_minimum(&q, j), 2) / WORKERS;
        }
    }
    return sqrt(sum);
}

// Values are below 4, with five roundings of 2^-23 a round; 0.5 eta of an error
// is lost in one.
static double rounding_of(double rate)
{
    return sqrt(VALUES) * 5 * 0x1p-23 / (least * rate);
}

static void the_floor_is_that_of_the_ratio_of_rate_and_gamma(void **state)
{
    (void)state;
    double exact[CASES], choco[CASES];
    for (size_t i = 0; i < CASES; i++) {
        exact[i] = distance_after("dpsgd", NULL, rates[i], 0);
        choco[i] = distance_after("choco:gamma=0.1", "top-k:0.1", rates[i], 0);
        print_message(
            "rate %g: dpsgd %.5f of %.5f, choco %.5f of %.5f\n", rates[i],
            exact[i], expected_floor(rates[i]), choco[i],
            expected_floor(10 * rates[i]));
        const double bound = rounding_of(rates[i]);
        assert_true(fabs(exact[i] - expected_floor(rates[i])) < bound);
        assert_true(fabs(choco[i] - expected_floor(10 * rates[i])) < bound);
        assert_true(choco[i] > exact[i]);
        // It falls with the rate, and not faster.
        assert_true(i == 0 || choco[i] < choco[i - 1]);
        assert_true(
            i == 0 || choco[i] > choco[i - 1] * rates[i] / rates[i - 1]);
    }
    // At gamma = 0.1 choco is exact gossip with ten times the rate.
    assert_true(fabs(choco[2] - exact[0]) < 2 * rounding_of(rates[2]));
}

// Without noise beer stops where floats do: V, whose mean is the gradient, is
// off by the roundings of the sums that it is made of, which are those of x.
static void beer_has_no_floor(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        const double found =
            distance_after("beer:gamma=0.1", "top-k:0.1", rates[i], 0);
        print_message("rate %g: beer %.2g\n", rates[i], found);
        assert_true(found < rounding_of(rates[i]));
    }
}

// The distance that noise alone keeps the mean of the workers at, for the mean
// curvature of each value: SGD with the noise of a mean of 8.
static double noise_of_the_mean(double rate)
{
    double sum = 0;
    for (uint32_t j = 0; j < VALUES; j++) {
        double a = 0;
        for (uint32_t k = 0; k < WORKERS; k++) {
            a += q.a[k][j] / WORKERS;
        }
        sum += rate * noise * noise / WORKERS / (a * (2 - rate * a));
    }
    return sqrt(sum);
}

// A worker alone, of the smallest curvature.
static double noise_alone(double rate)
{
    return sqrt(VALUES * rate / (least * (2 - rate * least))) * noise;
}

// Gossip averages noise, so that it adds at most the square of what a worker
// alone would have to the square of choco's floor, and a mixed term: 2/8 of a
// sum over 8 workers and 100 values, with a standard deviation of
// 2 floor alone / sqrt(8 * 100), of which five are allowed. Nothing averages
// better than a mean of all, which bounds beer from below; the squares of 100
// values have a relative standard deviation of sqrt(2 / 100), of which five are
// 0.7. And beer stays below choco.
static void noise_moves_beer_and_not_choco(void **state)
{
    (void)state;
    double before = HUGE_VAL;
    for (size_t i = 0; i < CASES; i++) {
        const double choco =
            distance_after("choco:gamma=0.1", "top-k:0.1", rates[i], noise);
        const double floor = expected_floor(10 * rates[i]);
        const double alone = noise_alone(rates[i]);
        const double beer =
            distance_after("beer:gamma=0.1", "top-k:0.1", rates[i], noise);
        print_message(
            "rate %g: choco %.4f of %.4f, noise alone %.4f, beer %.4f, of the "
            "mean %.4f\n",
            rates[i], choco, floor, alone, beer, noise_of_the_mean(rates[i]));
        assert_true(
            fabs(choco * choco - floor * floor) <
            alone * alone + 10 * floor * alone / sqrt(WORKERS * VALUES));
        assert_true(beer * beer > 0.3 * pow(noise_of_the_mean(rates[i]), 2));
        assert_true(beer < floor && beer < before);
        before = beer;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_floor_is_that_of_the_ratio_of_rate_and_gamma),
        cmocka_unit_test(beer_has_no_floor),
        cmocka_unit_test(noise_moves_beer_and_not_choco),
    };
    return cmocka_run_group_tests_name("beer_floor", tests, NULL, NULL);
}
