// SPDX-License-Identifier: MIT
// Moniqua: values of neighbours that are close are decoded to within the width
// of a level, without bias, and the mean is preserved. Values that are further
// apart wrap, and nothing reports it.
#include "consensus.h"

#include <math.h>
#include <stdio.h>

#include "algorithm/framework/handle.h"

enum { WORKERS = RING_WORKERS, VALUES = 1000, PAIR = 2 };

static float x[WORKERS * VALUES];
static double before[VALUES], mean[VALUES];

typedef struct grid {
    unsigned bits;
    double theta;
    double modulus; // B
    double width;   // delta B
} grid;

static grid grid_of(unsigned bits, double theta)
{
    const double delta = 1 / (pow(2, bits) - 1);
    const double modulus = 2 * theta / (1 - 2 * delta);
    return (grid){bits, theta, modulus, delta * modulus};
}

// A round of two workers with gamma = 1: each weighs the other by a half.
static void mix_pair(const grid *g)
{
    char spec[64];
    (void)snprintf(
        spec, sizeof(spec), "moniqua:gamma=1,theta=%.17g,bits=%u", g->theta,
        g->bits);
    consensus c = {
        .algorithm = spec,
        .topology = "complete",
        .workers = PAIR,
        .shape = {VALUES, 1},
        .rounds = 1,
        .seed = 3,
        .x = x,
    };
    consensus_run(&c);
}

// Worker 0 is at a level, so that its own rounding error is 0, and worker 1 is
// up to nearly theta away. What worker 0 decodes is off by less than a level.
static void close_values_are_decoded(void **state)
{
    (void)state;
    static const unsigned bits[] = {2, 3, 5, 8};
    for (size_t b = 0; b < 4; b++) {
        const grid g = grid_of(bits[b], 0.3);
        const double own = 3 * g.modulus + g.width - g.modulus / 2;
        float other[VALUES];
        for (size_t i = 0; i < VALUES; i++) {
            const double part = 2 * ((double)i + 0.5) / VALUES - 1;
            x[i] = (float)own;
            other[i] = (float)(own + 0.999 * g.theta * part);
            x[VALUES + i] = other[i];
        }
        mix_pair(&g);
        double most = 0;
        for (size_t i = 0; i < VALUES; i++) {
            const double decoded = own + 2 * ((double)x[i] - own);
            most = fmax(most, fabs(decoded - (double)other[i]));
        }
        print_message("%u bits: %g of %g\n", bits[b], most, g.width);
        assert_true(most < g.width + 1e-5);
        assert_true(most > 0.8 * g.width);
    }
}

// Rounding up has the probability of the part f of the level that a value has
// reached: a variance of f (1 - f) width^2, at most a quarter. Five standard
// deviations of the mean over all values.
static void rounding_is_unbiased(void **state)
{
    (void)state;
    const grid g = grid_of(2, 0.25);
    static const double parts[] = {-0.9, -0.33, 0.1, 0.77};
    for (size_t p = 0; p < 4; p++) {
        const double own = g.width - g.modulus / 2;
        const float other = (float)(own + parts[p] * g.theta);
        double sum = 0;
        for (size_t i = 0; i < VALUES; i++) {
            x[i] = (float)own;
            x[VALUES + i] = other;
        }
        mix_pair(&g);
        for (size_t i = 0; i < VALUES; i++) {
            sum += own + 2 * ((double)x[i] - own);
        }
        assert_true(
            fabs(sum / VALUES - (double)other) <
            5 * g.width / 2 / sqrt(VALUES));
    }
}

static void fill_near(consensus *c, double reach)
{
    consensus_fill_normal(c, 4);
    for (size_t i = 0; i < WORKERS * VALUES; i++) {
        c->x[i] = (float)(5 + reach * tanh((double)c->x[i]));
    }
}

// Values of neighbours differ by less than theta, so that what one gains the
// other loses, to the rounding of values near 5. With 8 bits they come closer
// in every round and stay within theta.
static void the_mean_is_preserved_within_theta(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "moniqua:gamma=1,theta=0.5", "moniqua:gamma=0.5,theta=0.5,bits=8"};
    static const uint32_t rounds[] = {1, 100};
    for (size_t s = 0; s < 2; s++) {
        consensus c = consensus_on_a_ring(specs[s], NULL, VALUES, rounds[s], x);
        fill_near(&c, 0.249);
        consensus_mean(&c, before);
        const double first = consensus_error(&c, before);
        consensus_run(&c);
        consensus_mean(&c, mean);
        for (size_t i = 0; i < VALUES; i++) {
            assert_true(
                fabs(mean[i] - before[i]) < rounds[s] * 2 * 8 * 0x1p-24);
        }
        assert_true(s == 0 || consensus_error(&c, before) < 1e-3 * first);
    }
}

// A neighbour that is B away looks the same, and one that is 0.9 B away looks
// 0.1 B away on the other side: the two move apart. With 8 bits a rounding
// error is B/255 at most.
static void values_that_are_far_apart_wrap(void **state)
{
    (void)state;
    const grid g = grid_of(8, 0.25);
    static const double distances[] = {0.9, 1, 1.2};
    static const double moves[] = {-0.1, 0, 0.2};
    for (size_t k = 0; k < 3; k++) {
        for (size_t i = 0; i < VALUES; i++) {
            x[i] = 1;
            x[VALUES + i] = (float)(1 + distances[k] * g.modulus);
        }
        mix_pair(&g);
        for (size_t i = 0; i < VALUES; i++) {
            const double moved = ((double)x[i] - 1) / g.modulus;
            assert_true(fabs(moved - moves[k] / 2) < 2.0 / 255);
        }
    }
}

// At B/2 noise decides which way either of two workers goes: their mean moves
// by a multiple of B/2, while all values stay finite and no call fails.
static void the_mean_moves_when_values_wrap(void **state)
{
    (void)state;
    const grid g = grid_of(2, 0.25);
    size_t moved = 0;
    for (size_t i = 0; i < VALUES; i++) {
        x[i] = 0.1f;
        x[VALUES + i] = (float)(0.1 + g.modulus / 2);
    }
    mix_pair(&g);
    for (size_t i = 0; i < VALUES; i++) {
        const double sum = (double)x[i] + (double)x[VALUES + i];
        const double turns = (sum - 0.2 - g.modulus / 2) / (g.modulus / 2);
        assert_true(fabs(turns - rint(turns)) < 1e-5);
        moved += fabs(turns) > 0.5;
    }
    print_message("%zu of %d\n", moved, (int)VALUES);
    assert_true(moved > VALUES / 10);
}

// All workers begin with the same values, which are spread over many levels, so
// that the variance of a rounding error e is width^2 / 6 in the mean. A round
// multiplies disagreement in the direction of the eigenvalue l of W by
// 1 - gamma (1 - l) and subtracts gamma (1 - l) e, so that it settles at
// gamma (1 - l) / (2 - gamma (1 - l)) of that variance, however many rounds
// there are. 7 directions of 1000 values have a relative standard deviation of
// sqrt(2 / 7000), 1.7 %: 5 are allowed. gamma is small, so that values stay
// within a tenth of a level: values that roam stay longer where the variance is
// small.
static void the_floor_is_that_of_its_rounding(void **state)
{
    (void)state;
    static const uint32_t rounds[] = {400, 1200};
    const grid g = grid_of(4, 0.5);
    double expected = 0;
    for (int k = 1; k < WORKERS; k++) {
        const double l = (1 + 2 * cos(2 * acos(-1) * k / WORKERS)) / 3;
        const double part = 0.1 * (1 - l);
        expected += VALUES * part / (2 - part) * pow(g.width, 2) / 6 / WORKERS;
    }
    for (size_t k = 0; k < 2; k++) {
        consensus c = consensus_on_a_ring(
            "moniqua:gamma=0.1,theta=0.5,bits=4", NULL, VALUES, rounds[k], x);
        for (size_t i = 0; i < WORKERS * VALUES; i++) {
            x[i] = 0.0137f * (float)(i % VALUES);
        }
        consensus_run(&c);
        consensus_mean(&c, mean);
        const double found = consensus_error(&c, mean);
        print_message("%u rounds: %g of %g\n", rounds[k], found, expected);
        assert_true(fabs(found / expected - 1) < 5 * sqrt(2.0 / 7000));
    }
}

// Two bits a value, rounded up to bytes, to each of two neighbours.
static void a_value_costs_its_bits(void **state)
{
    (void)state;
    static const char *const specs[] = {"moniqua", "moniqua:bits=3"};
    static const uint64_t sizes[] = {2 * 1001 / 8 + 1, 3 * 1001 / 8 + 1};
    static float values[WORKERS * 1001];
    for (size_t s = 0; s < 2; s++) {
        consensus c = consensus_on_a_ring(specs[s], NULL, 1001, 3, values);
        consensus_run(&c);
        assert_int_equal(c.traffic[0].payload_bytes, 3 * 2 * sizes[s]);
        assert_int_equal(c.traffic[0].messages, 3 * 2);
    }
}

// Worker 1 sends, by hand, bits beyond the levels of its five values, or a byte
// too few.
static lac_status send_by_hand(lac_algorithm *a, size_t len)
{
    const laci_round *const round = &a->round;
    laci_writer *const message = laci_group_message(round->group, 0);
    uint8_t *const out = laci_writer_room(message, len);
    memset(out, 0xff, len);
    laci_writer_commit(message, len);
    return laci_group_exchange(
        round->group, 0, 0, round->edges, round->edge_count, true,
        round->readers);
}

static lac_status mix_or_send(test_worker *w, lac_algorithm *a)
{
    const size_t *const len = w->context;
    float values[5] = {0};
    const lac_slice slice = {0, LAC_F32, values, values};
    LAC_TRY(lac_algorithm_start(a, &slice, 1));
    return w->rank == 1 ? send_by_hand(a, *len)
                        : lac_algorithm_mix(a, 0, &slice, NULL, 1);
}

static lac_status mix_with_bad_peer(test_worker *w)
{
    const lac_tensor tensor = {.name = "w", .shape = {5, 1}};
    return with_algorithm(
        w, options_for("moniqua", NULL), "complete", &tensor, 1, mix_or_send);
}

static void malformed_payloads_are_refused(void **state)
{
    (void)state;
    static const size_t lens[] = {2, 1};
    static const char *const messages[] = {
        "moniqua: worker 1 set bits past the last of 5 values of w",
        "moniqua: worker 1 sent 1 bytes for w, expected 2"};
    for (size_t i = 0; i < 2; i++) {
        test_worker workers[PAIR];
        size_t len = lens[i];
        run_workers(PAIR, mix_with_bad_peer, &len, workers);
        assert_int_equal(workers[0].status, LAC_ERR_CORRUPT);
        assert_string_equal(workers[0].message, messages[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(close_values_are_decoded),
        cmocka_unit_test(rounding_is_unbiased),
        cmocka_unit_test(the_mean_is_preserved_within_theta),
        cmocka_unit_test(values_that_are_far_apart_wrap),
        cmocka_unit_test(the_mean_moves_when_values_wrap),
        cmocka_unit_test(the_floor_is_that_of_its_rounding),
        cmocka_unit_test(a_value_costs_its_bits),
        cmocka_unit_test(malformed_payloads_are_refused),
    };
    return cmocka_run_group_tests_name("moniqua", tests, NULL, NULL);
}
